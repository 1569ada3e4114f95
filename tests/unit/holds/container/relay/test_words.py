"""What relays say to each other: values that older and newer ones must agree on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.holds.container.relay import words

if TYPE_CHECKING:
    import pytest


def test_what_is_said_is_told_apart() -> None:
    """HLD-4: one byte each; what is wanted has a socket of its own, and what is answered has none."""
    said = (words.GATE, words.LIFE, words.CAUGHT, words.LOOKUP, words.TOLD, words.OPEN, words.SHUT)
    assert len(set(said)) == len(said)
    assert {len(one) for one in said} == {1}
    assert set(words.NAMES) == set(said[:5])
    assert len(set(words.NAMES.values())) == 5
    assert (words.NAMES[words.GATE], words.NAMES[words.LIFE]) == ("gate.sock", "life.sock")


def test_a_relay_without_an_owner_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """HLD-8: the status by which its end is told from a failure."""
    assert words.alone() == 3
    assert capsys.readouterr().out == "tidegate-relay 1 nobody is there any more\n"
