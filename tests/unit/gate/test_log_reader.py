"""A log is read as it comes, in parts, and whatever is wrong with a message the next is read (JRN-3)."""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.test_turned_away import FakeGate
from tidegate.gate import log_reader
from tidegate.gate.log_reader import BATCH, LogReader
from tidegate.model.reason import Reason
from tidegate.wire import netlink
from tidegate.wire.attempt import Attempt

if TYPE_CHECKING:
    from collections.abc import Iterator

    Log = tuple[LogReader, socket.socket, list[Attempt]]


def _parse(data: bytes) -> list[Attempt]:
    if data == b"odd":
        raise netlink.malformed("odd")
    return [Attempt("udp", data.ljust(4), 1)]


@pytest.fixture
def log() -> Iterator[Log]:
    """A reader, the kernel's end of its log, and what was told."""
    gate, told = FakeGate(), []
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    reader = LogReader(gate, there.detach(), _parse, told.append)  # type: ignore[arg-type]
    yield reader, here, told
    reader.close()
    here.close()
    gate.reactor.close()


def test_a_few_in_one_turn_and_the_rest_in_the_next(log: Log) -> None:
    """JRN-3: a flood of messages does not keep the gate from its connections."""
    reader, kernel, told = log
    kernel.setblocking(False)
    sent = 0
    while sent < BATCH + 5:
        try:
            kernel.send(b"m")
            sent += 1
        except BlockingIOError:  # the queue of a socket pair is short
            break
    reader.ready(0, 0)
    assert len(told) == min(sent, BATCH)
    reader.ready(0, 0)
    assert len(told) == sent


def test_everything_that_waits_can_be_taken_at_once(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """HLD-3: before a user is another task's nothing of the last one is left in the log; without end it is not read."""
    reader, kernel, told = log
    monkeypatch.setattr(log_reader, "BATCH", 2)
    for _ in range(5):
        kernel.send(b"m")
    reader.drain()
    assert len(told) == 5
    monkeypatch.setattr(log_reader, "TURNS", 2)
    for _ in range(5):
        kernel.send(b"m")
    reader.drain()
    assert len(told) == 9


def test_what_is_not_understood_is_passed_over(log: Log) -> None:
    """One odd message costs itself only."""
    reader, kernel, told = log
    for data in (b"1", b"odd", b"2"):
        kernel.send(data)
    reader.ready(0, 0)
    assert [one.address for one in told] == [b"1   ", b"2   "]
    assert reader.not_understood == 1


@pytest.mark.parametrize("number", [errno.ENOBUFS, errno.EPIPE])
def test_what_the_kernel_dropped_is_noted_and_the_rest_read(
    log: Log, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """JRN-3: a full buffer is told once by an error; another error ends the log, and only it."""
    reader, kernel, told = log
    errors = [OSError(number, "dropped")]
    read = os.read

    def failing(fd: int, size: int) -> bytes:
        if errors:
            raise errors.pop()
        return read(fd, size)

    monkeypatch.setattr(log_reader.os, "read", failing)
    kernel.send(b"after")
    reader.ready(0, 0)
    assert (reader.dropped, len(told)) == (1, 1)
    errors.append(OSError(errno.EIO, "broken"))
    reader.ready(0, 0)
    kernel.setblocking(False)
    with pytest.raises(OSError, match=r"."):
        kernel.send(b"x")


def test_the_end_takes_what_is_there(log: Log) -> None:
    """A log that is cut has told of everything until then."""
    reader, kernel, told = log
    kernel.send(b"last")
    reader.cut(Reason.STOPPING)
    assert len(told) == 1
    reader.close()
    reader.ready(0, 0)
