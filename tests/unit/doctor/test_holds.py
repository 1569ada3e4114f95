"""Doctor tries each hold by building it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.holds.apart import apart
from tidegate.doctor import holds
from tidegate.doctor.check import FAIL
from tidegate.holds import landlock

if TYPE_CHECKING:
    import pytest


def test_each_hold_is_tried() -> None:
    """One row a hold, and all of them can be had where the tests of holds run (SRV-5)."""
    said = apart(
        """
        from tidegate.doctor.holds import check_holds
        print(*(f"{check.name} {check.state}" for check in check_holds()), sep=", ", end="")
        """
    )
    here = "ok" if landlock.abi() >= landlock.SCOPE_ABI else "warn"
    assert said == f"hold netns ok, hold landlock {here}, hold offline ok, hold open ok"


def test_what_is_in_the_way_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hold that cannot be had fails its row, with the words and the fix of a start (HLD-12)."""
    from tidegate.holds import linux

    monkeypatch.setattr(linux, "NUMBERS", {})
    found = holds.check_holds()
    assert [check.state for check in found] == [FAIL] * 4
    assert all("no hold for" in check.what and check.fix for check in found)
