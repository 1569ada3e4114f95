"""What entries say of themselves."""

from __future__ import annotations

import pytest

from tidegate.policy.dialects.imported import ASIDE, DROPPED, EXACTLY, NARROWER, Entry, Imported


@pytest.mark.parametrize(
    ("how", "became", "why", "said"),
    [
        (EXACTLY, ("allow a",), "", "f:2:3: hosts 'x' -> allow a (kept exactly)"),
        (NARROWER, ("allow a", "allow b"), "less", "f:2:3: hosts 'x' -> allow a, allow b (narrower: less)"),
        (DROPPED, (), "no form", "f:2:3: hosts 'x' -> dropped: no form"),
        (ASIDE, (), "elsewhere", "f:2:3: hosts 'x' -> not part of a policy: elsewhere"),
    ],
)
def test_a_line_for_each_entry(how: str, became: tuple[str, ...], why: str, said: str) -> None:
    """POL-15: the place in the source, what it was, and what it became or why it did not."""
    assert str(Entry("f", 2, 3, "hosts", "x", how, became, why)) == said


def test_a_line_is_safe_and_bounded() -> None:
    """ASK-6: text of the file moves no cursor, and does not fill the screen."""
    line = str(Entry("f\x1b", 1, 1, "w", "\u202ea\n" * 200, EXACTLY, tuple(f"allow h{n}" for n in range(50))))
    assert line.isprintable()
    assert len(line) < 400
    assert "and 42 more" in line


def test_the_summary_counts() -> None:
    """POL-15: one clause, for a run and for the head of the policy."""
    entries = tuple(Entry("f", 1, 1, "", "", how) for how in (EXACTLY, EXACTLY, NARROWER, DROPPED, ASIDE))
    summary = Imported("kraft", "Kraft", "f", entries, (), ()).summary
    assert summary == "f is Kraft's: 2 entries kept exactly, 1 narrower, 1 dropped"
