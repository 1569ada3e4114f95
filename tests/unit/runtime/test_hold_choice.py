"""Holds by their names, with what goes with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.holds.hold import find_hold
from tidegate.runtime.hold_choice import choose_hold
from tidegate.runtime.leases import LeasedHold

if TYPE_CHECKING:
    from pathlib import Path


def test_only_the_hold_uid_has_leases(tmp_path: Path) -> None:
    """HLD-3: other names mean what they do everywhere."""
    assert choose_hold("netns", str(tmp_path), lambda: 1.0) is find_hold("netns")
    found = choose_hold("uid", str(tmp_path), lambda: 1.0)
    assert isinstance(found, LeasedHold)
    assert (found.name, found.has_gate) == ("uid", True)
    with pytest.raises(KeyError):
        choose_hold("nothing", str(tmp_path), lambda: 1.0)
