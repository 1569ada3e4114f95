"""A check is a value."""

from __future__ import annotations

from tidegate.doctor.check import FAIL, OK, Check


def test_a_check_says_what_and_how_to_mend_it() -> None:
    """One that is fine has nothing to say; one that is not names the fix."""
    assert Check("hold netns", OK).what == ""
    assert Check("hold netns", FAIL, "no namespaces", "sysctl").fix == "sysctl"
