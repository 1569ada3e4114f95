"""HTTP/2 read inside TLS, with real clients and a server on the other side."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import time
from typing import TYPE_CHECKING

import httpx
import pytest
import trustme
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from hyperframe.frame import DataFrame, HeadersFrame

from tests.h2_site import H2Site
from tests.unit.gate.inside import Inside, inside
from tests.unit.gate.kit import wait
from tidegate.gate import inner_streams, linger
from tidegate.model.reason import Reason
from tidegate.model.rule import RuleLimits, only
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from h2.events import Event

    from tests.lab.api import Lab

    Start = Callable[..., Inside]

__all__ = ["inside"]

GET = [(":method", "GET"), (":scheme", "https"), (":authority", "a.test"), (":path", "/x")]


@pytest.fixture
def site(lab: Lab) -> Iterator[tuple[H2Site, str]]:
    """An HTTP/2 server at a.test, and the root of its certificate."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("a.test").configure_cert(context)
    with H2Site(lab.listener("1.2.3.4", 443), context) as made:
        yield made, authority.cert_pem.bytes().decode()


class Talk:
    """A client of one connection."""

    def __init__(self, gate: Inside) -> None:
        self.sock = gate.tunnel("a.test:443", "h2", "http/1.1")
        assert self.sock.selected_alpn_protocol() == "h2"
        self.conn = H2Connection(
            H2Configuration(
                client_side=True,
                header_encoding="utf-8",
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self.conn.initiate_connection()
        self.conn.increment_flow_control_window(1 << 24)
        self.flush()

    def flush(self) -> None:
        """Send what is to be sent."""
        self.sock.sendall(self.conn.data_to_send())

    def ask(self, fields: list[tuple[str, str]], body: bytes | None = None) -> int:
        """Begin a stream."""
        number = self.conn.get_next_available_stream_id()
        self.conn.send_headers(number, fields, end_stream=body is None)
        if body is not None:
            self.conn.send_data(number, body, end_stream=True)
        self.flush()
        return number

    def until(self, wanted: Callable[[Event], bool]) -> list[Event]:
        """Read until an event comes, or the end."""
        seen: list[Event] = []
        self.sock.settimeout(10)
        while not any(map(wanted, seen)):
            data = self.sock.recv(65536)
            if not data:
                break
            for event in self.conn.receive_data(data):
                if isinstance(event, DataReceived):
                    self.conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                seen.append(event)
            self.flush()
        return seen

    def answer(self, number: int) -> tuple[dict[str, str], bytes, dict[str, str], bool]:
        """Read one answer: headers, body, trailers, and whether it was reset."""
        events = self.until(lambda event: isinstance(event, StreamEnded | StreamReset) and event.stream_id == number)
        mine = [event for event in events if getattr(event, "stream_id", None) == number]
        head: dict[str, str] = {}
        trailers: dict[str, str] = {}
        body = b""
        for event in mine:
            if isinstance(event, ResponseReceived):
                head = dict(event.headers)
            elif isinstance(event, TrailersReceived):
                trailers = dict(event.headers)
            elif isinstance(event, DataReceived):
                body += event.data
        return head, body, trailers, any(isinstance(event, StreamReset) for event in mine)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was told its last word may stay for two seconds here, and not for ten (gate/linger.py)."""
    monkeypatch.setattr(linger, "PAUSES", 1)


@pytest.fixture
def talk(inside: Start, site: tuple[H2Site, str]) -> Iterator[Callable[..., tuple[Talk, Inside]]]:
    """Start a gate and a client of it."""
    opened: list[Talk] = []

    def start(**options: Any) -> tuple[Talk, Inside]:
        gate = inside("a.test:443", roots=site[1], **options)
        made = Talk(gate)
        opened.append(made)
        return made, gate

    yield start
    for one in opened:
        one.sock.close()


def test_streams_are_judged_one_by_one(talk: Any, site: tuple[H2Site, str]) -> None:
    """INS-3, INS-6: each stream is a line; a refused one is answered with 403 and the others go on."""
    client, gate = talk(limit=RuleLimits(requests=only(methods=("GET",), paths=("/repos/acme/**",))))
    for path, status in (
        ("/repos/acme/x", "200"),
        ("/repos/other", "403"),
        ("/repos/acme/../x", "403"),
        ("/repos/acme", "200"),
    ):
        number = client.ask([*GET[:3], (":path", path)])
        head, body, _, reset = client.answer(number)
        assert (head[":status"], reset) == (status, False), body
    head, body, *_ = client.answer(client.ask([(":method", "POST"), *GET[1:3], (":path", "/repos/acme/x")], b"body"))
    assert head[":status"] == "403"
    assert b"[method-not-allowed; rule 'a.test:443'" in body
    assert 'details="method-not-allowed"' in head["proxy-status"]
    assert [dict(fields)[":path"] for fields in site[0].requests] == ["/repos/acme/x", "/repos/acme"]
    events = gate.gate.events(5)
    assert [event.how for event in events] == [How.INSPECTED, How.REFUSED, How.REFUSED, How.INSPECTED, How.REFUSED]
    assert [event.status for event in events] == [200, 403, 403, 200, 403]
    assert site[0].connections == 1


@pytest.mark.parametrize("pieces", [1, inner_streams.PIECES])
def test_many_streams_of_one_record_are_judged_alike_together_or_not(
    talk: Any, site: tuple[H2Site, str], pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INS-3, INS-6: what is looked at in one go is judged stream by stream, and sent in order, refusals too."""
    monkeypatch.setattr(inner_streams, "PIECES", pieces)
    client, gate = talk(limit=RuleLimits(requests=only(methods=("GET",), paths=("/good/**",))))
    paths = [f"/{'bad' if number % 3 == 2 else 'good'}/{number}" for number in range(3 * inner_streams.PIECES)]
    numbers = []
    for path in paths:
        number = client.conn.get_next_available_stream_id()
        client.conn.send_headers(number, [*GET[:3], (":path", path)], end_stream=True)
        numbers.append(number)
    client.flush()
    ended: set[int] = set()
    told: dict[int, str] = {}
    while len(ended) < len(paths):
        for event in client.until(lambda one: isinstance(one, StreamEnded | StreamReset)):
            assert not isinstance(event, StreamReset)
            if isinstance(event, ResponseReceived):
                told[event.stream_id] = dict(event.headers)[":status"]
            elif isinstance(event, StreamEnded):
                ended.add(event.stream_id)
    assert [told[number] for number in numbers] == ["403" if "bad" in path else "200" for path in paths]
    assert [dict(fields)[":path"] for fields in site[0].requests] == [path for path in paths if "good" in path]
    events = gate.gate.events(len(paths))
    assert sorted(event.status for event in events) == sorted(int(status) for status in told.values())


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ([*GET[:2], (":authority", "b.test"), GET[3]], "421"),
        ([*GET[:2], (":authority", "a.test:8443"), GET[3]], "421"),
        ([*GET[:2], (":authority", "A.test:443"), GET[3]], "200"),
        ([*GET[:2], (":authority", "u@a.test"), GET[3]], "421"),
        ([GET[0], (":scheme", "http"), *GET[2:]], "400"),
        ([*GET[:3], (":path", "x")], "400"),
        ([*GET[:3], (":path", "/x#y")], "400"),
        ([(":method", "CONNECT"), (":authority", "a.test")], "405"),
        ([(":method", "TRACE"), *GET[1:]], "405"),
    ],
)
def test_whom_and_what_a_stream_may_name(talk: Any, site: tuple[H2Site, str], fields: Any, status: str) -> None:
    """INS-4, B116: the authority is the connection's or 421; what the destination hears is canonical."""
    client, _ = talk()
    number = client.ask(fields)
    events = client.until(lambda event: isinstance(event, StreamEnded | StreamReset | ConnectionTerminated))
    head = next((dict(event.headers) for event in events if isinstance(event, ResponseReceived)), {})
    assert head.get(":status", "400") == status, (number, events)
    assert len(site[0].requests) == int(status == "200")
    if status == "200":
        assert dict(site[0].requests[0])[":authority"] == "a.test"


@pytest.mark.parametrize(
    "field",
    [
        ("x\r\ny", "z"),
        ("x", "a\r\nHost: b.test"),
        ("x", "a\0b"),
        ("X-Upper", "z"),
        ("x y", "z"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
        ("te", "gzip"),
        ("host", "b.test"),
        ("content-length", "5"),
        (":path", "/second"),
        ("", "z"),
    ],
)
def test_fields_that_are_none_elsewhere_do_not_travel(talk: Any, site: tuple[H2Site, str], field: Any) -> None:
    """INS-3: what would smuggle once somebody behind the destination speaks HTTP/1.1: the stream or connection ends."""
    client, _ = talk()
    client.ask([*GET, field], b"" if field[0] == "content-length" else None)
    events = client.until(lambda event: isinstance(event, StreamEnded | StreamReset | ConnectionTerminated))
    head = next((dict(event.headers) for event in events if isinstance(event, ResponseReceived)), {})
    assert head.get(":status", "400") in {"400", "421"}
    time.sleep(0.1)
    assert [fields for fields in site[0].requests if field in fields and field[0] != "content-length"] == []
    assert b"second" not in b"".join(site[0].bodies)


def test_trailers_and_large_bodies_pass_both_ways(talk: Any, site: tuple[H2Site, str]) -> None:
    """INS-3: gRPC's trailers, and more than every window: all of it arrives."""
    size = 3_000_000
    site[0].answers["/x"] = (
        [(":status", "200"), ("alt-svc", "h3"), ("x-own", "1")],
        b"y" * size,
        [("grpc-status", "0")],
    )
    client, gate = talk()
    head, body, trailers, _ = client.answer(client.ask(GET))
    assert len(body) == size
    assert trailers == {"grpc-status": "0"}
    assert head == {":status": "200", "x-own": "1"}
    number = client.conn.get_next_available_stream_id()
    client.conn.send_headers(number, [(":method", "POST"), *GET[1:3], (":path", "/echo")])
    left = size
    while left:
        room = min(client.conn.local_flow_control_window(number), client.conn.max_outbound_frame_size, left)
        if room:
            client.conn.send_data(number, bytes(room))
            left -= room
            client.flush()
        else:
            client.conn.receive_data(client.sock.recv(65536))
            client.flush()
    client.conn.end_stream(number)
    client.flush()
    client.answer(number)
    assert len(site[0].bodies[-1]) == size
    assert gate.gate.events(2)[1].bytes_up > size


def test_a_client_that_takes_nothing_stops_the_destination(talk: Any, site: tuple[H2Site, str]) -> None:
    """GAT-5: without windows of the client, no more than our own windows is held for it."""
    site[0].answers["/x"] = ([(":status", "200")], bytes(8 << 20), [])
    client, gate = talk()
    for _ in range(8):
        client.ask(GET)
    time.sleep(1)
    handler = next(h for h in gate.gate.gate.reactor.table.values() if type(h).__name__ == "InnerStreams")
    held = sum(len(part) for one in handler._streams._by_client.values() for part in one.down.waiting)
    assert held <= 1 << 20


def test_rapid_resets_end_the_connection(talk: Any, site: tuple[H2Site, str]) -> None:
    """INS-3: streams that are opened and reset at once are stopped, and the gate goes on with others."""
    client, gate = talk()
    with contextlib.suppress(OSError):
        for _ in range(300):
            number = client.conn.get_next_available_stream_id()
            client.conn.send_headers(number, GET)
            client.conn.reset_stream(number)
            client.flush()
    events = []
    with contextlib.suppress(OSError):
        events = client.until(lambda event: isinstance(event, ConnectionTerminated))
    gate.gate.idle()
    assert all(event.error_code == 11 for event in events if isinstance(event, ConnectionTerminated))
    assert len(site[0].requests) < 300
    again = Talk(gate)
    assert again.answer(again.ask(GET))[0][":status"] == "200"
    again.sock.close()


@pytest.mark.parametrize("kind", ["ping", "settings", "empty", "continuation", "header-bomb", "garbage"])
@pytest.mark.usefixtures("site")
def test_floods_end_the_connection(talk: Any, kind: str) -> None:
    """INS-3: frames that move nothing, headers without end, and what is no HTTP/2 at all."""
    client, gate = talk()
    with contextlib.suppress(OSError):
        if kind == "continuation":
            client.sock.sendall(b"\x00\x00\x01\x01\x01\x00\x00\x00\x01\x82")
            for _ in range(2000):
                client.sock.sendall(b"\x00\x00\x01\x09\x00\x00\x00\x00\x01\x84")
        elif kind == "header-bomb":
            client.ask([*GET, *((f"x-{number}", "y" * 4000) for number in range(40))])
        elif kind == "garbage":
            client.sock.sendall(b"\xff" * 50_000)
        else:
            if kind == "empty":
                number = client.conn.get_next_available_stream_id()
                client.conn.send_headers(number, [(":method", "POST"), *GET[1:]])
            for _ in range(3000):
                if kind == "ping":
                    client.conn.ping(bytes(8))
                elif kind == "settings":
                    client.conn.update_settings({4: 65535})
                else:
                    client.conn.send_data(number, b"")
            client.flush()
        client.until(lambda event: isinstance(event, ConnectionTerminated))
    gate.gate.idle()


def test_the_destination_may_go_away_and_finish(talk: Any, site: tuple[H2Site, str]) -> None:
    """INS-3: GOAWAY after an answer: the answer is whole, the client hears of it, and nothing is lost."""

    def leave(conn: H2Connection, number: int) -> None:
        from hyperframe.frame import GoAwayFrame

        conn._prepare_for_sending([GoAwayFrame(0, last_stream_id=number, error_code=0)])

    site[0].extra = leave
    client, gate = talk()
    number = client.ask(GET)
    events = client.until(lambda event: isinstance(event, ConnectionTerminated))
    assert any(isinstance(event, StreamEnded) and event.stream_id == number for event in events)
    gate.gate.idle()


def test_a_destination_that_does_not_verify_is_told_in_http2(inside: Start, site: tuple[H2Site, str]) -> None:
    """INS-3: to a client that offers nothing but h2: 502 on the stream, with the reason."""
    gate = inside("a.test:443", roots=trustme.CA().cert_pem.bytes().decode())
    sock = gate.tunnel("a.test:443", "h2")
    client = Talk.__new__(Talk)
    client.sock = sock
    client.conn = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
    client.conn.initiate_connection()
    client.flush()
    head, body, *_ = client.answer(client.ask(GET))
    assert head[":status"] == "502"
    assert b"upstream-certificate" in body
    sock.close()
    assert gate.gate.event().reason is Reason.UPSTREAM_CERTIFICATE
    assert site[0].requests == []


def test_whoever_leaves_takes_nobody_with_it(inside: Start, site: tuple[H2Site, str]) -> None:
    """INS-3, GAT-2: a destination's socket that was closed early has a number that others get; they are served on."""
    gate = inside("a.test:443", roots=trustme.CA().cert_pem.bytes().decode())
    with contextlib.ExitStack() as open_:
        waiting = [open_.enter_context(socket.socket()) for _ in range(16)]  # so that theirs are other numbers
        sock = gate.tunnel("a.test:443", "h2")
        serving = gate.gate

        def number() -> int | None:
            found = [one for one in serving.gate.reactor.table.values() if isinstance(one, inner_streams.InnerStreams)]
            return found[0]._fds[1] if found else None

        wait(lambda: serving.on_thread(number) is not None, lambda: "it is not read")
        freed = serving.on_thread(number)
        for one in waiting:
            one.settimeout(10)
            one.connect(serving.address)
        wait(lambda: serving.gate.connections == 17, lambda: f"{serving.gate.connections} are open")
        if serving.on_thread(lambda: serving.gate.reactor.table.get(freed)) is None:
            pytest.skip(f"none of 16 connections was given the number {freed}")
        sock.close()
        wait(lambda: serving.gate.connections == 16, lambda: f"{serving.gate.connections} are open")
        for one in waiting:
            one.sendall(b"CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n")
        assert [one.recv(13) for one in waiting] == [b"HTTP/1.1 403 "] * 16
    assert site[0].requests == []


def test_a_destination_that_wants_a_client_certificate_is_told_in_http2(lab: Lab, inside: Start) -> None:
    """B113: TLS 1.3 says so after its handshake; each request is told 502, and what to write."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    authority.issue_cert("a.test").configure_cert(context)
    with H2Site(lab.listener("1.2.3.4", 443), context) as site:
        gate = inside("a.test:443", roots=authority.cert_pem.bytes().decode())
        client = Talk(gate)
        with client.sock:
            for _ in range(2):
                head, body, *_ = client.answer(client.ask(GET))
                assert head[":status"] == "502"
                assert b"inspect: " in body
        assert [event.reason for event in gate.gate.events(2)] == [Reason.CLIENT_CERTIFICATE] * 2
    assert site.requests == []


def longest_turn(gate: Inside, done: Callable[[], bool]) -> float:
    """The most seconds of a processor that the gate's thread takes until somebody else is served.

    Its own time, and not the clock's: on a busy machine it is kept waiting itself.
    """
    longest, before, end = 0.0, gate.gate.on_thread(time.thread_time), time.monotonic() + 60
    while not done() and time.monotonic() < end:
        now = gate.gate.on_thread(time.thread_time)
        longest, before = max(longest, now - before), now
    return longest


def test_frames_of_a_byte_do_not_keep_others_waiting(talk: Any) -> None:
    """GAT-11: a turn of the loop ends in time however much work its bytes are; what was sent arrives all the same."""
    client, gate = talk()
    number = client.conn.get_next_available_stream_id()
    client.conn.send_headers(number, [(":method", "POST"), *GET[1:]])
    client.flush()
    client.sock.sendall(b"".join(DataFrame(number, b"a").serialize() for _ in range(20000)))
    end = time.monotonic() + 1
    assert longest_turn(gate, lambda: time.monotonic() > end) < 0.5  # it was more than a second
    end_frame = DataFrame(number, b"b")
    end_frame.flags.add("END_STREAM")
    client.sock.sendall(end_frame.serialize())
    assert client.answer(number)[1].endswith(b"a" * 20000 + b"b")


def test_blocks_that_name_many_fields_do_not_keep_others_waiting(talk: Any) -> None:
    """GAT-11: a thousand fields a block, a byte each, one block behind the other: a turn of the loop ends in time."""
    client, gate = talk()
    client.answer(client.ask([*GET, ("x-mark", "y")]))
    block = client.conn.encoder.encode([*GET, *[("x-mark", "y")] * 1000])
    blocks = [HeadersFrame(2 * number + 5, block, flags=["END_HEADERS", "END_STREAM"]) for number in range(50)]
    client.sock.sendall(b"".join(frame.serialize() for frame in blocks))
    # Two at most come with one read; they were looked at in one turn, however many came.
    assert longest_turn(gate, lambda: len(gate.gate.recording.events) >= 51) < 1.0
    assert {event.reason for event in gate.gate.events(51)[1:]} == {Reason.HEADERS_TOO_LARGE}


def test_a_client_that_begins_no_stream_is_ended(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """GAT-6: pings, or the fields of a request one by one, hold no connection for ever."""
    monkeypatch.setattr(inner_streams, "BETWEEN", 1.0)
    client, gate = talk()
    client.sock.settimeout(0.2)
    end = time.monotonic() + 20
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while time.monotonic() < end:
            client.conn.ping(bytes(8))
            client.flush()
            try:
                if not client.sock.recv(4096):
                    break
            except TimeoutError:
                continue
    assert gate.gate.event().how is How.INSPECTED
    gate.gate.idle()


def test_a_destination_without_http2_gets_http1(lab: Lab, inside: Start) -> None:
    """INS-3, B49: a client that offers both is offered what the destination has; nothing is translated."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 443, tls="a.test")
    with inside("a.test:443").tunnel("a.test:443", "h2", "http/1.1") as sock:
        assert sock.selected_alpn_protocol() in {None, "http/1.1"}


def test_httpx_over_http2(inside: Start, site: tuple[H2Site, str]) -> None:
    """INS-3: a real client library, several streams on one connection."""
    gate = inside("a.test:443", roots=site[1])
    proxy = "http://{}:{}".format(*gate.gate.address)
    with httpx.Client(http2=True, proxy=proxy, verify=gate.context(), trust_env=False) as client:
        for number in range(3):
            answer = client.post(f"https://a.test/{number}", content=b"z" * 1000)
            assert (answer.status_code, answer.http_version) == (200, "HTTP/2")
            assert f":path: /{number}" in answer.text
    assert site[0].connections == 1


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_over_http2(inside: Start, site: tuple[H2Site, str], tmp_path: Path) -> None:
    """INS-3: curl with its own HTTP/2."""
    gate = inside("a.test:443", roots=site[1])
    roots = tmp_path / "roots.pem"
    roots.write_text(gate.trusted)
    proxy = "http://{}:{}".format(*gate.gate.address)
    argv = ["curl", "-sS", "--http2", "--max-time", "20", "--proxy", proxy, "--cacert", str(roots)]
    done = subprocess.run(
        [*argv, "-w", "%{http_version}", "https://a.test/x"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert ":path: /x" in done.stdout
    assert done.stdout.endswith("2")


def test_one_that_follows_no_redirects_gets_none(talk: Any, site: tuple[H2Site, str]) -> None:
    """SRV-6: an answer that leads elsewhere is a reset for a tool that says apply_task_hosts, and passes for a task."""
    site[0].answers["/x"] = ([(":status", "302"), ("location", "https://a.test/y")], b"", [])
    client, gate = talk()
    assert client.answer(client.ask(GET))[0][":status"] == "302"
    gate.gate.task.redirected = False
    head, _body, _trailers, reset = client.answer(client.ask(GET))
    assert (head, reset) == ({}, True)
    assert [event.reason for event in gate.gate.events(2)] == [Reason.ALLOWED, Reason.REDIRECT_REFUSED]
