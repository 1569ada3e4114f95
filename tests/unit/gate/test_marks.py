"""tidegate.gate.marks."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from tidegate.gate.marks import Marks

pytestmark = pytest.mark.usefixtures("isolated")


def test_a_mark_is_seen_by_others_and_goes_with_its_holder() -> None:
    """ADR-1, HLD-10: another gate sees the port and not its neighbours, in whatever order; afterwards it is free."""
    ours, theirs = Marks(), Marks()
    assert 18080 not in theirs
    ours.hold(18080)
    ours.hold(18080)
    assert [port for port in (18079, 18080, 18081) if port in theirs] == [18080]
    assert [port for port in (18080, 18081) if port in ours] == [18080]
    with pytest.raises(OSError, match=os.strerror(errno.EADDRINUSE)):
        theirs.hold(18080)
    ours.close()
    assert 18080 not in theirs
    theirs.hold(18080)
    theirs.close()


def test_a_mark_goes_with_its_process_however_it_ends() -> None:
    """HLD-8: a gate that was killed leaves no port protected."""
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        marks = Marks()
        marks.hold(18081)
        there.send(b"held")
        there.recv(1)
        os._exit(0)
    assert here.recv(4) == b"held"
    marks = Marks()
    assert 18081 in marks
    os.kill(child, 9)
    os.waitpid(child, 0)
    assert 18081 not in marks
    marks.close()
    here.close()
    there.close()


def test_without_a_descriptor_it_is_no_answer() -> None:
    """HLD-7: what cannot be asked is an error and never a no."""
    import resource

    marks = Marks()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
        with pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
            assert 18080 in marks
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert 18080 not in marks
    marks.close()
