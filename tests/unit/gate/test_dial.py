"""The race over checked addresses (RFC 8305)."""

from __future__ import annotations

import socket
import time
from errno import ECONNREFUSED, EMFILE, ENETUNREACH, ETIMEDOUT
from typing import TYPE_CHECKING

import pytest

from tests.descriptors import descriptors
from tests.unit.gate.kit import small
from tidegate.gate import dial
from tidegate.gate.dial import MOST, Dial, alternate, begin, reason_of
from tidegate.gate.reactor import Reactor
from tidegate.model.reason import Reason
from tidegate.model.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]

A, B = b"\x01\x02\x03\x04", b"\x01\x02\x03\x05"
X, Y = b"\x26" + bytes(15), b"\x26" + bytes(14) + b"\x01"


@pytest.mark.parametrize(
    ("given", "tried"),
    [
        ((A,), [A]),
        ((X, Y, A, B), [X, A, Y, B]),
        ((A, X, Y), [A, X, Y]),
        ((A, B), [A, B]),
    ],
)
def test_families_take_turns_from_the_first_one(given: tuple[bytes, ...], tried: list[bytes]) -> None:
    """RFC 8305 section 4."""
    assert alternate(given) == tried


def test_a_name_with_hundreds_of_addresses_is_tried_a_few_times() -> None:
    """DESIGN rule 6: bounded."""
    assert len(alternate([bytes([1, 2, 3, n]) for n in range(200)])) == MOST


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (ECONNREFUSED, Reason.UPSTREAM_REFUSED),
        (ETIMEDOUT, Reason.UPSTREAM_TIMEOUT),
        (ENETUNREACH, Reason.UPSTREAM_UNREACHABLE),
        (EMFILE, Reason.OUT_OF_RESOURCES),
    ],
)
def test_each_errno_has_its_reason(number: int, reason: Reason) -> None:
    """GAT-7: failures are told apart."""
    assert reason_of(number) is reason


def test_loopback_is_there_at_once() -> None:
    """GAT-11: no turn of the loop is needed; a closed port says so at once too, and leaves no descriptor."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        sock, number = begin(b"\x7f\0\0\x01", "127.0.0.1", server.getsockname()[1])
        assert sock is not None
        assert number == 0
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        sock.close()
        port = server.getsockname()[1]
    before = descriptors()
    assert begin(b"\x7f\0\0\x01", "127.0.0.1", port) == (None, ECONNREFUSED)
    assert descriptors() <= before


def race(addresses: tuple[str, ...], port: int, **limits: float) -> tuple[str, Reason | None, tuple[str, ...], float]:
    """Run one race on a reactor of its own: the winner, or why there is none, and how long it took."""
    reactor = Reactor(time.monotonic)
    result: list[tuple[str, Reason | None, tuple[str, ...]]] = []

    def done(sock: object, address: str, error: object) -> None:
        if sock is not None:
            sock.close()  # type: ignore[attr-defined]
        result.append((address, getattr(error, "reason", None), getattr(error, "tried", ())))
        reactor.stop()

    packed = [socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text) for text in addresses]
    began = time.monotonic()
    racing = Dial(reactor, packed, port, small(**limits), done)
    if not racing.finished:
        reactor.run()
    took = time.monotonic() - began
    assert reactor.timers == 0
    assert not reactor.table
    reactor.close()
    return (*result[0], took)


def test_a_dead_ipv6_address_costs_a_quarter_of_a_second(lab: Lab) -> None:
    """B68: the black hole is not waited for."""
    lab.origin("raw", "1.2.3.4", 443)
    winner, reason, _, took = race((lab.BLACK_HOLE6 if lab.ipv6 else lab.BLACK_HOLE4, "1.2.3.4"), 443)
    assert (winner, reason) == ("1.2.3.4", None)
    assert 0.2 < took < 9  # where it would be waited for, ten


def test_an_address_that_fails_at_once_is_not_waited_for(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 8305 section 5: the next attempt starts when one fails."""
    monkeypatch.setattr(dial, "STAGGER", 60.0)
    lab.origin("raw", "1.2.3.4", 443)
    winner, _, _, took = race(("1.2.3.9", "1.2.3.4"), 443)
    assert winner == "1.2.3.4"
    assert took < 15


def test_all_that_failed_are_named(lab: Lab) -> None:
    """B68: refused beats silence as a reason; every address tried is listed."""
    _, reason, tried, _ = race(("1.2.3.9", lab.UNREACHABLE4), 443)
    assert reason is Reason.UPSTREAM_REFUSED
    assert tried == ("1.2.3.9", lab.UNREACHABLE4)


def test_one_address_and_the_whole_race_have_their_time(lab: Lab) -> None:
    """GAT-6: 10 s for each, 20 s in all (here shorter)."""
    hole = lab.BLACK_HOLE4
    _, reason, _, took = race((hole,), 443, connect_seconds=0.3)
    assert reason is Reason.UPSTREAM_TIMEOUT
    assert 0.25 < took < 9
    _, reason, _, took = race((hole,), 443, total_seconds=0.2)
    assert reason is Reason.UPSTREAM_TIMEOUT
    assert 0.15 < took < 9


def test_cancel_leaves_nothing(lab: Lab) -> None:
    """B67: no timer, no descriptor, no call."""
    reactor = Reactor(time.monotonic)
    before = descriptors()
    calls: list[object] = []
    packed = [socket.inet_aton(lab.BLACK_HOLE4)] * 2
    racing = Dial(reactor, packed, 443, small(), lambda *args: calls.append(args))
    assert not racing.finished
    racing.cancel()
    assert (reactor.timers, len(reactor.table), calls) == (0, 0, [])
    assert descriptors() <= before
    reactor.close()


def test_only_checked_addresses_are_raced(lab: Lab, serve: Serve) -> None:
    """B68, B23: [black hole, loopback] does not reach loopback however dead the first is."""
    lab.dns.set("a.test", A=[lab.BLACK_HOLE4, "127.0.0.1"])
    lab.dns.set("b.test", A=["1.2.3.9", "127.0.0.1"])
    canary = lab.canary("127.0.0.1", 443)
    gate = serve("*")
    for name in ("a.test", "b.test"):
        answer = gate.raw(f"CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert b"own-address" in answer
    assert canary.connections == 0
    assert {event.verdict for event in gate.events(2)} == {Verdict.DENY}


def test_failures_reach_the_client_with_their_status(lab: Lab, serve: Serve) -> None:
    """GAT-7, GAT-6: refused is 502, silence 504, no way there 502; the line names what was tried."""
    lab.dns.set("refused.test", A=["1.2.3.9"])
    lab.dns.set("silent.test", A=[lab.BLACK_HOLE4])
    lab.dns.set("nowhere.test", A=[lab.UNREACHABLE4])
    gate = serve("*", limits=small(connect_seconds=0.3))
    for name, status, word, reason in (
        ("refused", 502, b"connection_refused", Reason.UPSTREAM_REFUSED),
        ("silent", 504, b"connection_timeout", Reason.UPSTREAM_TIMEOUT),
        ("nowhere", 502, b"destination_ip_unroutable", Reason.UPSTREAM_UNREACHABLE),
    ):
        answer = gate.raw(f"CONNECT {name}.test:443 HTTP/1.1\r\nHost: {name}.test:443\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 %d " % status)
        assert word in answer
        assert b"tried 1.2." in answer or b"tried " in answer
        assert gate.recording.events[-1].reason is reason
