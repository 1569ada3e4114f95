"""A task's own log: what arrives is recorded; whatever else is there is passed over."""

from __future__ import annotations

import os
import socket
import tempfile

import pytest

from tests.unit.wire.test_nflog import ipv4, ipv6, packet_message
from tidegate.gate.reactor import Reactor
from tidegate.gate.turned_away import TELLERS, Told, TurnedAway
from tidegate.model.reason import Reason

FOUR, SIX = bytes((1, 2, 3, 4)), socket.inet_pton(socket.AF_INET6, "2600:beef::1")


class FakeGate:
    """As much of a gate as a log needs."""

    def __init__(self) -> None:
        self.reactor = Reactor(lambda: 0.0, lambda _error: None)


def test_what_arrives_is_recorded_and_closing_lets_go() -> None:
    """The log is read until it is empty; after close nothing is, and the descriptor is given back."""
    gate, told = FakeGate(), []
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    reader = TurnedAway(gate, there.detach(), lambda *one: told.append(one))  # type: ignore[arg-type]
    here.send(packet_message(ipv4(17, 1)))
    here.send(b"junk")
    here.send(packet_message(ipv6(17, 2)))
    reader.ready(0, 0)
    assert told == [("udp", FOUR, 1), ("udp", SIX, 2)]
    here.send(packet_message(ipv4(17, 3)))
    reader.cut(Reason.STOPPING)
    assert told[2:] == [("udp", FOUR, 3)]
    reader.close()
    reader.ready(0, 0)
    with pytest.raises(OSError, match=r"."):
        here.send(b"x")
    here.close()
    gate.reactor.close()


def framed(*datagrams: bytes) -> bytes:
    """What a relay tells of these datagrams of its log."""
    return b"".join(len(one).to_bytes(2, "big") + one for one in datagrams)


def test_what_a_relay_tells_is_recorded_however_it_is_cut() -> None:
    """JRN-3: datagrams with their lengths, in any pieces; junk among them is passed over, and the next one counts."""
    gate, told = FakeGate(), []
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.join(folder, "told.sock"))
        server.listen(8)
        listener = Told(gate, os.dup(server.fileno()), lambda *one: told.append(one))  # type: ignore[arg-type]
        with socket.socket(socket.AF_UNIX) as relay:
            relay.connect(server.getsockname())
            listener.ready(0, 0)
            said = framed(packet_message(ipv4(17, 1)), packet_message(ipv6(17, 2)))
            for byte in said:
                relay.send(bytes((byte,)))
                listener.tellers[0].ready(0, 0)
            assert told == [("udp", FOUR, 1), ("udp", SIX, 2)]
            relay.send(framed(b"junk", packet_message(ipv4(17, 3))))
            listener.tellers[0].ready(0, 0)
            relay.send(framed(packet_message(ipv4(17, 4))))
            listener.tellers[0].ready(0, 0)
            assert told[2:] == [("udp", FOUR, 3), ("udp", FOUR, 4)]
            relay.send(framed(packet_message(ipv4(17, 5))))
            listener.cut(Reason.STOPPING)
            assert told[4:] == [("udp", FOUR, 5)]
            listener.cut(Reason.STOPPING)
    gate.reactor.close()


def test_relays_that_come_and_go_hoard_nothing() -> None:
    """No more than so many at once: the oldest goes; one that has left is forgotten."""
    gate = FakeGate()
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.join(folder, "told.sock"))
        server.listen(64)
        listener = Told(gate, os.dup(server.fileno()), lambda *_: None)  # type: ignore[arg-type]
        relays = []
        for _ in range(TELLERS * 3):
            relays.append(socket.socket(socket.AF_UNIX))
            relays[-1].connect(server.getsockname())
            listener.ready(0, 0)
        assert len(listener.tellers) == TELLERS
        for one in relays:
            one.close()
        for teller in listener.tellers:
            teller.ready(0, 0)
        assert not any(one.is_open for one in listener.tellers)
        listener.cut(Reason.STOPPING)
    gate.reactor.close()
