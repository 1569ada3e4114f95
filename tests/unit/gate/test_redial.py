"""A connection to a destination that was let go while its client was silent, and made again for the next request."""

from __future__ import annotations

import contextlib
import random
import re
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from tests.unit.gate.inside import READ, answer, get, inside, read_all
from tests.unit.gate.kit import policy_of, read_exactly, read_head, read_until, small, wait
from tests.unit.gate.test_asking import Office
from tests.unit.gate.test_inner_exchange import SWITCH
from tidegate.addresses.surroundings import Surroundings
from tidegate.gate import idle_ends
from tidegate.gate.open_now import CONNECTING, open_now
from tidegate.gate.upstream import Proxy, UpstreamConfig
from tidegate.inspect.secrets import Place, Secret, Where
from tidegate.model.destination import parse_authority
from tidegate.model.question import Answer
from tidegate.model.reason import Reason
from tidegate.model.rule import Layer, Origin, RuleLimits, only
from tidegate.model.verdict import How, Phase, Verdict
from tidegate.policy.rows import rule_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.api import Lab
    from tests.unit.gate.inside import Inside

    Start = Callable[..., Inside]

__all__ = ["inside"]

WHERE = "a.test:443"


@pytest.fixture(autouse=True)
def _names(lab: Lab) -> None:
    lab.dns.set("a.test", A=["1.2.3.4"])


@pytest.fixture
def none_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every connection go that waits, soon."""
    monkeypatch.setattr(idle_ends, "MOST", 0)
    monkeypatch.setattr(idle_ends, "SHORT", 0.02)
    monkeypatch.setattr(idle_ends, "LONG", 0.02)


class Site:
    """A destination in this process: what it shows and how it answers may change between two connections."""

    def __init__(self, lab: Lab) -> None:
        self.authority = trustme.CA()
        self.roots = self.authority.cert_pem.bytes().decode()
        self.context = self.shows("a.test")
        self.answers = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
        self.heard: list[bytes] = []  # of each connection that got as far as TLS
        self.connections = 0
        self.open = 0
        self.hangs = False
        self._listener = lab.listener("1.2.3.4", 443)
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def shows(self, name: str, *, by: trustme.CA | None = None, alpn: tuple[str, ...] = ()) -> ssl.SSLContext:
        """Return a context with a certificate for a name."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        (by or self.authority).issue_cert(name).configure_cert(context)
        if alpn:
            context.set_alpn_protocols(list(alpn))
        return context

    def _accept(self) -> None:
        while True:
            try:
                sock = self._listener.accept()[0]
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self.open += 1
            self._threads.append(threading.Thread(target=self._serve, args=(sock,), daemon=True))
            self._threads[-1].start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            if self.hangs:
                while sock.recv(4096):
                    pass
                return
            number = len(self.heard)
            with contextlib.suppress(OSError), self.context.wrap_socket(sock, server_side=True) as inner:
                self.heard.append(b"")
                while data := inner.recv(65536):
                    self.heard[number] += data
                    for _ in range(data.count(b"\r\n\r\n")):
                        inner.sendall(self.answers.encode())
                        if not self.answers:
                            return
        finally:
            sock.close()
            with self._lock:
                self.open -= 1

    def stop(self) -> None:
        """End it; nothing answers there any more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def site(lab: Lab) -> Iterator[Site]:
    """A destination at 1.2.3.4:443."""
    one = Site(lab)
    yield one
    one.stop()


def gone(origin: Any, count: int = 0) -> None:
    """Wait until so many connections to the destination are left."""
    wait(lambda: origin.open == count, lambda: f"{origin.open} are open, not {count}")


@contextlib.contextmanager
def silent(gate: Inside, origin: Any, *alpn: str) -> Iterator[Any]:
    """A client's connection that nothing was asked on yet, whose other one was let go already."""
    with gate.tunnel(WHERE, *alpn) as sock:
        wait(lambda: origin.connections == 1)
        gone(origin)
        yield sock


def ended(gate: Inside, sock: socket.socket, reason: Reason, number: int = 1) -> bytes:
    """Read the last word of a connection, which the journal has too."""
    got = read_all(sock)
    event = gate.gate.event(number)
    assert event.reason is reason
    assert event.how is How.REFUSED
    if reason.status:
        assert got.startswith(b"HTTP/1.1 " + str(reason.status).encode())
        assert f'details="{reason.word}"'.encode() in got
        assert event.status == reason.status
    return got


@pytest.mark.usefixtures("none_kept")
def test_the_next_request_makes_it_again(lab: Lab, inside: Start) -> None:
    """INS-3: same host, same address without another look-up, one line for each request, with bytes and status."""
    origin = lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE)
    with silent(gate, origin) as sock:
        for number in (b"1", b"2"):
            sock.sendall(get("a.test"))
            assert answer(sock)[1] == number
            gone(origin)
    gate.gate.idle()
    assert (origin.connections, origin.requests) == (3, 2)
    assert origin.sni == ["a.test"] * 3
    assert origin.heads[0] == origin.heads[1]
    assert lab.dns.count("a.test") == 1
    events = gate.gate.events(2)
    assert len(events) == 2
    assert [(one.how, one.status, one.address, one.detail) for one in events] == [
        (How.INSPECTED, 200, "1.2.3.4", "tls")
    ] * 2
    assert events[0].bytes_up == events[1].bytes_up == len(origin.heads[0])
    assert events[0].bytes_down == events[1].bytes_down > 0


@pytest.mark.usefixtures("none_kept")
@pytest.mark.parametrize("asked", [True, False])
def test_a_client_that_leaves_without_another_request_is_one_line(lab: Lab, inside: Start, asked: bool) -> None:
    """JRN-1: what was let go is recorded as ever: a request, or a connection without one."""
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE)
    with gate.tunnel(WHERE) as sock:
        if asked:
            sock.sendall(get("a.test"))
            answer(sock)
        wait(lambda: origin.connections == 1)
        gone(origin)
    gate.gate.idle()
    events = gate.gate.events(1)
    assert [(one.how, one.reason, one.method) for one in events] == [
        (How.INSPECTED, Reason.ALLOWED, "GET" if asked else "CONNECT")
    ]


def test_who_is_within_the_bound_keeps_its_own(lab: Lab, inside: Start) -> None:
    """INS-3: of more than 32 that wait only the longest silent is let go, and it alone is made again."""
    origin = lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE)
    with contextlib.ExitStack() as open_:
        socks = [open_.enter_context(gate.tunnel(WHERE)) for _ in range(idle_ends.MOST)]
        for sock in socks:
            sock.sendall(get("a.test"))
            answer(sock)
        time.sleep(3 * idle_ends.SHORT)  # nothing is to happen
        assert origin.open == idle_ends.MOST
        socks.append(open_.enter_context(gate.tunnel(WHERE)))
        socks[-1].sendall(get("a.test"))
        answer(socks[-1])
        gone(origin, idle_ends.MOST)
        for sock in (*socks[1:], socks[0]):
            sock.sendall(get("a.test"))
            assert answer(sock)[0].startswith(b"HTTP/1.1 200 ")
        assert origin.connections == idle_ends.MOST + 2
    assert len(gate.gate.events(2 * len(socks))) == 2 * len(socks)


def test_what_was_made_again_is_not_let_go_soon(lab: Lab, inside: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-3: clients that come back pay one handshake each, however many there are and however often they come."""
    monkeypatch.setattr(idle_ends, "MOST", 1)
    monkeypatch.setattr(idle_ends, "SHORT", 0.02)
    origin = lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE)
    with contextlib.ExitStack() as open_:
        socks = [open_.enter_context(gate.tunnel(WHERE)) for _ in range(4)]
        for turn in range(5):
            for sock in socks:
                sock.sendall(get("a.test"))
                answer(sock)
            if turn == 0:
                wait(lambda: origin.open < 4 or origin.connections > 4)
            time.sleep(0.1)
        assert origin.requests == 20
        assert 4 < origin.connections <= 8


@pytest.mark.usefixtures("none_kept")
def test_it_is_let_go_again_after_long(lab: Lab, inside: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-3: and as often as it is silent for long."""
    monkeypatch.setattr(idle_ends, "LONG", 0.3)
    origin = lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE)
    with silent(gate, origin) as sock:
        for number in range(1, 5):
            sock.sendall(get("a.test"))
            assert answer(sock)[1] == str(number).encode()
            gone(origin)
    assert origin.connections == 5


@pytest.mark.usefixtures("none_kept")
@pytest.mark.parametrize("kind", ["length", "chunked", "expect", "pipelined"])
def test_an_upload_arrives_once_and_whole(lab: Lab, inside: Start, kind: str) -> None:
    """GAT-4, INS-3: the body waits while the destination is dialled, and nothing of it is lost or sent twice."""
    origin = lab.origin("expect" if kind == "expect" else "echo", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE)
    body = b"0123456789abcdef" * 20_000
    lines = ("Transfer-Encoding: chunked",) if kind == "chunked" else (f"Content-Length: {len(body)}",)
    with silent(gate, origin) as sock:
        if kind == "expect":
            sock.sendall(get("a.test", "/up", *lines, "Expect: 100-continue", method="POST"))
            assert read_head(sock) == b"HTTP/1.1 100 Continue\r\n\r\n"
            sock.sendall(body)
            assert answer(sock)[1] == str(len(body)).encode()
        else:
            sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if kind == "chunked" else body
            more = get("a.test", "/next") if kind == "pipelined" else b""
            thread = threading.Thread(
                target=sock.sendall, args=(get("a.test", "/up", *lines, method="POST") + sent + more,)
            )
            thread.start()
            thread.join()
            got = answer(sock)[1]
            assert got.partition(b"\r\n\r\n")[2].count(b"0123456789abcdef") == 20_000
            if more:
                assert answer(sock)[1].startswith(b"GET /next ")
    assert (origin.connections, origin.requests) == (2, 2 if kind == "pipelined" else 1)


@pytest.mark.usefixtures("none_kept")
def test_requests_sent_ahead_are_answered_in_turn(lab: Lab, inside: Start) -> None:
    """GAT-3: what came while the destination was dialled is judged when its turn comes."""
    origin = lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE, limit=RuleLimits(requests=only(methods=("GET",), paths=("/ok/**",))))
    with silent(gate, origin) as sock:
        sock.sendall(get("a.test", "/ok/1") + get("a.test", "/ok/2") + get("a.test", "/evil") + get("a.test", "/ok/3"))
        got = read_all(sock)
    assert re.findall(rb"HTTP/1.1 (\d+) ", got) == [b"200", b"200", b"403"]
    assert (origin.connections, origin.requests) == (2, 2)


@pytest.mark.usefixtures("none_kept")
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (get("a.test", "/evil"), Reason.METHOD_NOT_ALLOWED),
        (get("a.test", "/ok/x", method="DELETE"), Reason.METHOD_NOT_ALLOWED),
        (get("b.test", "/ok/x"), Reason.MISDIRECTED),
        (get("a.test", "/ok/x", "Content-Length: 1", "Transfer-Encoding: chunked", method="POST"), Reason.BAD_FRAMING),
    ],
)
def test_what_is_refused_dials_nothing(lab: Lab, inside: Start, data: bytes, reason: Reason) -> None:
    """INS-6: methods, paths, hosts and framing are judged as on every connection, before anybody is dialled."""
    origin = lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE, limit=RuleLimits(requests=only(methods=("GET", "POST"), paths=("/ok/**",))))
    with silent(gate, origin) as sock:
        sock.sendall(get("a.test", "/ok/x"))
        answer(sock)
        gone(origin)
        sock.sendall(data)
        ended(gate, sock, reason)
    assert origin.connections == 2


@pytest.mark.usefixtures("none_kept")
def test_a_secret_is_put_in_and_taken_out(lab: Lab, inside: Start) -> None:
    """INS-5: on the second connection as on the first; a stand-in where it does not belong reaches nobody."""
    value, stands = b"ghp_RealRealRealReal0001", b"ghp_FakeFakeFakeFake0002"
    secret = Secret("TOKEN", (("a.test", 443),), Place(Where.BEARER), value, stands)
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE, secrets=(secret,))
    with gate.tunnel(WHERE) as sock:
        for _ in range(2):
            sock.sendall(get("a.test", "/", f"Authorization: Bearer {stands.decode()}"))
            body = answer(sock)[1]
            assert stands in body
            assert value not in body
            gone(origin)
        sock.sendall(get("a.test", f"/{stands.decode()}"))
        ended(gate, sock, Reason.SECRET_MISDIRECTED, 2)
    assert origin.received.count(value) == origin.requests == 2
    assert stands not in origin.received


@pytest.mark.usefixtures("none_kept")
def test_a_client_of_http_1_0(lab: Lab, inside: Start) -> None:
    """GAT-3: one that keeps its connection is served on it, in its own version."""
    origin = lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE)
    data = get("a.test", "/", "Connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0")
    with silent(gate, origin) as sock:
        for number in (b"1", b"2"):
            sock.sendall(data)
            head, body = answer(sock)
            assert body == number
            assert b"connection: keep-alive" in head.lower()
            gone(origin)
    assert origin.connections == 3


# What may have changed in between.


@pytest.mark.usefixtures("none_kept")
def test_a_destination_that_is_gone_is_told_and_recorded(lab: Lab, inside: Start) -> None:
    """GAT-7: 502 with the reason and the address, one line in the journal, and the connection ends."""
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE)
    with gate.tunnel(WHERE) as sock:
        sock.sendall(get("a.test"))
        answer(sock)
        gone(origin)
        origin.close()
        sock.sendall(get("a.test"))
        assert b"(tried 1.2.3.4)" in ended(gate, sock, Reason.UPSTREAM_REFUSED)
    gate.gate.idle()
    assert len(gate.gate.events(2)) == 2


@pytest.mark.usefixtures("none_kept")
def test_a_body_that_is_half_there_when_nobody_is_reached(inside: Start, site: Site) -> None:
    """GAT-7: the answer says why; what comes of the body after it is thrown away and is no request."""
    gate = inside(WHERE, roots=site.roots)
    with gate.tunnel(WHERE) as sock:
        sock.sendall(get("a.test", "/first"))
        answer(sock)
        gone(site)
        site.stop()
        sock.sendall(get("a.test", "/up", "Content-Length: 80000", method="POST") + bytes(40_000))
        head, body = answer(sock)
        assert head.startswith(b"HTTP/1.1 502 ")
        assert b"(tried 1.2.3.4)" in body
        with contextlib.suppress(OSError):
            sock.sendall(get("a.test", "/smuggled") + bytes(40_000))
        assert read_all(sock) == b""
    gate.gate.idle()
    assert [one.reason for one in gate.gate.events(2)] == [Reason.ALLOWED, Reason.UPSTREAM_REFUSED]
    assert len(gate.gate.recording.events) == 2
    assert b"/up" not in b"".join(site.heard)


@pytest.mark.usefixtures("none_kept")
@pytest.mark.parametrize(
    "change", ["certificate", "name", "alpn", "no-alpn", "clear", "client-certificate", "silent", "nothing"]
)
def test_a_destination_that_changed_is_refused(inside: Start, site: Site, change: str) -> None:
    """INS-3, B113: it is verified and has to speak the same protocol again; no byte of the request leaves before."""
    site.context = site.shows("a.test", alpn=("http/1.1",))
    gate = inside(WHERE, roots=site.roots, limits=small(total_seconds=3.0 if change == "silent" else 20.0))
    reason = Reason.UPSTREAM_TLS
    with gate.tunnel(WHERE, "h2", "http/1.1") as sock:
        assert sock.selected_alpn_protocol() == "http/1.1"
        sock.sendall(get("a.test", "/first"))
        answer(sock)
        gone(site)
        if change == "certificate":
            site.context, reason = site.shows("a.test", by=trustme.CA()), Reason.UPSTREAM_CERTIFICATE
        elif change == "name":
            site.context, reason = site.shows("b.test"), Reason.UPSTREAM_CERTIFICATE
        elif change == "alpn":
            site.context = site.shows("a.test", alpn=("h2",))
        elif change == "no-alpn":
            site.context = site.shows("a.test")
        elif change == "clear":
            site.stop()
            site.context, reason = site.shows("a.test"), Reason.UPSTREAM_REFUSED
        elif change == "client-certificate":
            site.context.verify_mode = ssl.CERT_REQUIRED
            site.authority.configure_trust(site.context)
            site.context.set_alpn_protocols(["http/1.1"])
            reason = Reason.CLIENT_CERTIFICATE
        elif change == "silent":
            site.hangs, reason = True, Reason.UPSTREAM_TIMEOUT
        sock.sendall(get("a.test", "/second"))
        if change == "nothing":
            assert answer(sock)[1] == b"hi"
        else:
            ended(gate, sock, reason)
    gate.gate.idle()
    gone(site)
    assert sum(one.count(b"/second") for one in site.heard) == (change == "nothing")


@pytest.mark.usefixtures("none_kept")
def test_an_answer_that_does_not_come_is_not_asked_for_again(inside: Start, site: Site) -> None:
    """GAT-7, INS-3: a request that was sent on the connection made again is never sent once more."""
    gate = inside(WHERE, roots=site.roots)
    with gate.tunnel(WHERE) as sock:
        sock.sendall(get("a.test", "/first"))
        answer(sock)
        gone(site)
        site.answers = ""
        sock.sendall(get("a.test", "/second"))
        ended(gate, sock, Reason.UPSTREAM_CLOSED)
    gate.gate.idle()
    assert sum(one.count(b"GET /second") for one in site.heard) == 1


def _changed(gate: Inside, change: str) -> Reason | None:
    task = gate.gate.task
    if change == "paused":
        gate.gate.on_thread(lambda: task.pause(paused=True))
        return Reason.PAUSED
    exempt = rule_row("a.test", Verdict.DENY, Phase.RUNTIME, "policy", "p:1:1", Origin.WRITTEN, Layer.USER)
    policy, reason = {
        "denied": (policy_of(deny=("a.test:443",)), Reason.DENY_RULE),
        "no rule": (policy_of("b.test:443", default=Verdict.DENY), Reason.NO_RULE),
        "narrower": (
            policy_of(WHERE, limit=RuleLimits(requests=only(methods=("POST",)))),
            Reason.METHOD_NOT_ALLOWED,
        ),
        "not read": (policy_of(WHERE, limit=RuleLimits(bytes_up=1 << 20), never_inspected=(exempt,)), None),
        "asks": (policy_of(ask=(WHERE,)), Reason.NO_APPROVER),
        "other rule": (policy_of("*.test:443", limit=READ), Reason.ALLOWED),
    }[change]
    gate.gate.on_thread(lambda: task.change(policy=policy))
    return reason


@pytest.mark.usefixtures("none_kept")
@pytest.mark.parametrize("change", ["denied", "no rule", "narrower", "not read", "asks", "paused", "other rule"])
def test_the_policy_as_it_is_now_judges_the_destination_again(lab: Lab, inside: Start, change: str) -> None:
    """POL-8, GAT-2: what no longer passes is refused and nobody is dialled; what another rule lets pass is its."""
    origin = lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE)
    with silent(gate, origin) as sock:
        sock.sendall(get("a.test"))
        answer(sock)
        gone(origin)
        reason = _changed(gate, change)
        sock.sendall(get("a.test"))
        if reason is Reason.ALLOWED:
            assert answer(sock)[1] == b"2"
            assert gate.gate.event(1).rule == "*.test:443"
        elif reason is None:
            assert read_all(sock) == b""
            assert gate.gate.event(1).reason is Reason.UPSTREAM_CLOSED
        else:
            ended(gate, sock, reason)
    assert origin.connections == (3 if reason is Reason.ALLOWED else 2)


@pytest.mark.usefixtures("none_kept")
@pytest.mark.parametrize("said", [Answer.ALLOW, Answer.DENY, None])
def test_a_person_is_asked_where_the_policy_asks_by_now(lab: Lab, inside: Start, said: Answer | None) -> None:
    """ASK-1, ASK-7: nobody is dialled before the answer; what a person allowed is kept, so it is asked about once."""
    office = Office()
    origin = lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE, asker=office.desk)
    office.with_gate(gate.gate)
    with silent(gate, origin) as sock:
        sock.sendall(get("a.test"))
        answer(sock)
        gone(origin)
        gate.gate.on_thread(lambda: gate.gate.task.change(policy=policy_of(ask=(WHERE,), limit=READ)))
        sock.sendall(get("a.test"))
        question = office.waiting()
        assert origin.connections == 2
        if said is None:
            sock.close()
            assert gate.gate.event(1).reason is Reason.CLIENT_GONE
            wait(lambda: not any(one.waiting for one in office.desk.questions()))
            return
        office.desk.answer(question.id, said, by="alice")
        if said is Answer.DENY:
            ended(gate, sock, Reason.DENIED_BY_PERSON)
            return
        for number in (b"2", b"3"):
            assert answer(sock)[1] == number
            time.sleep(0.3)  # nothing is to happen
            sock.sendall(get("a.test"))
        answer(sock)
        assert gate.gate.event(1).source == "question 1, answered by alice"
    assert origin.connections == 3


@pytest.mark.usefixtures("none_kept")
def test_a_connection_that_was_not_let_go_stays_as_it_is(
    lab: Lab, inside: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GAT-2: the neighbour: an open connection lives on under the policy that it was made under."""
    monkeypatch.setattr(idle_ends, "MOST", 32)
    lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE)
    with gate.tunnel(WHERE) as sock:
        sock.sendall(get("a.test"))
        answer(sock)
        _changed(gate, "denied")
        sock.sendall(get("a.test"))
        assert answer(sock)[1] == b"2"


@pytest.mark.usefixtures("none_kept")
@pytest.mark.parametrize(("rule", "passes"), [("*.test:443", False), (WHERE, True)])
def test_an_address_that_is_this_machines_by_now_is_admitted_again(
    lab: Lab, inside: Start, rule: str, passes: bool
) -> None:
    """ADR-1, ADR-4, B22: what was dialled before is admitted again, as this machine is by then."""
    origin = lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    around = [Surroundings(frozenset(), frozenset(), frozenset())]
    gate = inside(rule, surroundings=lambda: around[0])
    with silent(gate, origin) as sock:
        sock.sendall(get("a.test"))
        answer(sock)
        gone(origin)
        around[0] = Surroundings(frozenset((bytes((1, 2, 3, 4)),)), frozenset(), frozenset())
        sock.sendall(get("a.test"))
        if passes:
            assert answer(sock)[1] == b"2"
        else:
            ended(gate, sock, Reason.OWN_ADDRESS)
    assert origin.connections == 2 + passes


# What is never let go.


@pytest.mark.usefixtures("none_kept")
@pytest.mark.parametrize(
    ("line", "asked", "kept"),
    [
        ("Authorization: NTLM TlRMTVNTUAAB", "", True),
        ("authorization:  negotiate YII=", "", True),
        ("Accept: */*", 'WWW-Authenticate: Basic realm="x", NTLM', True),
        ("Accept: */*", "www-authenticate: Negotiate oYG2", True),
        ("Authorization: Bearer NTLMnot", "", False),
        ("Authorization: Basic eDp5", 'WWW-Authenticate: Digest realm="x", nonce="y"', False),
    ],
)
def test_who_is_known_by_the_connection_keeps_it(lab: Lab, inside: Start, line: str, asked: str, kept: bool) -> None:
    """INS-3: NTLM and Negotiate are of a connection (RFC 4559); what goes with each request is not."""
    headers = [asked] if asked else []
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test", headers=headers)
    gate = inside(WHERE)
    with silent(gate, origin) as sock:
        sock.sendall(get("a.test", "/", line))
        answer(sock)
        if kept:
            time.sleep(0.3)  # nothing is to happen
            assert origin.open == 1
        else:
            gone(origin)
        sock.sendall(get("a.test"))
        answer(sock)
    assert origin.connections == (2 if kept else 3)


@pytest.mark.usefixtures("none_kept")
def test_another_challenge_behind_a_known_answer_is_heard(lab: Lab, inside: Start) -> None:
    """INS-3: answers that come again are judged once; one with another challenge is not taken for them."""
    steps: list[list[str]] = []
    for scheme in ("Basic", "Basic", "Basic", "NTLM"):
        said = f"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: {scheme}\r\nContent-Length: 0\r\n\r\n"
        steps += [["head"], ["send", said]]
    origin = lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=[*steps, ["drain"]])
    gate = inside(WHERE)
    with gate.tunnel(WHERE) as sock:
        sock.sendall(get("a.test") * 4)
        for _ in range(4):
            assert answer(sock)[0].startswith(b"HTTP/1.1 401 ")
        time.sleep(0.3)  # nothing is to happen
        assert origin.open == 1


@pytest.mark.usefixtures("none_kept")
def test_what_a_rule_counts_is_made_once(lab: Lab, inside: Start) -> None:
    """GAT-6: a rule that allows so many connections a minute counts what the task makes, and we make none for it."""
    origin = lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE, limit=RuleLimits(requests=only(paths=("/**",)), connections_per_minute=1))
    with gate.tunnel(WHERE) as sock:
        for number in (b"1", b"2"):
            sock.sendall(get("a.test"))
            assert answer(sock)[1] == number
            time.sleep(0.2)  # nothing is to happen
    assert origin.connections == 1


@pytest.mark.usefixtures("none_kept")
def test_a_websocket_is_left_alone(lab: Lab, inside: Start) -> None:
    """INS-3, RFC 6455: it waits for nobody's request."""
    steps = [["head"], ["send", SWITCH], ["until", "ping"], ["send", "pong"], ["drain"]]
    origin = lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=steps)
    gate = inside(WHERE)
    offer = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
    with silent(gate, origin) as sock:
        sock.sendall(get("a.test", "/", *offer, "Sec-WebSocket-Version: 13"))
        assert read_head(sock).startswith(b"HTTP/1.1 101 ")
        time.sleep(0.3)  # nothing is to happen
        sock.sendall(b"ping")
        assert read_exactly(sock, 4) == b"pong"
    assert origin.connections == 2


@pytest.mark.usefixtures("none_kept")
def test_an_answer_that_goes_on_holds_it(lab: Lab, inside: Start) -> None:
    """INS-3: server-sent events with pauses between them, on a connection that was made again."""
    origin = lab.origin("stream", "1.2.3.4", 443, tls="a.test", interval=0.15)
    gate = inside(WHERE)
    with silent(gate, origin) as sock:
        sock.sendall(get("a.test"))
        got = read_until(sock, b"X-End: yes\r\n\r\n")
        assert got.count(b"data: ") == 3
    assert origin.connections == 2


@pytest.mark.usefixtures("none_kept")
def test_the_beginning_of_a_request_holds_it(lab: Lab, inside: Start) -> None:
    """INS-3: a client that has begun to ask is not silent."""
    origin = lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE)
    data = get("a.test")
    with silent(gate, origin) as sock:
        sock.sendall(data + data[:20])
        answer(sock)
        time.sleep(0.3)  # nothing is to happen
        assert origin.open == 1
        sock.sendall(data[20:])
        assert answer(sock)[1] == b"2"
    assert origin.connections == 2


# While it is dialled again.


def test_nobody_gets_anothers_answer(lab: Lab, inside: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-3: a dozen clients at once, let go of at every pause: each request arrives once, each answer is its own."""
    monkeypatch.setattr(idle_ends, "MOST", 1)
    monkeypatch.setattr(idle_ends, "SHORT", 0.003)
    monkeypatch.setattr(idle_ends, "LONG", 0.005)
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside(WHERE)
    wrong: list[str] = []

    def client(name: int) -> None:
        chance = random.Random(name)
        with gate.tunnel(WHERE) as sock:
            for number in range(25):
                body = f"{name}-{number} ".encode() * chance.choice((1, 1, 5000))
                line = f"Content-Length: {len(body)}"
                data = get("a.test", f"/{name}/{number}", line, method="POST") + body
                ahead = get("a.test", f"/{name}/{number}/ahead") if chance.random() < 0.3 else b""
                sock.sendall(data + ahead)
                if not answer(sock)[1].startswith(data[:20]) or (ahead and answer(sock)[1][:20] != ahead[:20]):
                    wrong.append(f"{name}/{number}")
                time.sleep(chance.choice((0, 0, 0.004, 0.02)))

    threads = [threading.Thread(target=client, args=(name,)) for name in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    gate.gate.idle()
    assert origin.connections > 12
    heads = [head.split(b" ")[1] for head in origin.heads]
    assert len(heads) == len(set(heads)) == len(gate.gate.recording.events)
    assert {event.how for event in gate.gate.recording.events} == {How.INSPECTED}


class Impatient(Site):
    """A destination that closes what is silent, at about the time at which it is let go."""

    def _serve(self, sock: socket.socket) -> None:
        chance, buffer = random.Random(sock.fileno()), b""
        try:
            with contextlib.suppress(OSError), self.context.wrap_socket(sock, server_side=True) as inner:
                while True:
                    inner.settimeout(5 if buffer else chance.choice((0.01, 0.02, 0.05)))
                    data = inner.recv(65536)
                    if not data:
                        return
                    buffer += data
                    while b"\r\n\r\n" in buffer:
                        head, _, rest = buffer.partition(b"\r\n\r\n")
                        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or b"0")
                        if len(rest) < size:
                            break
                        buffer, path = rest[size:], head.split(b" ")[1]
                        with self._lock:
                            self.heard.append(path)
                        inner.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(path), path))
        finally:
            sock.close()
            with self._lock:
                self.open -= 1


def test_a_destination_that_leaves_at_the_same_moment(lab: Lab, inside: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """GAT-3, INS-3: whoever is first, no request is sent twice, and each answer is that of its own request."""
    monkeypatch.setattr(idle_ends, "MOST", 1)
    monkeypatch.setattr(idle_ends, "SHORT", 0.01)
    monkeypatch.setattr(idle_ends, "LONG", 0.02)
    site = Impatient(lab)
    gate = inside(WHERE, roots=site.roots)
    wrong: list[bytes] = []

    def client(name: int) -> None:
        chance, number = random.Random(name), 0
        while number < 40:
            with contextlib.suppress(OSError), gate.tunnel(WHERE) as sock:
                while number < 40:
                    number += 1
                    body, path = bytes(chance.choice((0, 1, 30_000))), b"/%d/%d" % (name, number)
                    line = f"Content-Length: {len(body)}"
                    sock.sendall(get("a.test", path.decode(), line, method="POST") + body)
                    head, got = answer(sock)
                    if not head.startswith(b"HTTP/1.1 200 ") or len(got) < len(path):
                        break  # it ended, or says so: the destination was not quick enough
                    if got != path:
                        wrong.append(path)
                    time.sleep(chance.choice((0, 0.005, 0.01, 0.02)))

    threads = [threading.Thread(target=client, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gate.gate.idle()
    site.stop()
    assert wrong == []
    assert len(site.heard) == len(set(site.heard))
    assert site.connections > 6


@pytest.mark.usefixtures("none_kept")
@pytest.mark.parametrize("how", ["cut", "client", "reset", "stop"])
def test_whoever_ends_it_while_it_is_dialled(inside: Start, site: Site, how: str) -> None:
    """GAT-2, JRN-1: the listing shows it, a cut reaches it, and nothing of it stays open."""
    gate = inside(WHERE, roots=site.roots)
    serving = gate.gate
    sock = gate.tunnel(WHERE)
    sock.sendall(get("a.test", "/first"))
    answer(sock)
    gone(site)
    site.hangs = True
    sock.sendall(get("a.test", "/second"))
    gone(site, 1)
    numbers = iter(range(1, 10))
    shown, more = serving.on_thread(lambda: open_now(serving.gate, [serving.task], 9, lambda: next(numbers)))
    assert ([one.state for one in shown], more) == ([CONNECTING], 0)
    if how == "cut":
        assert (
            serving.on_thread(
                lambda: serving.gate.cut(serving.task, Reason.CUT, lambda one: one.leads_to("a.test", 443))
            )
            == 1
        )
        assert read_all(sock) == b""
        reason = Reason.CUT
    elif how == "stop":
        serving.gate.stop()
        assert read_all(sock) == b""
        reason = Reason.STOPPING
    else:
        if how == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            sock.close()
        else:
            sock.shutdown(socket.SHUT_RDWR)
            site.stop()
            gone(site, 1)  # a client that says no more still wants its answer
            serving.on_thread(lambda: serving.gate.cut(serving.task, Reason.CLIENT_GONE))
        reason = Reason.CLIENT_GONE
    gone(site)
    assert serving.event(1).reason is reason
    assert not any(b"/second" in one for one in site.heard)
    sock.close()


@pytest.mark.usefixtures("none_kept")
@pytest.mark.parametrize("resolve", ["check", "skip"])
def test_through_the_upstream_proxy_again(lab: Lab, inside: Start, resolve: str) -> None:
    """GAT-8, ADR-5: the second connection goes out the way of the first, also where only the proxy has an address."""
    origin = lab.origin("counting", "1.2.3.4", 443, tls="a.test")
    upstream = lab.http_proxy()
    proxy = Proxy("http", parse_authority("1.2.3.80:3128").host, 3128)
    gate = inside(WHERE, upstream=UpstreamConfig(proxy, proxy), upstream_resolve=resolve)
    with silent(gate, origin) as sock:
        for number in (b"1", b"2"):
            sock.sendall(get("a.test"))
            assert answer(sock)[1] == number
            gone(origin)
        assert upstream.connections == origin.connections == 3
        upstream.close()
        sock.sendall(get("a.test"))
        ended(gate, sock, Reason.UPSTREAM_PROXY, 2)
    assert [event.address for event in gate.gate.events(2)[:2]] == ["1.2.3.4" if resolve == "check" else ""] * 2
