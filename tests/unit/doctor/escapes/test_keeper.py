"""Whoever stands outside hears what the table's rows reach, by their names."""

from __future__ import annotations

from tidegate.doctor.escapes.attempt import attempt


def test_the_canaries_hear_who_gets_out() -> None:
    """In `open`, which shares the network, a neighbour reaches a listener by right, and nobody else was heard."""
    answer = attempt("open", rows=["the_machines_network", "io_uring"])
    assert answer["answers"]["the_machines_network"] == "passed"
    assert answer["heard"] == []


def test_what_the_kernel_lacks_is_asked_outside() -> None:
    """The answer says for each row that nobody could try why; they are rows of the table."""
    from tidegate.doctor.escapes import rows
    from tidegate.doctor.escapes.table import TABLE

    assert rows.__all__
    answer = attempt("offline", rows=["io_uring"])
    assert set(answer["missing"]) <= set(TABLE)
    assert all(answer["missing"].values())
