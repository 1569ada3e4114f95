"""Channels: bounded, in order, and ended from either side (HLD-9, HLD-13)."""

from __future__ import annotations

import os
import select
import socket

from tidegate.runtime.relay import ROOM, Channel


def fill(fd: int) -> int:
    """Fill a pipe or socket until it takes no more, and return how much that was."""
    os.set_blocking(fd, False)
    total = 0
    try:
        while True:
            total += os.write(fd, b"z" * 4096)
    except BlockingIOError:
        return total


def pipe() -> tuple[int, int]:
    """Return a pipe whose ends do not wait."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    return reading, writing


def close(*fds: int) -> None:
    """Close descriptors."""
    for fd in fds:
        os.close(fd)


def is_open(fd: int) -> bool:
    """Whether the descriptor is open."""
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_bytes_go_through_in_order_and_the_end_after_them() -> None:
    """What comes in goes out; the end of the source closes the sink once all is written."""
    source, feed = pipe()
    drain, sink = pipe()
    channel = Channel(source, sink, close_source=True, close_sink=True)
    os.write(feed, b"one ")
    assert channel.wants_read
    assert channel.read() == 0
    os.write(feed, b"two")
    os.close(feed)
    channel.read()
    assert not channel.done
    channel.read()
    assert channel.done
    assert os.read(drain, 100) == b"one two"
    assert os.read(drain, 100) == b""
    assert not is_open(source)
    assert not is_open(sink)
    os.close(drain)


def test_a_sink_that_takes_nothing_stops_the_reading() -> None:
    """Memory is bounded: a full sink means that no more than one room is kept, and the source is left alone."""
    source, feed = pipe()
    drain, sink = pipe()
    fill(sink)
    channel = Channel(source, sink)
    taken = 0
    while channel.wants_read:
        taken += fill(feed)
        channel.read()
    assert channel.wants_write
    assert not channel.write()
    assert taken <= ROOM + fill(feed) + (1 << 20)
    while os.read(drain, 65536)[-1:] == b"z" and channel.wants_write:
        channel.write()
    assert channel.wants_read
    close(source, feed, drain, sink)


def test_the_last_bytes_wait_for_a_slow_sink_before_the_end() -> None:
    """End of the source with bytes still held: the sink stays open until it has taken them."""
    source, feed = pipe()
    drain, sink = pipe()
    full = fill(sink)
    channel = Channel(source, sink, close_sink=True)
    os.write(feed, b"last")
    os.close(feed)
    channel.read()
    channel.read()
    assert channel.ended
    assert not channel.done
    assert is_open(sink)
    assert len(os.read(drain, full)) == full
    channel.write()
    assert channel.done
    assert os.read(drain, 100) == b"last"
    assert os.read(drain, 100) == b""
    close(source, drain)


def test_a_reader_that_leaves_closes_the_source() -> None:
    """An error on the sink is passed back: whoever writes to the source gets its SIGPIPE."""
    source, feed = pipe()
    drain, sink = pipe()
    channel = Channel(source, sink, close_source=True)
    os.close(drain)
    os.write(feed, b"x")
    channel.read()
    assert channel.broken
    assert channel.done
    assert not is_open(source)
    close(feed, sink)


def test_a_paused_channel_reads_nothing_but_writes_what_it_has() -> None:
    """The keyboard is left to others while it is not the task's; what was read before still arrives."""
    source, feed = pipe()
    drain, sink = pipe()
    channel = Channel(source, sink)
    channel.feed(b"before")
    channel.paused = True
    assert not channel.wants_read
    assert channel.wants_write
    assert channel.write()
    assert os.read(drain, 100) == b"before"
    close(source, feed, drain, sink)


def test_each_chunk_can_be_changed_on_its_way() -> None:
    """The transform gets what was read and says what is written."""
    source, feed = pipe()
    drain, sink = pipe()
    channel = Channel(source, sink, transform=bytes.upper)
    os.write(feed, b"quiet")
    assert channel.readable()
    channel.read()
    assert not channel.readable()
    assert os.read(drain, 100) == b"QUIET"
    close(source, feed, drain, sink)


def test_sockets_are_used_without_waiting_and_without_changing_them() -> None:
    """A socket that others share stays blocking for them, while the channel never waits on it."""
    ours, theirs = socket.socketpair()
    other, peer = socket.socketpair()
    with ours, theirs, other, peer:
        channel = Channel(theirs.fileno(), other.fileno())
        assert channel.read() == 0  # nothing there: it did not wait
        ours.sendall(b"data")
        channel.read()
        assert peer.recv(100) == b"data"
        assert os.get_blocking(theirs.fileno())
        assert os.get_blocking(other.fileno())
        sent = 0
        while channel.wants_read:
            ours.send(b"y" * 4096)
            sent += 4096
            channel.read()
        assert channel.wants_write
        ours.shutdown(socket.SHUT_WR)
        got = 0
        while got < sent:
            got += len(peer.recv(65536))
            channel.write()
            channel.read() if channel.wants_read else None
        assert got == sent


def test_a_blocked_channel_keeps_what_it_reads_and_says_what_it_wrote() -> None:
    """ASK-5: output waits, up to its bound, while something else has the terminal."""
    source, feeding = pipe()
    reading, sink = pipe()
    channel = Channel(source, sink)
    wrote: list[bytes] = []
    channel.wrote = wrote.append
    channel.blocked = True
    os.write(feeding, b"held")
    masks: dict[int, int] = {}
    channel.watch(masks)
    assert masks == {source: select.POLLIN}
    assert channel.move({source: select.POLLIN})
    assert not channel.wants_write
    assert not channel.move({sink: select.POLLOUT})
    assert wrote == []
    channel.blocked = False
    os.write(feeding, b" back")
    assert channel.move({sink: select.POLLOUT})
    channel.settle()
    assert os.read(reading, 100) == b"held back"
    assert wrote == [b"held", b" back"]
    close(source, feeding, reading, sink)
