"""Proves what is recorded of attempts that went around the gate (JRN-3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.gate.kit import wait
from tidegate.gate import bursts
from tidegate.gate.bursts import KINDS, WINDOW
from tidegate.gate.direct import DirectAttempts
from tidegate.gate.synthetic import Synthetic
from tidegate.model.host import Host
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]

GOOGLE = bytes([8, 8, 8, 8])


def test_an_attempt_has_address_and_port(serve: Serve) -> None:
    """JRN-3: UDP to an address, ICMP without a port; under rules that would let TCP there too."""
    gate = serve("8.8.8.8:443", "*")
    attempts = DirectAttempts(gate.gate, gate.task)
    gate.on_thread(lambda: attempts.record("udp", GOOGLE, 443))
    gate.on_thread(lambda: attempts.record("icmp", bytes(15) + b"\2", 0))
    udp, icmp = gate.events(2)
    assert (udp.host, udp.port, udp.method, udp.reason) == ("8.8.8.8", 443, "UDP", Reason.NOT_TCP)
    assert (udp.verdict, udp.how, udp.fix, udp.count) == (Verdict.DENY, How.REFUSED, "", 1)
    assert (icmp.host, icmp.port, icmp.method) == ("::2", 0, "ICMP")


def test_a_synthetic_address_is_its_name(serve: Serve) -> None:
    """QUIC to a name that was looked up is on record by that name."""
    gate = serve("a.test")
    gate.task.synthetic = Synthetic()
    packed = gate.task.synthetic.address(Host("a.test"), ipv6=False)
    assert packed is not None
    attempts = DirectAttempts(gate.gate, gate.task)
    gate.on_thread(lambda: attempts.record("udp", packed, 443))
    assert (gate.event().host, gate.event().port) == ("a.test", 443)


def test_at_most_once_in_a_while_and_none_lost(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-3: the same address within 5 s is one line; what came meanwhile is the count of the next."""
    assert WINDOW == 5.0
    monkeypatch.setattr(bursts, "WINDOW", 0.2)
    gate = serve()
    attempts = DirectAttempts(gate.gate, gate.task)
    for _ in range(10):
        gate.on_thread(lambda: attempts.record("udp", GOOGLE, 53))
    gate.on_thread(lambda: attempts.record("udp", GOOGLE, 54))
    wait(lambda: sum(event.count for event in gate.recording.events) == 11)
    assert sorted((event.port, event.count) for event in gate.recording.events) == [(53, 1), (53, 9), (54, 1)]
    wait(lambda: not gate.on_thread(lambda: attempts._bursts._counts))
    gate.on_thread(lambda: attempts.record("udp", GOOGLE, 53))
    assert gate.event(3).count == 1


def test_kinds_are_bounded_and_the_end_writes_the_rest(serve: Serve) -> None:
    """A task that tries 1,000 ports costs 256 counts; those that waited are written, also when all ends."""
    gate = serve()
    attempts = DirectAttempts(gate.gate, gate.task)

    def flood() -> None:
        for port in range(1, 1001):
            attempts.record("udp", GOOGLE, port)
            attempts.record("udp", GOOGLE, port)

    gate.on_thread(flood)
    assert len(attempts._bursts._counts) == KINDS
    gate.on_thread(attempts.close)
    assert sum(event.count for event in gate.recording.events) == 2000
    assert attempts._bursts._counts == {}


def test_tcp_around_the_gate_and_look_ups_have_reasons_of_their_own(serve: Serve) -> None:
    """JRN-3: a connection that did not go through the gate; look-ups without a place."""
    gate = serve("8.8.8.8:443")
    attempts = DirectAttempts(gate.gate, gate.task)
    gate.on_thread(lambda: attempts.record("tcp", GOOGLE, 443))
    gate.on_thread(attempts.record_dns)
    tcp, dns = gate.events(2)
    assert (tcp.host, tcp.port, tcp.method, tcp.reason) == ("8.8.8.8", 443, "TCP", Reason.AROUND_GATE)
    assert (dns.host, dns.port, dns.reason, dns.verdict) == (
        "DNS lookups (port 53)",
        0,
        Reason.DNS_AROUND,
        Verdict.DENY,
    )
