"""The nearest known word (policy/suggest.py)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.suggest import distance, nearest

KEYS = ("profile", "default", "network", "private", "own", "presets", "tls", "limits", "protected_ports", "locked")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("profil", "profile"),
        ("Profile", "profile"),
        ("netwrok", "network"),
        ("protected-ports", "protected_ports"),
        ("ports_protected_ports", "protected_ports"),
        ("lock", "locked"),
        ("limit", "limits"),
        ("foo", ""),
        ("", ""),
        ("zzzzzzzz", ""),
        ("network" * 1000, "network"),
    ],
)
def test_nearest_known_key(word: str, expected: str) -> None:
    """POL-2, B14: a slip of the hand finds its key, another word finds none, and a huge one costs little."""
    assert nearest(word, KEYS) == expected


@pytest.mark.parametrize(
    ("left", "right", "steps"),
    [("", "", 0), ("a", "", 1), ("ask", "aks", 1), ("deny", "dney", 1), ("allow", "allwo", 1), ("tls", "xyz", 3)],
)
def test_distance_counts_edits_and_swaps(left: str, right: str, steps: int) -> None:
    """One edit or one swap of neighbours is one step."""
    assert distance(left, right) == steps


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_distance_is_symmetric_and_zero_only_for_equals(left: str, right: str) -> None:
    """The distance behaves like one."""
    assert distance(left, right) == distance(right, left)
    assert (distance(left, right) == 0) == (left == right)
