"""The gate and the desk together: real connections that wait for a person."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.gate.kit import Serving, client_hello, read_exactly, read_head, wait
from tests.unit.questions.kit import task as asking_task
from tidegate.model.question import Answer, Question, State, Terms
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Phase, Verdict
from tidegate.questions.shell import Desk

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tidegate.questions.values import QuestionEvent

    Serve = Callable[..., Serving]
    Capturing = Callable[..., Any]

CONNECT = b"CONNECT q.test:443 HTTP/1.1\r\nHost: q.test:443\r\n\r\n"
GET = b"GET http://q.test/ HTTP/1.1\r\nHost: q.test\r\n\r\n"
SOCKS = b"\x05\x01\x00\x05\x01\x00\x03\x06q.test\x01\xbb"


class Office:
    """A desk for one gate, made before it: `with_gate` joins them."""

    def __init__(self) -> None:
        self.gate: Any = None
        self.told: list[QuestionEvent] = []
        self.there = True
        self.numbers = iter(range(1, 10000))
        self.desk = Desk(
            clock=time.monotonic,
            wall=time.time,  # noqa: TID251 - a test has no other clock
            save=lambda _: None,
            release=self.post,
            cut=self.cut,
            tell=self.told.append,
            present=lambda _: self.there,
            new_id=lambda: next(self.numbers),
        )
        self.desk.open_task(asking_task(wait=60))

    def with_gate(self, gate: Serving) -> Serving:
        self.gate = gate
        return gate

    def post(self, callback: Callable[[], None]) -> None:
        self.gate.gate.post(callback)

    def cut(self, _task: str, host: str, port: int, reason: Reason) -> None:
        gate = self.gate
        gate.gate.post(lambda: gate.gate.cut(gate.task, reason, lambda entry: entry.leads_to(host, port)))

    def waiting(self, count: int = 1) -> Question:
        """Wait until so many connections wait for the latest question, and return it."""
        wait(lambda: any(one.waiting == count and one.state is State.OPEN for one in self.desk.questions()))
        return self.desk.questions()[0]


@pytest.fixture
def office() -> Office:
    """A desk that a gate can be joined to."""
    return Office()


@pytest.mark.parametrize(("request_", "good"), [(CONNECT, b"HTTP/1.1 200 "), (SOCKS, b"\x05\x00\x05\x00")])
@pytest.mark.parametrize("answer", [Answer.ALLOW, Answer.DENY])
def test_a_person_lets_a_tunnel_through_or_does_not(
    lab: Lab, serve: Serve, office: Office, request_: bytes, good: bytes, answer: Answer
) -> None:
    """ASK-1, ASK-2, B29: nothing is looked up before the answer; a refusal says that a person made it."""
    lab.dns.set("q.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443, text="hi")
    gate = office.with_gate(serve(ask=("*.test",), asker=office.desk))
    with gate.connect() as sock:
        sock.sendall(request_)
        question = office.waiting()
        assert (question.host, question.port, question.decision.rule_text) == ("q.test", 443, "*.test")
        assert lab.dns.queries == []
        office.desk.answer(question.id, answer, by="alice")
        if answer is Answer.ALLOW:
            assert read_exactly(sock, len(good)) == good
            wait(lambda: lab.dns.count("q.test") == 1)
        elif request_ is CONNECT:
            head = read_head(sock)
            assert head.startswith(b"HTTP/1.1 403 ")
            assert b"a person refused it; go on without it" in sock.recv(4096)
        else:
            assert read_exactly(sock, 4) == b"\x05\x00\x05\x02"
    event = gate.event()
    assert event.source == "question 1, answered by alice"
    if answer is Answer.ALLOW:
        assert (event.verdict, event.reason, event.how) == (Verdict.ALLOW, Reason.ALLOWED_BY_PERSON, How.TUNNELED)
    else:
        assert (event.verdict, event.reason, event.how) == (Verdict.DENY, Reason.DENIED_BY_PERSON, How.REFUSED)
        assert lab.dns.queries == []


def test_each_request_on_a_connection_is_asked_about(lab: Lab, serve: Serve, office: Office) -> None:
    """GAT-3, ASK-2: `allow` was for the request that waited; the next one on the same connection waits again."""
    lab.dns.set("q.test", A=["1.2.3.4"])
    origin = lab.origin("http", "1.2.3.4", 80)
    gate = office.with_gate(serve(ask=("q.test",), asker=office.desk))
    with gate.connect() as sock:
        sock.sendall(GET)
        office.desk.answer(office.waiting().id, Answer.ALLOW)
        assert read_head(sock).startswith(b"HTTP/1.1 200 ")
        sock.sendall(GET)
        office.desk.answer(office.waiting().id, Answer.DENY)
        wait(lambda: b"a person refused it" in sock.recv(65536, socket.MSG_PEEK))
    assert origin.requests == 1


@pytest.mark.parametrize(
    "request_",
    [
        CONNECT,
        CONNECT + client_hello("q.test"),
        SOCKS,
        GET,
        b"POST http://q.test/ HTTP/1.1\r\nHost: q.test\r\nContent-Length: 100000\r\n\r\n" + b"x" * 70000,
    ],
    ids=["connect", "hello", "socks", "get", "post"],
)
def test_whoever_gives_up_leaves_and_the_retry_joins(lab: Lab, serve: Serve, office: Office, request_: bytes) -> None:
    """ASK-3, B140, B67: also with bytes that were sent ahead; the question stays, and an answer finds the next try."""
    lab.dns.set("q.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    lab.origin("banner", "1.2.3.4", 443, text="hi")
    gate = office.with_gate(serve(ask=("q.test",), asker=office.desk))
    for _ in range(3):
        with gate.connect() as sock:
            sock.sendall(request_)
            office.waiting(1)
            sock.sendall(b"y" * 1000)  # arrives while nobody reads
        office.waiting(0)
    gate.idle()
    assert {event.reason for event in gate.events(3)} == {Reason.CLIENT_GONE}
    (question,) = office.desk.questions()
    office.desk.answer(question.id, Answer.ALLOW)
    if request_.startswith(b"POST"):
        return
    with gate.connect() as sock:
        sock.sendall(request_)
        assert sock.recv(4) in {b"HTTP", b"\x05\x00", b"\x05\x00\x05\x00"}
    with gate.connect() as sock:
        sock.sendall(request_)
        assert office.waiting(1).id == question.id + 1


def test_a_captured_connection_waits_and_leaves(lab: Lab, capture: Capturing, office: Office) -> None:
    """ASK-1, ASK-3, HLD-6: by capture it is the same question; nobody is told `200`, and who leaves is gone."""
    lab.dns.set("q.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443, text="hi")
    gate, captive = capture(ask=("q.test:443",), asker=office.desk)
    office.with_gate(gate)
    captive.connect("q.test", 443).close()
    office.waiting(0)
    with captive.connect("q.test", 443) as sock:
        question = office.waiting(1)
        with gate.connect() as other:
            other.sendall(CONNECT)
            assert office.waiting(2).id == question.id
            office.desk.answer(question.id, Answer.ALLOW)
            assert read_exactly(sock, 2) == b"hi"
            assert read_head(other).startswith(b"HTTP/1.1 200 ")


def test_500_connections_are_one_question_and_one_answer(lab: Lab, serve: Serve, office: Office) -> None:
    """B143: all of them are released by one answer; the name is looked up for them, not before."""
    lab.dns.set("q.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443, text="hi")
    gate = office.with_gate(serve(ask=("*.test:443",), asker=office.desk, limits=_many()))
    socks = [gate.connect() for _ in range(500)]
    try:
        for index, sock in enumerate(socks):
            sock.sendall(CONNECT if index % 2 else CONNECT.replace(b"q.test", b"Q.Test."))
        question = office.waiting(500)
        assert [one.id for one in office.desk.questions()] == [question.id]
        assert lab.dns.queries == []
        office.desk.answer(question.id, Answer.ALLOW)
        for sock in socks:
            assert read_head(sock).startswith(b"HTTP/1.1 200 ")
    finally:
        for sock in socks:
            sock.close()
    assert len(office.told) < 100


def test_1000_hosts_are_20_questions(serve: Serve, office: Office) -> None:
    """B143, ASK-7: the rest is refused at once, with the reason; those that wait go on waiting."""
    gate = office.with_gate(serve(ask=("**.test",), asker=office.desk))
    held = []
    for index in range(20):
        held.append(gate.connect())
        held[-1].sendall(CONNECT.replace(b"q.test", b"h%d.test" % index))
    wait(lambda: len(office.desk.questions()) == 20)
    for index in range(20, 1000):
        answer = gate.raw(CONNECT.replace(b"q.test", b"h%d.test" % index))
        assert b"too-many-questions" in answer
    assert len(office.desk.questions()) == 20
    assert all(one.waiting == 1 for one in office.desk.questions())
    office.desk.stop()
    for sock in held:
        assert read_head(sock).startswith(b"HTTP/1.1 503 ")
        sock.close()


def test_nobody_there_and_nobody_asked(serve: Serve, office: Office) -> None:
    """B142, ASK-4: both are refused at once, each with its own reason; a question opens for neither."""
    gate = office.with_gate(serve(ask=("q.test:443",), asker=office.desk))
    office.there = False
    assert b"nobody is there to answer [nobody-there;" in gate.raw(CONNECT)
    office.there = True
    gate.task.asks = False
    assert b"the command line asks no one [no-approver;" in gate.raw(CONNECT)
    assert office.desk.questions() == []


@pytest.mark.parametrize("answer", [Answer.TASK, Answer.DENY_TASK])
def test_what_was_said_for_the_task_counts_for_a_command_that_asks_no_one(
    lab: Lab, serve: Serve, office: Office, answer: Answer
) -> None:
    """ASK-2, ASK-4: `exec` without --ask finds the answer that another command of its task was given."""
    lab.dns.set("q.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443, text="hi")
    gate = office.with_gate(serve(ask=("*.test:443",), asker=office.desk))
    with gate.connect() as sock:
        sock.sendall(CONNECT)
        office.desk.answer(office.waiting().id, answer)
        read_head(sock)
    gate.task.asks = False
    got = gate.raw(CONNECT, until=b"hi" if answer is Answer.TASK else b"person")
    assert got.startswith(b"HTTP/1.1 200 " if answer is Answer.TASK else b"HTTP/1.1 403 ")
    assert b"no-approver" in gate.raw(CONNECT.replace(b"q.test", b"r.test"))


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "169.254.169.254"])
def test_no_answer_opens_an_address_that_needs_a_rule(lab: Lab, serve: Serve, office: Office, address: str) -> None:
    """ADR-2, ADR-4, B146: looked up after the answer, refused by address, and who allowed it is told."""
    lab.dns.set("q.test", A=[address])
    gate = office.with_gate(serve(ask=("*.test",), asker=office.desk))
    with gate.connect() as sock:
        sock.sendall(CONNECT)
        question = office.waiting()
        assert lab.dns.queries == []
        office.desk.answer(question.id, Answer.TASK)
        assert read_head(sock).startswith(b"HTTP/1.1 403 ")
    wait(lambda: any(event.kind == "failed" for event in office.told))
    assert address in office.desk.question(question.id).problem
    event = gate.event()
    assert event.reason in {Reason.PRIVATE_ADDRESS, Reason.OWN_ADDRESS, Reason.NEVER_ADDRESS}
    assert event.address == address


def test_a_written_rule_that_asks_still_admits_what_it_names(lab: Lab, serve: Serve, office: Office) -> None:
    """ADR-2: the neighbour: an exact `ask` rule, answered, reaches the service of this machine it was written for."""
    lab.dns.set("q.test", A=["127.0.0.1"])
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"q.test:{server.getsockname()[1]}"
        gate = office.with_gate(serve(ask=(where,), asker=office.desk))
        with gate.connect() as sock:
            sock.sendall(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
            office.desk.answer(office.waiting().id, Answer.ALLOW)
            assert read_head(sock).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("way", ["up", "down"])
def test_bytes_end_all_that_is_open_under_the_answer(lab: Lab, serve: Serve, office: Office, way: str) -> None:
    """ASK-7: both directions and all connections share them; an idle one is cut with the busy one."""
    lab.dns.set("q.test", A=["1.2.3.4"])
    lab.origin("raw", "1.2.3.4", 443)  # says back what it hears
    gate = office.with_gate(serve(ask=("q.test:443",), asker=office.desk))
    with gate.connect() as busy, gate.connect() as idle:
        for sock in (busy, idle):
            sock.sendall(CONNECT)
        office.desk.answer(office.waiting(2).id, Answer.TASK, Terms(bytes=200_000))
        for sock in (busy, idle):
            assert read_head(sock).startswith(b"HTTP/1.1 200 ")
        idle.sendall(b"\x00" * 100)
        assert read_exactly(idle, 100) == b"\x00" * 100
        moved = 200
        try:
            while moved < 100_000_000:
                busy.sendall(b"\x00" * 1000)
                if way == "down" and len(read_exactly(busy, 1000)) < 1000:
                    break
                moved += 2000
        except ConnectionError:
            pass
        if way == "down":
            assert 200_000 - 2000 < moved <= 200_000
        assert moved < 100_000_000
        assert idle.recv(1) == b""
    wait(lambda: sum(event.reason is Reason.GRANT_ENDED for event in gate.recording.events) == 2)
    ended = [event for event in gate.recording.events if event.reason is Reason.GRANT_ENDED]
    assert sum(event.bytes_up + event.bytes_down for event in ended) <= 200_000 + (1 << 20)
    with gate.connect() as sock:
        sock.sendall(CONNECT)
        office.waiting(1)


def test_bytes_of_plain_requests_count_both_ways(lab: Lab, serve: Serve, office: Office) -> None:
    """ASK-7: the neighbour within the bound passes; the answer that would go over it is cut."""
    lab.dns.set("q.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80, body="z" * 5000)
    gate = office.with_gate(serve(ask=("q.test",), asker=office.desk))
    with gate.connect() as sock:
        sock.sendall(GET)
        office.desk.answer(office.waiting().id, Answer.TASK, Terms(bytes=8000))
        assert read_head(sock).startswith(b"HTTP/1.1 200 ")
        assert read_exactly(sock, 5000) == b"z" * 5000
        sock.sendall(GET)
        got = b""
        while data := sock.recv(65536):
            got += data
        assert b"z" * 5000 not in got
    assert gate.event(1).reason is Reason.GRANT_ENDED


@pytest.mark.parametrize("stage", ["tunnel", "dialing", "resolving"])
def test_a_cut_ends_a_connection_in_every_stage(lab: Lab, serve: Serve, office: Office, stage: str) -> None:
    """ASK-2: deny-task closes what an earlier answer let through, also where it is still under way."""
    if stage == "resolving":
        lab.dns.set("q.test", A=["1.2.3.4"], delay=3.0)
    else:
        lab.dns.set("q.test", A=["1.2.3.4" if stage == "tunnel" else lab.BLACK_HOLE4])
    lab.origin("banner", "1.2.3.4", 443)
    gate = office.with_gate(serve(ask=("*.test:443",), asker=office.desk))
    with gate.connect() as open_, gate.connect() as other:
        open_.sendall(CONNECT)
        office.desk.answer(office.waiting().id, Answer.ALLOW)
        if stage == "tunnel":
            assert read_head(open_).startswith(b"HTTP/1.1 200 ")
        else:
            wait(lambda: lab.dns.count("q.test") == 1)
        other.sendall(CONNECT)
        office.desk.answer(office.waiting().id, Answer.DENY_TASK)
        assert read_head(other).startswith(b"HTTP/1.1 403 ")
        while open_.recv(4096):
            pass
    assert Reason.DENIED_BY_PERSON in {event.reason for event in gate.events(2)}
    assert gate.raw(CONNECT).startswith(b"HTTP/1.1 403 ")


def test_the_name_in_a_tunnel_to_a_literal_has_its_own_answer_and_end(lab: Lab, serve: Serve, office: Office) -> None:
    """GAT-9, ASK-7: bytes are counted under the answer for the name, and denying it for the task cuts the tunnel."""
    origin = lab.origin("raw", "1.2.3.4", 443)
    gate = office.with_gate(serve("1.2.3.4:443", ask=("q.test:443",), asker=office.desk))
    hello = client_hello("q.test")
    with gate.tunnel("1.2.3.4:443") as sock:
        sock.sendall(hello)
        question = office.waiting()
        assert (question.host, origin.received_size) == ("q.test", 0)
        office.desk.answer(question.id, Answer.TASK, Terms(bytes=len(hello) * 2 + 10))
        assert read_exactly(sock, len(hello)) == hello
        sock.sendall(b"x" * 11)
        while sock.recv(100):
            pass
    assert gate.event().reason is Reason.GRANT_ENDED
    with gate.tunnel("1.2.3.4:443") as sock, gate.tunnel("1.2.3.4:443") as other:
        sock.sendall(hello)
        office.desk.answer(office.waiting().id, Answer.ALLOW)
        assert read_exactly(sock, len(hello)) == hello
        other.sendall(hello)
        office.desk.answer(office.waiting().id, Answer.DENY_TASK)
        assert read_exactly(other, 1) == b"\x15"
        while sock.recv(100):
            pass


def test_a_name_that_asks_no_one_is_refused_without_an_answer_and_passes_with_one(
    lab: Lab, serve: Serve, office: Office
) -> None:
    """GAT-9, ASK-4: likewise for the name in TLS."""
    lab.origin("raw", "1.2.3.4", 443)
    gate = office.with_gate(serve("1.2.3.4:443", ask=("q.test:443",), asker=office.desk))
    gate.task.asks = False
    hello = client_hello("q.test")
    with gate.tunnel("1.2.3.4:443") as sock:
        sock.sendall(hello)
        assert read_exactly(sock, 1) == b"\x15"
    gate.task.asks = True
    with gate.tunnel("1.2.3.4:443") as sock:
        sock.sendall(hello)
        office.desk.answer(office.waiting().id, Answer.TASK)
        assert read_exactly(sock, len(hello)) == hello
    gate.task.asks = False
    with gate.tunnel("1.2.3.4:443") as sock:
        sock.sendall(hello)
        assert read_exactly(sock, len(hello)) == hello


def test_a_phase_that_changes_refuses_those_that_wait(serve: Serve, office: Office) -> None:
    """POL-7: they were judged in a phase that is over; a new try is judged anew."""
    gate = office.with_gate(serve(ask=("q.test:443",), asker=office.desk))
    with gate.connect() as sock:
        sock.sendall(CONNECT)
        office.waiting()
        gate.on_thread(lambda: gate.task.change(phase=Phase.INSTALL))
        office.desk.phase_changed("t1", Phase.INSTALL)
        assert read_head(sock).startswith(b"HTTP/1.1 403 ")
    assert gate.event().reason is Reason.PHASE_CHANGED


def _many() -> Any:
    from tests.unit.gate.kit import small

    return small(connections=600)
