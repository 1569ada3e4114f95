"""The table of stages."""

from __future__ import annotations

from tidegate.gate.states import TRANSITIONS, Stage


def test_the_table_is_whole_and_ends() -> None:
    """DESIGN rule 9: a row for each stage; every stage can close, nothing leaves CLOSED."""
    assert len(TRANSITIONS) == len(Stage)
    for stage in Stage:
        assert (Stage.CLOSED in TRANSITIONS[stage]) is (stage is not Stage.CLOSED)
    assert TRANSITIONS[Stage.CLOSED] == ()


def test_a_refused_connection_is_never_read_as_a_request_again() -> None:
    """B37, B73: no way from REFUSING to HEAD; none to TUNNEL that skips the verdict's stages backwards."""
    assert TRANSITIONS[Stage.REFUSING] == (Stage.CLOSED,)
    assert Stage.ASKING not in TRANSITIONS[Stage.RESOLVING]
    assert Stage.RESOLVING not in TRANSITIONS[Stage.DIALING]
