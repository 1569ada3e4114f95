"""Every store against tests/state/conformance.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.state.conformance import ALL
from tidegate.state.sqlite import open_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tidegate.state.store import Store

OPENERS: dict[str, Callable[[str], Store]] = {"sqlite": open_store}


@pytest.mark.parametrize("name", OPENERS)
@pytest.mark.parametrize("check", ALL, ids=lambda check: check.__name__)
def test_conformance(tmp_path: Path, name: str, check: Callable[[Store, Store], None]) -> None:
    """SRV-4: each store does what the interface says, seen by two that have it open."""
    folder = tmp_path / "state"
    one, other = OPENERS[name](str(folder)), OPENERS[name](str(folder))
    try:
        check(one, other)
    finally:
        one.close()
        other.close()
