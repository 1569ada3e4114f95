"""tidegate.holds.container.life: beats, answers and silence, by a clock of the test's."""

from __future__ import annotations

import socket

from tidegate.holds.container.life import BEAT, SILENT, Life


def _pair() -> tuple[Life, socket.socket, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    for one in (ours, theirs):
        one.setblocking(False)
    return Life(ours), ours, theirs


def test_it_beats_and_what_is_not_answered_is_silence() -> None:
    """HLD-7: from the first beat that nobody gave back; one answer is enough."""
    life, ours, theirs = _pair()
    assert life.silence(100.0) == 0
    assert life.beat(100.0) == BEAT
    assert 0 < life.beat(100.1) < BEAT
    assert theirs.recv(9) == b"+"
    for step in range(1, 4):
        life.beat(100.0 + step * BEAT)
    assert life.silence(101.5) > SILENT
    theirs.send(b"+")
    assert life.hear()
    assert life.silence(101.5) == 0
    assert life.hear()  # nothing is there: that is no end
    theirs.close()
    assert not life.hear()
    life.beat(200.0)  # nobody is there: that is heard of, and not raised
    ours.close()


def test_it_says_when_nobody_is_to_be_let_in() -> None:
    """HLD-7: at once, and again when somebody is."""
    life, ours, theirs = _pair()
    life.beat(1.0)
    life.shut(shut=True)
    life.beat(1.1)
    life.shut(shut=False)
    life.beat(1.2)
    assert theirs.recv(9) == b"+-+"
    ours.close()
    theirs.close()
