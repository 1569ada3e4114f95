"""Proves what a task's resolver answers (HLD-6, JRN-3), through its sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dns.edns
import dns.flags
import dns.message
import dns.rcode
import dns.reversename
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.gate.kit import Serving, policy_of
from tidegate.gate.names import Names
from tidegate.gate.synthetic import Synthetic
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.captive import Captive

    Capturing = Callable[..., tuple[Serving, Captive]]
    Serve = Callable[..., Serving]


class Resolver:
    """A task's names without sockets, on a gate that is not asked for anything else."""

    def __init__(self, gate: Serving, **options: Any) -> None:
        self.gate = gate
        self.synthetic = Synthetic(most=options.pop("most", 100))
        self.names = Names(gate.gate, gate.task, self.synthetic, options.pop("own", frozenset()), **options)

    def ask(self, name: str, kind: str = "A", *, stream: bool = True, **more: Any) -> dns.message.Message:
        """Ask one question and return the answer as dnspython reads it."""
        query = dns.message.make_query(name, kind, **more)
        answer = dns.message.from_wire(self.names.answer(query.to_wire(), stream=stream))
        assert query.is_response(answer)
        return answer

    def say(self, name: str, kind: str = "A", **more: Any) -> str:
        """Return the response code, or the data of the answers."""
        answer = self.ask(name, kind, **more)
        if answer.rcode():
            return dns.rcode.to_text(answer.rcode())
        return " ".join(record.to_text() for records in answer.answer for record in records) or "NODATA"


@pytest.fixture
def resolver(serve: Serve) -> Callable[..., Resolver]:
    """Make a resolver: `resolver("a.test:80", deny=(…))`."""

    def make(*allow: str, **options: Any) -> Resolver:
        mine = {name: options.pop(name) for name in ("most", "own", "ipv6") if name in options}
        return Resolver(serve(*allow, **options), **mine)

    return make


def test_reachable_names_have_addresses_and_no_other_data(resolver: Callable[..., Resolver]) -> None:
    """HLD-6, INS-9: A and AAAA; NODATA for every other type, HTTPS and SVCB first."""
    names = resolver("a.test:443")
    assert names.say("a.test") == "198.18.1.1"
    assert names.say("A.tEst.", "AAAA") == "fd74:6467:6174:6500::101"
    for kind in ("HTTPS", "SVCB", "TXT", "MX", "SRV", "NS", "SOA", "CNAME", "PTR", "TLSA", "CAA", "ANY", "DS"):
        assert names.say("a.test", kind) == "NODATA", kind
    assert names.gate.recording.events == []


def test_asked_names_have_addresses_and_nobody_is_asked(serve: Serve) -> None:
    """HLD-6, ASK-1: a look-up never opens a question."""
    names = Resolver(serve("b.test:443", ask=("a.test:443",), asker=_Nobody()))
    assert names.say("a.test") == "198.18.1.1"
    assert names.say("c.test") == "NXDOMAIN"


class _Nobody:
    def ask(self, *_: object) -> None:
        raise AssertionError("a question was opened")


def test_a_task_without_tools_is_told_what_gives_them(resolver: Callable[..., Resolver]) -> None:
    """SRV-6: a rule for that name would reach nothing; the name itself is no secret and does not exist here."""
    names = resolver("a.test:443")
    assert names.say("tools.tidegate.internal") == "NXDOMAIN"
    (event,) = names.gate.recording.events
    assert (event.host, event.reason, event.fix) == ("tools.tidegate.internal", Reason.NO_TOOLS, "--tool NAME")


def test_any_other_name_does_not_exist(resolver: Callable[..., Resolver]) -> None:
    """HLD-6, JRN-3: NXDOMAIN for every type, with an extended error that names the reason; recorded with what helps."""
    names = resolver("a.test:443", deny=("d.test",))
    for kind in ("A", "AAAA", "HTTPS", "TXT"):
        assert names.say("b.test", kind) == "NXDOMAIN"
    (option,) = names.ask("d.test", use_edns=0).options
    assert (int(option.code), option.text) == (15, "a rule denies it (command-line)")
    first, second = names.gate.recording.events
    assert (first.host, first.port, first.method, first.how) == ("b.test", 0, "DNS", How.REFUSED)
    assert (first.reason, first.verdict, first.fix) == (Reason.NO_RULE, Verdict.DENY, "--allow b.test")
    assert (second.host, second.reason, second.rule, second.fix) == ("d.test", Reason.DENY_RULE, "d.test", "")


def test_one_look_up_of_all_its_types_is_one_line(resolver: Callable[..., Resolver]) -> None:
    """JRN-3: A, AAAA and HTTPS together are one refusal; the same type again, or another name between, is the next."""
    names = resolver()
    for name, kinds in (("b.test", "A AAAA HTTPS"), ("b.test", "A AAAA"), ("c.test", "A"), ("b.test", "AAAA A")):
        for kind in kinds.split():
            names.say(name, kind)
    assert [event.host for event in names.gate.recording.events] == ["b.test", "b.test", "c.test", "b.test"]


@pytest.mark.parametrize(
    "name", ["a\\.b.test", "a\\000.test", "h\\195\\182st.test", "*.a.test", "a b.test", "127.1", "1.2.3.4", "\\[::1\\]"]
)
def test_what_is_no_host_name_does_not_exist(resolver: Callable[..., Resolver], name: str) -> None:
    """POL-3, HLD-6: under `*` too; recorded escaped."""
    names = resolver("*", "a.b.test", "1.2.3.4")
    assert names.say(name) == "NXDOMAIN"
    (event,) = names.gate.recording.events
    assert event.reason is Reason.BAD_HOST
    assert event.host.isprintable()
    assert len(names.synthetic) == 0
    assert names.say("a.b.test") == "198.18.1.1"


def test_localhost_is_the_tasks_own_loopback(resolver: Callable[..., Resolver]) -> None:
    """RFC 6761 section 6.3, ADR-4: under any policy; so are the names the task itself goes by. Neighbours are not."""
    names = resolver(own=frozenset({"box"}))
    for name in ("localhost", "LocalHost.", "x.y.localhost", "box"):
        assert names.say(name) == "127.0.0.1"
        assert names.say(name, "AAAA") == "::1"
        assert names.say(name, "MX") == "NODATA"
    for name in ("localhost.test", "xlocalhost", "box.test", "x.box"):
        assert names.say(name) == "NXDOMAIN"


def test_without_ipv6_no_name_has_such_an_address(resolver: Callable[..., Resolver]) -> None:
    """A kernel without IPv6: clients must not try it first."""
    names = resolver("a.test", ipv6=False)
    assert names.say("a.test", "AAAA") == "NODATA"
    assert names.say("localhost", "AAAA") == "NODATA"
    assert names.say("a.test") == "198.18.1.1"


def test_reverse_names_of_given_addresses(resolver: Callable[..., Resolver]) -> None:
    """HLD-6: the name of a synthetic address and of loopback; others have none, are not recorded, and go nowhere."""
    names = resolver("a.test")
    assert names.say("1.1.18.198.in-addr.arpa", "PTR") == "NXDOMAIN"
    names.say("a.test")
    assert names.say("1.1.18.198.in-addr.arpa", "PTR") == "a.test."
    assert names.say("1.1.18.198.in-addr.arpa", "TXT") == "NODATA"
    assert names.say(dns.reversename.from_address("fd74:6467:6174:6500::101").to_text(), "PTR") == "a.test."
    assert names.say("1.0.0.127.in-addr.arpa", "PTR") == "localhost."
    for other in ("2.1.18.198.in-addr.arpa", "8.8.8.8.in-addr.arpa"):
        assert names.say(other, "PTR") == "NXDOMAIN"
    assert names.gate.recording.events == []


def test_when_all_addresses_are_given_it_fails_and_says_so(resolver: Callable[..., Resolver]) -> None:
    """HLD-6: SERVFAIL with a text and on record; names that have an address keep it."""
    names = resolver("*", most=2)
    assert [names.say(f"h{number}.test") for number in range(3)] == ["198.18.1.1", "198.18.1.2", "SERVFAIL"]
    (option,) = names.ask("h4.test", use_edns=0).options
    assert option.text == Reason.TOO_MANY_NAMES.sentence
    assert [event.reason for event in names.gate.recording.events] == [Reason.TOO_MANY_NAMES] * 2
    assert names.say("h0.test", "AAAA") == "fd74:6467:6174:6500::101"


def test_policy_and_phase_count_at_each_look_up(resolver: Callable[..., Resolver]) -> None:
    """POL-7: after a change a denied name is gone, and has its old address when it comes back."""
    names = resolver("a.test", "b.test")
    assert names.say("b.test") == "198.18.1.1"
    assert names.say("a.test") == "198.18.1.2"
    task = names.gate.task
    task.change(policy=policy_of("b.test"))
    assert names.say("a.test") == "NXDOMAIN"
    task.change(policy=policy_of("a.test"))
    assert names.say("a.test") == "198.18.1.2"
    task.change(policy=policy_of("a.test", closed_phases=frozenset(Phase)))
    assert names.say("a.test") == "198.18.1.2"


def test_what_is_no_question_for_us(resolver: Callable[..., Resolver]) -> None:
    """Other classes and transfers REFUSED, an unknown EDNS version BADVERS, the root NODATA, malformed on record."""
    names = resolver("*")
    assert names.say("version.bind", "TXT", rdclass="CH") == "REFUSED"
    assert names.say("a.test", "AXFR") == "REFUSED"
    assert names.say("a.test", use_edns=1) == "BADVERS"
    assert names.say(".", "NS") == "NODATA"
    assert names.gate.recording.events == []
    assert names.names.answer(b"\0\1\1\0\0\2" + bytes(6), stream=False)[3] & 15 == dns.rcode.FORMERR
    assert names.names.answer(b"\0\1\x81\0\0\2" + bytes(6), stream=False) == b""
    assert [event.reason for event in names.gate.recording.events] == [Reason.BAD_DNS] * 2
    assert len(names.synthetic) == 0


def test_any_bytes_have_an_answer_or_none(resolver: Callable[..., Resolver]) -> None:
    """The invariant of the resolver: it never fails, and what it says is a response to what was asked."""
    names = resolver("*", deny=("d.test",), most=20)
    starts = [
        dns.message.make_query(name, "A", use_edns=edns).to_wire()
        for name in ("a.test", "d.test")
        for edns in (0, False)
    ]

    @given(
        st.sampled_from(starts), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), max_size=5), st.booleans()
    )
    def answer(start: bytes, changes: list[tuple[int, int]], stream: bool) -> None:
        data = bytearray(start)
        for at, value in changes:
            data[at % len(data)] = value
        said = names.names.answer(bytes(data), stream=stream)
        if said:
            assert said[:2] == data[:2]
            assert dns.message.from_wire(said).flags & dns.flags.QR
            assert stream or len(said) <= 1232

    answer()


def test_no_look_up_ever_leaves(lab: Lab, capture: Capturing) -> None:
    """HLD-6, B29: allowed, asked, denied, odd and very long names, over the task's own C library; not one packet."""
    lab.dns.set("*.test", A=["1.2.3.4"])
    gate, captive = capture("a.test:443", "*.ok.test", ask=("q.test",))
    secret = "x" * 60
    for name in ("a.test", "q.test", "secret.ok.test", "denied.test", f"{secret}.{secret}.{secret}.denied.test"):
        program = (
            f"import socket\ntry: print(socket.getaddrinfo({name!r}, 443)[0][4][0])\nexcept OSError as e: print(e)"
        )
        _, out, _ = captive.run("python3", "-c", program)
        assert ("198.18." in out or "fd74:" in out) is ("denied" not in name)
        if "denied" in name:
            assert "Name or service not known" in out
    assert lab.dns.queries == []
    assert gate.gate._resolver is None  # what asks others, with threads of its own, was not even made
    assert {event.host for event in gate.recording.events} == {"denied.test", f"{secret}.{secret}.{secret}.denied.test"}
