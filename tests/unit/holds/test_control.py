"""Messages between front and init."""

from __future__ import annotations

import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.holds import control


def test_messages_and_descriptors_arrive_one_by_one() -> None:
    """A message is one packet; descriptors come with theirs and are not inherited by a command."""
    here, there = control.pair()
    reading, writing = os.pipe()
    control.send(here, "listener", (reading, writing))
    control.send(here, "probed")
    received = control.receive(there)
    assert received is not None
    message, descriptors = received
    assert message == "listener"
    assert [os.get_inheritable(fd) for fd in (here, there, *descriptors)] == [False] * 4
    os.write(descriptors[1], b"x")
    assert os.read(reading, 1) == b"x"
    assert control.receive(there) == ("probed", [])
    os.close(here)
    assert control.receive(there) is None
    for fd in (there, reading, writing, *descriptors):
        os.close(fd)


def test_sending_to_nobody_is_an_error_and_no_signal() -> None:
    """The other side may be gone; the process does not die of SIGPIPE."""
    here, there = control.pair()
    os.close(there)
    with pytest.raises(OSError, match="pipe"):
        control.send(here, "start")
    control.send_failed(here, "view", OSError(1, "no"))  # nobody to tell: silent
    os.close(here)


@given(st.sampled_from(["unshare", "view"]), st.integers(1, 133), st.text(max_size=6000))
def test_a_failure_survives_the_wire(stage: str, number: int, text: str) -> None:
    """Whatever the text of a failure is, stage and errno arrive, and the message stays one line."""
    here, there = control.pair()
    try:
        error = OSError(number, "x")
        error.filename = text
        control.send_failed(here, stage, error)
        received = control.receive(there)
        assert received is not None
        assert "\n" not in received[0]
        assert control.parse_failed(received[0])[:2] == (stage, number)
    finally:
        os.close(here)
        os.close(there)


def test_the_last_word_is_heard_of_who_left_without_listening() -> None:
    """HLD-7, HLD-12: what init says of its failure is read, also where our own message to it was not."""
    front, init = control.pair()
    control.send(front, "mapped")
    control.send(init, "unshared 7")
    control.send(init, "failed capture 2 the table")
    os.close(init)
    heard = [control.receive(front) for _ in range(3)]
    assert heard == [("unshared 7", []), ("failed capture 2 the table", []), None]
    os.close(front)


def test_nothing_more_of_who_left_without_listening() -> None:
    """The neighbour: it said nothing, and that is its end."""
    front, init = control.pair()
    control.send(front, "mapped")
    os.close(init)
    assert control.receive(front) is None
    os.close(front)


def test_an_error_without_errno_is_its_text() -> None:
    """A sentence for a person is passed on as it is."""
    here, there = control.pair()
    control.send_failed(here, "selftest", ValueError("the fence leaks"))
    received = control.receive(there)
    assert received is not None
    assert control.parse_failed(received[0]) == ("selftest", 0, "the fence leaks")
    os.close(here)
    os.close(there)


def test_closing_all_but_some() -> None:
    """Every descriptor above 2 is closed but those named, in whatever order they are (HLD-13)."""
    pid = os.fork()
    if pid == 0:
        wires = [socket.socket().detach() for _ in range(6)]
        kept = (wires[4], 1, wires[1], wires[1])
        control.close_all_but(kept)
        left = []
        for fd in wires:
            try:
                os.fstat(fd)
                left.append(fd)
            except OSError:
                continue
        os._exit(0 if left == [wires[1], wires[4]] else 1)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("said", [None, "watch"])
def test_who_waits_for_orders_ends_where_none_come(said: str | None) -> None:
    """HLD-7: the front is gone, or says so without what is answered at; the neighbour goes on with all it was given."""
    for sent in (said, "watch 7"):
        ours, theirs = control.pair()
        pid = os.fork()
        if pid == 0:
            os.close(ours)
            message, listener, own = control.orders(theirs)
            os._exit(7 if (message, len(own)) == ("watch 7", 1) and os.fstat(listener) else 1)
        os.close(theirs)
        if sent is not None:
            control.send(ours, sent, (0, 1) if sent == "watch 7" else ())
        os.close(ours)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == (7 if sent == "watch 7" else 0)
