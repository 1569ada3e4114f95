"""A task's own log: what arrives is recorded; whatever else is there is passed over."""

from __future__ import annotations

import socket

import pytest

from tests.unit.wire.test_nflog import ipv4, ipv6, packet_message
from tidegate.gate.reactor import Reactor
from tidegate.gate.turned_away import TurnedAway
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
