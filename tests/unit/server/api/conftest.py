"""What the tests of the API begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.server.api.running import Whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Whole]:
    """A whole server."""
    with Whole(tmp_path) as found:
        yield found
