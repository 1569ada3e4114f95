"""A relay that runs, for the tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.holds.container.relay.running import Owner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Owner]:
    """A relay that runs and waits for its owner."""
    found = Owner(tmp_path)
    try:
        yield found
    finally:
        found.close()
