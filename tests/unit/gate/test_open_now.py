"""tidegate.gate.open_now: what is open, by looking at real connections."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from tests.unit.gate.kit import Serving, policy_of, read_exactly, read_head, small, wait
from tests.unit.gate.test_asking import CONNECT, Office
from tidegate.gate.open_now import CONNECTING, OPEN, WAITING, Glance, open_now
from tidegate.model.question import Answer
from tidegate.model.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab

    Serve = Callable[..., Serving]


class Looking:
    """One who looks at the task of a gate, again and again."""

    def __init__(self, gate: Serving, most: int = 100) -> None:
        self._gate = gate
        self._most = most
        self._numbers = count(1)
        self.more = 0

    def now(self) -> list[Glance]:
        """Return what is open."""
        gate = self._gate
        found, self.more = gate.on_thread(
            lambda: open_now(gate.gate, [gate.task], self._most, lambda: next(self._numbers))
        )
        assert isinstance(found, list)
        return found


def test_a_tunnel_is_seen_with_its_bytes_and_keeps_its_number(lab: Lab) -> None:
    """SRV-3: from its opening to its end, and the line of its end carries the number."""
    lab.origin("raw", "1.2.3.4", 443)
    gate = Serving(policy_of("1.2.3.4:443"))
    try:
        look = Looking(gate)
        assert look.now() == []
        first, second = gate.tunnel("1.2.3.4:443"), gate.tunnel("1.2.3.4:443")
        before = look.now()
        assert [(one.entry.number, one.state, one.how, one.up, one.down) for one in before] == [
            (1, OPEN, "tunneled", 0, 0), (2, OPEN, "tunneled", 0, 0),
        ]  # fmt: skip
        second.sendall(b"\x00" * 300)
        assert read_exactly(second, 300)
        after = look.now()
        assert [(one.entry.number, one.up, one.down) for one in after] == [(1, 0, 0), (2, 300, 300)]
        assert all(one.is_as(other) for one, other in zip(after, before, strict=True))
        first.close()
        wait(lambda: len(look.now()) == 1)
        assert gate.event().seen == 1
        second.close()
        wait(lambda: look.now() == [])
        never = gate.tunnel("1.2.3.4:443")
        never.close()
        wait(lambda: len(gate.recording.events) == 3)
        assert [one.seen for one in gate.recording.events] == [1, 2, 0]
    finally:
        gate.stop()


def test_who_waits_for_a_person_is_seen_as_such(lab: Lab) -> None:
    """SRV-3, ASK-1: waiting, then open, under one number; refused ones and half-sent requests are not open."""
    lab.origin("raw", "1.2.3.4", 443)
    lab.dns.set("q.test", A=["1.2.3.4"])
    office = Office()
    gate = office.with_gate(Serving(policy_of(ask=("q.test",), deny=("no.test",)), asker=office.desk))
    try:
        look = Looking(gate)
        half = gate.connect()
        half.sendall(CONNECT[:20])
        assert b" 403 " in gate.raw(CONNECT.replace(b"q.test", b"no.test"))
        sock = gate.connect()
        sock.sendall(CONNECT)
        question = office.waiting()
        (one,) = look.now()
        assert one.decision is not None
        assert (one.entry.number, one.state, one.how, one.decision.verdict) == (1, WAITING, "", Verdict.ASK)
        office.desk.answer(question.id, Answer.ALLOW, by="a person")
        assert b" 200 " in read_head(sock)
        (other,) = look.now()
        assert other.decision is not None
        assert (other.entry.number, other.state, other.decision.verdict) == (1, OPEN, Verdict.ALLOW)
        assert not other.is_as(one)
        for opened in (sock, half):
            opened.close()
    finally:
        gate.stop()


def test_one_that_is_being_connected_is_seen(lab: Lab) -> None:
    """SRV-3: a name whose look-up takes its time."""
    lab.dns.set("slow.test", drop=True)
    gate = Serving(policy_of("slow.test:443"))
    try:
        sock = gate.connect()
        sock.sendall(CONNECT.replace(b"q.test", b"slow.test"))
        look = Looking(gate)
        wait(lambda: [one.state for one in look.now()] == [CONNECTING])
        sock.close()
    finally:
        gate.stop()


def test_a_plain_request_is_seen_while_its_answer_comes_and_not_between_two(lab: Lab) -> None:
    """SRV-3, GAT-3: a keep-alive connection is open to nowhere between its requests; each has a number of its own."""
    lab.origin("silent", "1.2.3.4", 80)
    gate = Serving(policy_of("1.2.3.4:80"))
    try:
        look = Looking(gate)
        sock = gate.connect()
        sock.sendall(b"GET http://1.2.3.4/ HTTP/1.1\r\nHost: 1.2.3.4\r\n\r\n")
        wait(lambda: [(one.state, one.how) for one in look.now()] == [(OPEN, "forwarded")])
        sock.close()
    finally:
        gate.stop()


def test_at_most_so_many_are_shown_and_those_that_are_stay(lab: Lab) -> None:
    """SRV-3: whoever was shown is shown to its end; the others count, and come when there is room."""
    lab.origin("raw", "1.2.3.4", 443)
    gate = Serving(policy_of("1.2.3.4:443", limits=small(connections=1000)))
    try:
        look = Looking(gate, most=10)
        tunnels = [gate.tunnel("1.2.3.4:443") for _ in range(30)]
        assert [one.entry.number for one in look.now()] == list(range(1, 11))
        assert look.more == 20
        for tunnel in tunnels[:3]:
            tunnel.close()
        wait(lambda: [one.entry.number for one in look.now()] == list(range(4, 14)))
        assert look.more == 17
        for tunnel in tunnels[3:]:
            tunnel.close()
    finally:
        gate.stop()
