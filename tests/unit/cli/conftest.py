"""What the tests of commands that ask a server begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.server.api.running import Whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Whole]:
    """A whole server, and the environment that leads to it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Whole(tmp_path) as found:
        yield found
