"""HTTP/2: a destination that was let go while no stream was open, and reached again for the next one."""

from __future__ import annotations

import contextlib
import gc
import random
import socket
import ssl
import threading
import time
import weakref
from typing import TYPE_CHECKING

import httpx
import pytest
import trustme
from h2.events import ConnectionTerminated, PingAckReceived, StreamReset

from tests.h2_site import H2Site
from tests.unit.gate.inside import Inside, inside
from tests.unit.gate.kit import small, wait
from tests.unit.gate.test_inner_streams import GET, Talk
from tests.unit.gate.test_redial import WHERE, _changed, gone, none_kept
from tidegate.addresses.surroundings import Surroundings
from tidegate.gate import idle_ends, linger
from tidegate.gate.inner_streams import InnerStreams
from tidegate.gate.open_now import CONNECTING, open_now
from tidegate.inspect.secrets import Place, Secret, Where
from tidegate.model.reason import Reason
from tidegate.model.rule import RuleLimits, only
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tests.lab.api import Lab

    Start = Callable[..., Inside]

__all__ = ["inside", "none_kept"]

POST = [(":method", "POST"), *GET[1:3], (":path", "/up")]


class Site(H2Site):
    """A destination whose certificate may change between two connections."""

    def __init__(self, lab: Lab) -> None:
        self.authority = trustme.CA()
        self.roots = self.authority.cert_pem.bytes().decode()
        super().__init__(lab.listener("1.2.3.4", 443), self.shows("a.test"))

    def shows(self, name: str, *, by: trustme.CA | None = None, alpn: str = "h2") -> ssl.SSLContext:
        """Return a context with a certificate for a name."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        (by or self.authority).issue_cert(name).configure_cert(context)
        context.set_alpn_protocols([alpn] if alpn else [])
        return context

    def paths(self) -> list[str]:
        """What was asked for, in its order."""
        return [dict(one)[":path"] for one in self.requests]


@pytest.fixture
def site(lab: Lab) -> Iterator[Site]:
    """An HTTP/2 server at a.test."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    with Site(lab) as made:
        yield made


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was told its last word may stay for two seconds here, and not for ten (gate/linger.py)."""
    monkeypatch.setattr(linger, "PAUSES", 1)


@contextlib.contextmanager
def talking(gate: Inside) -> Iterator[Talk]:
    """A client's connection."""
    client = Talk(gate)
    with client.sock:
        yield client


@contextlib.contextmanager
def silent(gate: Inside, site: Site) -> Iterator[Talk]:
    """A client that was answered once, and whose destination was let go before that and after it."""
    with talking(gate) as client:
        wait(lambda: site.connections == 1)
        gone(site)
        assert client.answer(client.ask(GET))[0][":status"] == "200"
        gone(site)
        yield client


def told(client: Talk, number: int, reason: Reason) -> str:
    """Read the refusal of a stream; return what it says."""
    head, body, *_ = client.answer(number)
    assert head[":status"] == str(reason.status)
    assert f'details="{reason.word}"' in head["proxy-status"]
    return body.decode()


@pytest.mark.usefixtures("none_kept")
def test_the_next_stream_makes_it_again(lab: Lab, inside: Start, site: Site) -> None:
    """INS-3: same client's connection, same address without another look-up, one line for each request."""
    gate = inside(WHERE, roots=site.roots)
    with silent(gate, site) as client:
        for _ in range(2):
            head, body, *_ = client.answer(client.ask(GET))
            assert head[":status"] == "200"
            assert b":path: /x" in body
            gone(site)
    gate.gate.idle()
    assert (site.connections, len(site.requests)) == (4, 3)
    assert site.requests[0] == site.requests[1] == site.requests[2]
    assert lab.dns.count("a.test") == 1
    events = gate.gate.events(3)
    assert [(one.how, one.status, one.address, one.detail) for one in events] == [
        (How.INSPECTED, 200, "1.2.3.4", "tls")
    ] * 3
    assert len({(one.bytes_up, one.bytes_down, one.rule) for one in events}) == 1
    assert gate.gate.faults == []


@pytest.mark.usefixtures("none_kept")
def test_who_asks_nothing_makes_nothing_again(inside: Start, site: Site) -> None:
    """JRN-1, INS-3: pings and settings of the client are answered with nobody dialled; it is one line in the end."""
    gate = inside(WHERE, roots=site.roots)
    with talking(gate) as client:
        wait(lambda: site.connections == 1)
        gone(site)
        client.conn.ping(b"12345678")
        client.conn.update_settings({4: 70000})
        client.flush()
        assert client.until(lambda event: isinstance(event, PingAckReceived))
        client.conn.close_connection()
        client.flush()
    gate.gate.idle()
    assert site.connections == 1
    assert [(one.how, one.reason, one.method) for one in gate.gate.events(1)] == [
        (How.INSPECTED, Reason.ALLOWED, "CONNECT")
    ]


@pytest.mark.usefixtures("none_kept")
def test_a_stream_holds_it(inside: Start, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-3: a request that waits for its answer, and one whose body is still coming; then nothing does."""
    monkeypatch.setattr(idle_ends, "SHORT", 0.3)  # what is begun within it holds it
    gate = inside(WHERE, roots=site.roots)
    with talking(gate) as client:
        number = client.conn.get_next_available_stream_id()
        client.conn.send_headers(number, POST)
        client.flush()
        time.sleep(0.6)  # nothing is to happen
        assert site.open == 1
        client.conn.end_stream(number)
        client.flush()
        assert client.answer(number)[0][":status"] == "200"
        gone(site)


def test_the_bound_is_that_of_all_connections(inside: Start, site: Site) -> None:
    """INS-3: of more than 32 that wait only the longest silent is let go."""
    gate = inside(WHERE, roots=site.roots)
    with contextlib.ExitStack() as open_:
        clients = [open_.enter_context(talking(gate)) for _ in range(idle_ends.MOST)]
        for client in clients:
            client.answer(client.ask(GET))
        time.sleep(3 * idle_ends.SHORT)  # nothing is to happen
        assert site.open == idle_ends.MOST
        clients.append(open_.enter_context(talking(gate)))
        clients[-1].answer(clients[-1].ask(GET))
        gone(site, idle_ends.MOST)
        for client in (*clients[1:], clients[0]):
            assert client.answer(client.ask(GET))[0][":status"] == "200"
        assert site.connections == idle_ends.MOST + 2


@pytest.mark.usefixtures("none_kept")
def test_what_is_sent_while_it_is_dialled_arrives_once_and_whole(inside: Start, site: Site) -> None:
    """INS-3: several streams at once, with a body of more than every window: each is answered with its own."""
    gate = inside(WHERE, roots=site.roots)
    size = 1_500_000
    with silent(gate, site) as client:
        before = len(site.requests)
        numbers = [client.ask([*GET[:3], (":path", f"/{number}")]) for number in range(20)]
        upload = client.conn.get_next_available_stream_id()
        client.conn.send_headers(upload, POST)
        left = size
        while left:
            room = min(client.conn.local_flow_control_window(upload), client.conn.max_outbound_frame_size, left)
            if room:
                client.conn.send_data(upload, bytes(room))
                left -= room
                client.flush()
            else:
                client.conn.receive_data(client.sock.recv(65536))
                client.flush()
        client.conn.end_stream(upload)
        client.flush()
        wait(lambda: len(site.bodies) == before + 21, lambda: f"{len(site.bodies)} of {before + 21}")
    assert sorted(site.paths()[before:]) == sorted([*(f"/{number}" for number in range(20)), "/up"])
    assert max(map(len, site.bodies)) == size
    assert site.connections == 3
    assert len(numbers) == 20


@pytest.mark.usefixtures("none_kept")
def test_a_stream_that_is_given_up_while_it_is_dialled(inside: Start, site: Site) -> None:
    """INS-3: the others go on, and the connection lives."""
    gate = inside(WHERE, roots=site.roots)
    with silent(gate, site) as client:
        number = client.conn.get_next_available_stream_id()
        client.conn.send_headers(number, POST)
        client.conn.reset_stream(number)
        client.flush()
        assert client.answer(client.ask(GET))[0][":status"] == "200"
        gone(site)
        assert client.answer(client.ask(GET))[0][":status"] == "200"
    assert site.paths() == ["/x", "/up", "/x", "/x"] or site.paths() == ["/x"] * 3
    assert [one.reason for one in gate.gate.events(4)].count(Reason.CLIENT_GONE) == 1


@pytest.mark.usefixtures("none_kept")
def test_a_secret_is_put_in_and_taken_out(inside: Start, site: Site) -> None:
    """INS-5: on the second connection as on the first; a stand-in where it does not belong dials nobody."""
    value, stands = "ghp_RealRealRealReal0001", "ghp_FakeFakeFakeFake0002"
    secret = Secret("TOKEN", (("a.test", 443),), Place(Where.BEARER), value.encode(), stands.encode())
    gate = inside(WHERE, roots=site.roots, secrets=(secret,))
    with talking(gate) as client:
        for _ in range(2):
            head, body, *_ = client.answer(client.ask([*GET, ("authorization", f"Bearer {stands}")]))
            assert head[":status"] == "200"
            assert stands.encode() in body
            assert value.encode() not in body
            gone(site)
        told(client, client.ask([*GET[:3], (":path", f"/{stands}")]), Reason.SECRET_MISDIRECTED)
    assert [dict(one).get("authorization") for one in site.requests] == [f"Bearer {value}"] * 2


# What may have changed in between.


@pytest.mark.usefixtures("none_kept")
@pytest.mark.parametrize("change", ["certificate", "name", "alpn", "no-alpn", "gone", "client-certificate", "nothing"])
def test_a_destination_that_changed_is_refused(inside: Start, site: Site, change: str) -> None:
    """INS-3, B113: it is verified and has to speak HTTP/2 again; every stream is told why, and none was sent."""
    gate = inside(WHERE, roots=site.roots)
    reason = Reason.UPSTREAM_TLS
    with silent(gate, site) as client:
        if change == "certificate":
            site.context, reason = site.shows("a.test", by=trustme.CA()), Reason.UPSTREAM_CERTIFICATE
        elif change == "name":
            site.context, reason = site.shows("b.test"), Reason.UPSTREAM_CERTIFICATE
        elif change == "alpn":
            site.context = site.shows("a.test", alpn="http/1.1")
        elif change == "no-alpn":
            site.context = site.shows("a.test", alpn="")
        elif change == "gone":
            site.__exit__()
            reason = Reason.UPSTREAM_REFUSED
        elif change == "client-certificate":
            site.context = site.shows("a.test")  # another one: no session is resumed
            site.context.verify_mode = ssl.CERT_REQUIRED
            site.authority.configure_trust(site.context)
            reason = Reason.CLIENT_CERTIFICATE
        first = client.ask(POST, b"once")
        if change == "nothing":
            assert client.answer(first)[0][":status"] == "200"
            assert len(site.requests) == 2
            return
        said = told(client, first, reason)
        assert ("tried 1.2.3.4" in said) == (change == "gone")
        if change != "client-certificate":  # that one is known only later, and told to each stream
            assert any(isinstance(event, ConnectionTerminated) for event in _to_the_end(client))
    gate.gate.idle()
    gone(site)
    assert len(site.requests) == 1
    event = gate.gate.event(1)
    assert (event.reason, event.how, event.status) == (reason, How.REFUSED, reason.status)


def _to_the_end(client: Talk) -> list[Any]:
    # What the connection says until it ends; GOAWAY may have come with what was read before.
    if client.conn.state_machine.state.name == "CLOSED":
        return [ConnectionTerminated()]
    with contextlib.suppress(OSError):
        return client.until(lambda event: isinstance(event, ConnectionTerminated))
    return []


@pytest.mark.usefixtures("none_kept")
@pytest.mark.parametrize("change", ["denied", "no rule", "narrower", "not read", "asks", "paused", "other rule"])
def test_the_policy_as_it_is_now_judges_the_stream(inside: Start, site: Site, change: str) -> None:
    """POL-8, GAT-2: what no longer passes is told so and dials nobody; where it has to be asked, the client anew."""
    gate = inside(WHERE, roots=site.roots)
    with silent(gate, site) as client:
        reason = _changed(gate, change)
        number = client.ask(GET)
        if reason is Reason.ALLOWED:
            assert client.answer(number)[0][":status"] == "200"
            assert gate.gate.event(1).rule == "*.test:443"
        elif reason is None or change == "asks":
            events = client.until(lambda event: isinstance(event, ConnectionTerminated))
            resets = [event for event in events if isinstance(event, StreamReset)]
            assert [(one.stream_id, one.error_code) for one in resets] == [(number, 7)]  # REFUSED_STREAM
            assert gate.gate.event(1).reason is Reason.UPSTREAM_CLOSED
            gate.gate.idle()
        else:
            told(client, number, reason)
            assert gate.gate.event(1).reason is reason
            told(client, client.ask(GET), reason)  # the connection lives, and is judged as often as it asks
    assert site.connections == (3 if reason is Reason.ALLOWED else 2)


@pytest.mark.usefixtures("none_kept")
def test_a_stream_that_no_rule_lets_pass_dials_nobody(inside: Start, site: Site) -> None:
    """INS-6: methods and paths are judged before anybody is dialled, and the next stream is."""
    gate = inside(WHERE, roots=site.roots, limit=RuleLimits(requests=only(methods=("GET",), paths=("/x",))))
    with silent(gate, site) as client:
        told(client, client.ask([*GET[:3], (":path", "/y")]), Reason.METHOD_NOT_ALLOWED)
        assert site.connections == 2
        assert client.answer(client.ask(GET))[0][":status"] == "200"
    assert site.connections == 3


@pytest.mark.usefixtures("none_kept")
def test_an_address_that_is_this_machines_by_now_is_admitted_again(inside: Start, site: Site) -> None:
    """ADR-1, ADR-4, B22: what was dialled before is admitted again, as this machine is by then."""
    around = [Surroundings(frozenset(), frozenset(), frozenset())]
    gate = inside("*.test:443", roots=site.roots, surroundings=lambda: around[0])
    with silent(gate, site) as client:
        around[0] = Surroundings(frozenset((bytes((1, 2, 3, 4)),)), frozenset(), frozenset())
        told(client, client.ask(GET), Reason.OWN_ADDRESS)
    assert site.connections == 2


# What is never let go.


@pytest.mark.usefixtures("none_kept")
@pytest.mark.parametrize(
    ("asked", "answered", "kept"),
    [
        ([("authorization", "Negotiate YII=")], [], True),
        ([], [("www-authenticate", "NTLM")], True),
        ([("authorization", "Bearer NTLMnot")], [("www-authenticate", 'Basic realm="x"')], False),
    ],
)
def test_who_is_known_by_the_connection_keeps_it(
    inside: Start, site: Site, asked: list[tuple[str, str]], answered: list[tuple[str, str]], kept: bool
) -> None:
    """INS-3: NTLM and Negotiate are of a connection (RFC 4559); what goes with each request is not."""
    site.answers["/x"] = ([(":status", "200"), *answered], b"hi", [])
    gate = inside(WHERE, roots=site.roots)
    with talking(gate) as client:
        for _ in range(2):
            assert client.answer(client.ask([*GET, *asked]))[1] == b"hi"
            if kept:
                time.sleep(0.3)  # nothing is to happen
                assert site.open == 1
            else:
                gone(site)


@pytest.mark.usefixtures("none_kept")
def test_what_a_rule_counts_is_made_once(inside: Start, site: Site) -> None:
    """GAT-6: a rule that allows so many connections a minute counts what the task makes, and we make none for it."""
    limit = RuleLimits(requests=only(paths=("/**",)), connections_per_minute=1)
    gate = inside(WHERE, roots=site.roots, limit=limit)
    with talking(gate) as client:
        for _ in range(2):
            assert client.answer(client.ask(GET))[0][":status"] == "200"
            time.sleep(0.2)  # nothing is to happen
    assert site.connections == 1


# While it is dialled again.


@pytest.mark.usefixtures("none_kept")
@pytest.mark.parametrize("how", ["cut", "leaves", "reset", "stop", "slow"])
def test_whoever_ends_it_while_it_is_dialled(lab: Lab, inside: Start, site: Site, how: str) -> None:
    """GAT-2, JRN-1: the listing shows it, a cut reaches it, nothing was sent, and nothing stays open."""
    gate = inside(WHERE, roots=site.roots, limits=small(total_seconds=2.0 if how == "slow" else 30.0))
    serving = gate.gate
    with silent(gate, site) as client:
        site.__exit__()
        held: list[socket.socket] = []
        with lab.listener("1.2.3.4", 443) as hangs:
            number = client.ask(POST, b"never")
            held.append(hangs.accept()[0])
            numbers = iter(range(1, 10))
            shown, _ = serving.on_thread(lambda: open_now(serving.gate, [serving.task], 9, lambda: next(numbers)))
            assert [one.state for one in shown] == [CONNECTING]
            reason = Reason.CLIENT_GONE
            if how == "cut":
                reason = Reason.CUT
                cut = serving.on_thread(
                    lambda: serving.gate.cut(serving.task, Reason.CUT, lambda one: one.leads_to("a.test", 443))
                )
                assert cut == 1
            elif how == "stop":
                reason = Reason.STOPPING
                serving.gate.stop()
            elif how == "slow":
                reason = Reason.UPSTREAM_TIMEOUT
                told(client, number, reason)
            elif how == "reset":
                client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
                client.sock.close()
            else:
                client.sock.close()
            event = serving.event(1)
            assert (event.reason, event.how) == (reason, How.REFUSED)
            with held[0] as hanging:
                hanging.settimeout(10)
                heard = b""
                with contextlib.suppress(ConnectionError):
                    while data := hanging.recv(65536):
                        heard += data
            assert b"never" not in heard
    assert len(site.requests) == 1


def test_nobody_gets_anothers_answer(inside: Start, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-3: a dozen clients at once, let go of at every pause: each request arrives once, each answer is its own."""
    monkeypatch.setattr(idle_ends, "MOST", 1)
    monkeypatch.setattr(idle_ends, "SHORT", 0.003)
    monkeypatch.setattr(idle_ends, "LONG", 0.005)
    gate = inside(WHERE, roots=site.roots)
    wrong: list[str] = []

    def client(name: int) -> None:
        chance = random.Random(name)
        with talking(gate) as one:
            for number in range(15):
                asked = {}
                for stream in range(chance.choice((1, 1, 4))):
                    path = f"/{name}/{number}/{stream}"
                    asked[one.ask([*POST[:3], (":path", path)], path.encode() * chance.choice((1, 1, 900)))] = path
                for found, path in asked.items():
                    if f":path: {path}\n" not in answers(one, found)[found]:
                        wrong.append(path)
                time.sleep(chance.choice((0, 0, 0.004, 0.02)))

    def answers(one: Talk, number: int) -> dict[int, str]:
        kept = one.__dict__.setdefault("kept", {})
        while not kept.get(number, "").endswith("\0"):
            for event in one.until(lambda event: hasattr(event, "stream_id")):
                stream = getattr(event, "stream_id", None)
                if hasattr(event, "data"):
                    kept[stream] = kept.get(stream, "") + event.data.decode()
                elif type(event).__name__ in {"StreamEnded", "StreamReset"}:
                    kept[stream] = kept.get(stream, "") + "\0"
        return kept

    threads = [threading.Thread(target=client, args=(name,)) for name in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    gate.gate.idle()
    assert site.connections > 12
    assert len(site.paths()) == len(set(site.paths())) == len(gate.gate.recording.events)
    assert {event.how for event in gate.gate.recording.events} == {How.INSPECTED}
    assert gate.gate.faults == []


@pytest.mark.usefixtures("none_kept")
def test_an_answer_that_does_not_come_is_not_asked_for_again(inside: Start, site: Site) -> None:
    """GAT-7, INS-3: a request that was sent on the connection made again is never sent once more."""
    gate = inside(WHERE, roots=site.roots)
    with silent(gate, site) as client:
        site.silent, site.leaves = True, True
        number = client.ask(POST, b"once")
        told(client, number, Reason.UPSTREAM_CLOSED)
    gate.gate.idle()
    assert site.bodies.count(b"once") == 1


@pytest.mark.usefixtures("none_kept")
def test_nothing_of_it_stays(inside: Start, site: Site) -> None:
    """INS-3: what was let go, and what has ended, is given back at once: nobody waits for a look for garbage."""
    gate = inside(WHERE, roots=site.roots)
    serving = gate.gate

    def held() -> list[weakref.ref[Any]]:
        found = [one for one in set(serving.gate.reactor.table.values()) if isinstance(one, InnerStreams)]
        return [
            weakref.ref(part) for one in found for part in (one._streams, one._streams._client, one._streams._other)
        ]

    with talking(gate) as client:
        gc.collect()
        gc.disable()
        try:
            number = client.conn.get_next_available_stream_id()
            client.conn.send_headers(number, POST)
            client.flush()
            wait(lambda: bool(site.requests))
            kept = serving.on_thread(held)
            assert len(kept) == 3
            client.conn.end_stream(number)
            client.flush()
            client.answer(number)
            gone(site)
            wait(lambda: kept[2]() is None, lambda: "the side of the destination stays")
            client.sock.close()
            serving.idle()
            # The loop remembers whom it called last until it calls the next.
            serving.on_thread(lambda: serving.gate.reactor.again(serving.gate.reactor, -1, 0))  # type: ignore[arg-type]
            serving.on_thread(lambda: None)
            wait(lambda: [one() for one in kept] == [None] * 3, lambda: f"{[one() for one in kept]}")
        finally:
            gc.enable()


@pytest.mark.usefixtures("none_kept")
def test_httpx_goes_on_after_its_pauses(inside: Start, site: Site) -> None:
    """INS-3: a real client keeps its one connection, and notices nothing."""
    gate = inside(WHERE, roots=site.roots)
    proxy = "http://{}:{}".format(*gate.gate.address)
    with httpx.Client(http2=True, proxy=proxy, verify=gate.context(), trust_env=False, timeout=20) as client:
        for number in range(3):
            reply = client.post(f"https://a.test/{number}", content=b"body")
            assert (reply.status_code, reply.http_version) == (200, "HTTP/2")
            assert reply.text.endswith("body")
            gone(site)
    assert site.paths() == ["/0", "/1", "/2"]
    assert site.connections in {3, 4}  # it may have been let go before the first request
    gate.gate.idle()
    assert gate.gate.faults == []
