"""What a relay does with look-ups and with the log of what was turned away; the rest is in test_rules.py."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from tidegate.holds.container.relay.caught import LookUps, TurnedAway
from tidegate.holds.container.relay.pairs import Loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.holds.container.relay.caught import Connect


def head(number: int, rest: bytes = b"x") -> bytes:
    """A message of DNS's least size, of this number."""
    return number.to_bytes(2, "big") + bytes(10) + rest


def framed(message: bytes) -> bytes:
    """It, as on a stream."""
    return len(message).to_bytes(2, "big") + message


class Bench:
    """A loop, the gate's ends of its connections, and clients of its resolver."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.gates: list[socket.socket] = []
        self.server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.server.bind(("127.0.0.1", 0))

    @property
    def connect(self) -> Connect:
        """What leads to the gate, as the relay calls it."""

        def made(_kind: bytes, _name: bytes = b"") -> socket.socket:
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            theirs.settimeout(20)
            self.gates.append(theirs)
            return ours

        return made  # type: ignore[return-value]

    def client(self) -> socket.socket:
        """A client of the resolver."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.settimeout(20)
        sock.connect(self.server.getsockname())
        return sock

    def until(self, done: Callable[[], bool]) -> None:
        """Turn the loop until that is so."""
        for _ in range(2000):
            if done():
                return
            self.loop.turn(0.01)
        raise AssertionError("it does not come")

    def close(self) -> None:
        """Give all of it back."""
        for one in (*self.gates, self.server):
            one.close()
        self.loop.close()


def test_many_clients_share_one_stream_and_each_gets_its_own_answer() -> None:
    """B88: the same number from two clients, answered the other way round; what nobody asked goes nowhere."""
    bench = Bench()
    look_ups = LookUps(bench.loop, bench.connect, [bench.server])
    with bench.client() as one, bench.client() as two:
        one.send(head(7, b"one"))
        bench.until(lambda: bool(look_ups._waiting))
        two.send(head(7, b"two"))
        bench.until(lambda: len(look_ups._waiting) == 2)
        (gate,) = bench.gates
        said = gate.recv(1000)
        first, second = said[2:17], said[19:34]
        assert first[:2] != second[:2]
        assert (first[12:], second[12:]) == (b"one", b"two")
        gate.sendall(framed(head(999, b"nobody asked")) + framed(second + b"!")[:5])
        gate.sendall(framed(second + b"!")[5:] + framed(first + b"?"))
        bench.until(lambda: not look_ups._waiting)
        assert two.recv(100) == head(7, b"two!")
        assert one.recv(100) == head(7, b"one?")
    look_ups.cut()
    bench.close()


def test_a_look_up_is_asked_once_more_where_the_gate_let_the_stream_go() -> None:
    """HLD-6: an idle stream that ends in that very moment loses no look-up; one that ends again loses it, no more."""
    bench = Bench()
    look_ups = LookUps(bench.loop, bench.connect, [bench.server])
    with bench.client() as one:
        one.send(head(7, b"one"))
        bench.until(lambda: bool(bench.gates))
        bench.gates[0].close()
        bench.until(lambda: len(bench.gates) == 2)
        said = bench.gates[1].recv(1000)
        bench.gates[1].sendall(framed(said[2:]))
        bench.until(lambda: not look_ups._waiting)
        assert one.recv(100) == head(7, b"one")
        one.send(head(8, b"lost"))
        bench.until(lambda: bool(look_ups._waiting))
        bench.gates[1].close()
        bench.until(lambda: len(bench.gates) == 3)
        bench.gates[2].close()
        bench.until(lambda: not look_ups._waiting)
        assert len(bench.gates) == 3
    look_ups.cut()
    bench.close()


def test_what_is_no_look_up_goes_nowhere_and_a_flood_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """B88: too short, too long; no more are led on than so many, until one is answered, or is too old to count.

    So a task that stops asking has its resolver back in a moment, however much is held between here and the gate.
    """
    from tidegate.holds.container.relay import caught

    bench = Bench()
    look_ups = LookUps(bench.loop, bench.connect, [bench.server])
    for message in (b"", head(1)[:11], head(1, b"x" * caught.LONGEST)):
        look_ups.ask(bench.server, ("127.0.0.1", 9), message)
    assert bench.gates == []
    monkeypatch.setattr(caught, "STALE", 1e9)
    first = b""
    for number in range(caught.WAITING):
        look_ups.ask(bench.server, ("127.0.0.1", 9), head(number))
        said = bench.gates[0].recv(100)
        first = first or said
    bench.gates[0].settimeout(0)
    look_ups.ask(bench.server, ("127.0.0.1", 9), head(5000))
    with pytest.raises(BlockingIOError):
        bench.gates[0].recv(100)
    bench.gates[0].sendall(first)
    bench.until(lambda: len(look_ups._waiting) < caught.WAITING)
    look_ups.ask(bench.server, ("127.0.0.1", 9), head(6000))
    assert bench.gates[0].recv(100)
    monkeypatch.setattr(caught, "STALE", 0.0)
    look_ups.ask(bench.server, ("127.0.0.1", 9), head(7000))
    assert bench.gates[0].recv(100)
    numbers = [int.from_bytes(message[:2], "big") for _, _, message, _, _ in look_ups._waiting.values()]
    assert numbers == [*range(2, caught.WAITING), 6000, 7000]
    look_ups.cut()
    bench.close()


def test_what_was_turned_away_is_told_with_its_length() -> None:
    """JRN-3: each datagram of the log whole; where nobody listens it is dropped, and the next one finds who does."""
    bench = Bench()
    kernel, log = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    there = [False]

    def connect(kind: bytes, name: bytes = b"") -> socket.socket:
        if not there[0]:
            raise ConnectionRefusedError
        return bench.connect(kind, name)  # type: ignore[call-arg]

    told = TurnedAway(bench.loop, connect, log.detach())  # type: ignore[arg-type]
    kernel.send(b"dropped")
    bench.until(lambda: not _waits(told._log))
    there[0] = True
    kernel.send(b"one")
    kernel.send(b"two!")
    bench.until(lambda: bool(bench.gates) and not _waits(told._log))
    assert bench.gates[0].recv(100) == framed(b"one") + framed(b"two!")
    told.cut()
    bench.loop.forget(told._log)
    os.close(told._log)
    kernel.close()
    bench.close()


def _waits(fd: int) -> bool:
    import select

    return bool(select.select([fd], [], [], 0)[0])
