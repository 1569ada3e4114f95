"""HTTP/2 on memory: what of both sides' frames the gate's tests do not reach with real peers."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    InformationalResponseReceived,
    RequestReceived,
    ResponseReceived,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from hyperframe.frame import DataFrame

from tidegate.inspect.http2 import MOST_IDLE_FRAMES, Http2
from tidegate.model.destination import parse_authority
from tidegate.model.limits import DEFAULT_LIMITS
from tidegate.model.reason import Reason
from tidegate.model.rule import Layer, Origin, RuleLimits, only
from tidegate.model.verdict import How, Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.policy import make_policy
from tidegate.policy.rows import rule_row

GET = [(":method", "GET"), (":scheme", "https"), (":authority", "a.test"), (":path", "/x")]
SOCKET = [(":method", "CONNECT"), (":protocol", "websocket"), *GET[1:]]

SOCKETS = {SettingCodes.ENABLE_CONNECT_PROTOCOL: 1}


class Line:
    """What one stream would be in the journal."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.decision: Any = None
        self.status = self.up = self.down = 0
        self.written: list[tuple[How, Reason]] = []

    def led(self, location: bytes) -> None:
        """Nobody asks here."""

    def came_from(self) -> str:
        """Nobody sent it."""
        return ""

    def write(self, how: How, reason: Reason) -> None:
        """Keep it."""
        self.written.append((how, reason))


class World:
    """A client, a destination, and what reads between them."""

    def __init__(
        self,
        limits: RuleLimits = RuleLimits(requests=only(paths=("/**",))),  # noqa: B008
        *,
        settings: Any = None,
        mine: Any = None,
        secrets: Any = None,
    ) -> None:
        row = rule_row(
            "a.test:443", Verdict.ALLOW, Phase.RUNTIME, "policy", "p:1:1", Origin.WRITTEN, Layer.COMMAND_LINE, limits
        )
        decision = decide(make_policy([row]), parse_authority("a.test:443"), Phase.RUNTIME)
        self.lines: list[Line] = []
        self.middle = Http2(decision, DEFAULT_LIMITS, self._line, None, None, secrets)
        self.client = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.site = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        if mine:
            self.client.local_settings = Settings(client=True, initial_values=mine)
        self.client.initiate_connection()
        self.site.local_settings = Settings(
            client=False, initial_values={SettingCodes.ENABLE_CONNECT_PROTOCOL: 0, **(settings or {})}
        )
        self.site.initiate_connection()
        self.heard: list[Any] = []  # by the client
        self.seen: list[Any] = []  # by the destination
        self.turn()

    def _line(self, method: str) -> Line:
        self.lines.append(Line(method))
        return self.lines[-1]

    def turn(self) -> None:
        """Let everything that is to be sent arrive."""
        for _ in range(6):
            self.middle.from_client(self.client.data_to_send())
            while self.middle.client_waits:
                self.middle.from_client(b"")
            self.seen += self.site.receive_data(self.middle.take_upstream())
            if self.middle.over:
                break
            self.middle.from_upstream(self.site.data_to_send())
            while self.middle.upstream_waits:
                self.middle.from_upstream(b"")
            while self.middle.hungry:
                self.middle.go_on()
            self.heard += self.client.receive_data(self.middle.take_client())
        self.heard += self.client.receive_data(self.middle.take_client())

    def ask(self, fields: list[tuple[str, str]], *, ends: bool = True) -> int:
        """Begin a stream."""
        number = self.client.get_next_available_stream_id()
        self.client.send_headers(number, fields, end_stream=ends)
        self.turn()
        return number

    def of(self, kind: type) -> list[Any]:
        """What of a kind the client heard."""
        return [event for event in self.heard if isinstance(event, kind)]


def test_a_websocket_where_the_destination_has_them() -> None:
    """INS-3, RFC 8441: offered to the client only after the destination; judged by its path, then bytes both ways."""
    world = World(RuleLimits(requests=only(("GET",), ("/x",))), settings=SOCKETS)
    assert world.client.remote_settings.enable_connect_protocol == 1
    number = world.ask(SOCKET, ends=False)
    (asked,) = [event for event in world.seen if isinstance(event, RequestReceived)]
    assert dict(asked.headers)[":protocol"] == "websocket"
    world.site.send_headers(asked.stream_id, [(":status", "200")])
    world.site.send_data(asked.stream_id, b"down")
    world.client.send_data(number, b"up")
    world.turn()
    assert [event.data for event in world.of(DataReceived)] == [b"down"]
    assert [event.data for event in world.seen if isinstance(event, DataReceived)] == [b"up"]
    other = World(RuleLimits(requests=only(("POST",), ("/x",))), settings=SOCKETS)
    other.ask(SOCKET, ends=False)
    assert dict(other.of(ResponseReceived)[0].headers)[":status"] == "403"


def test_no_websocket_is_offered_where_there_is_none() -> None:
    """INS-3: the client is told nothing of it."""
    assert World().client.remote_settings.enable_connect_protocol == 0


def test_the_destinations_bound_of_streams_is_the_clients() -> None:
    """INS-3: it is passed on, and what comes beyond it is refused so that it may be tried again."""
    world = World(settings={SettingCodes.MAX_CONCURRENT_STREAMS: 1})
    assert world.client.remote_settings.max_concurrent_streams == 1
    world = World()
    world.ask(GET, ends=False)
    world.middle._upstream.remote_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = 1  # the client has not heard of it
    world.middle._upstream.remote_settings.acknowledge()
    number = world.ask(GET, ends=False)
    (reset,) = world.of(StreamReset)
    assert (reset.stream_id, reset.error_code) == (number, ErrorCodes.REFUSED_STREAM)


def test_a_destination_that_ends_is_told_on_every_stream() -> None:
    """INS-3: 502 where there was no answer, a reset where it had begun."""
    world = World()
    first, second = world.ask(GET), world.ask(GET)
    asked = [event.stream_id for event in world.seen if isinstance(event, RequestReceived)]
    world.site.send_headers(asked[0], [(":status", "200")])
    world.turn()
    world.middle.upstream_ended()
    world.turn()
    statuses = {event.stream_id: dict(event.headers)[":status"] for event in world.of(ResponseReceived)}
    assert statuses == {first: "200", second: "502"}
    assert [event.stream_id for event in world.of(StreamReset)] == [first]
    assert [line.written for line in world.lines] == [
        [(How.INSPECTED, Reason.UPSTREAM_CLOSED)],
        [(How.REFUSED, Reason.UPSTREAM_CLOSED)],
    ]
    assert world.middle.over


def test_what_a_destination_did_not_take_may_be_tried_again() -> None:
    """INS-3: GOAWAY names the last stream that it takes; those behind it are refused, those before it go on."""
    from hyperframe.frame import GoAwayFrame

    world = World()
    first, second = world.ask(GET), world.ask(GET)
    world.site._prepare_for_sending([GoAwayFrame(0, last_stream_id=1, error_code=0)])
    world.turn()
    assert [(event.stream_id, event.error_code) for event in world.of(StreamReset)] == [
        (second, ErrorCodes.REFUSED_STREAM)
    ]
    world.site.send_headers(1, [(":status", "200")], end_stream=True)
    world.middle.from_upstream(world.site.data_to_send())
    assert world.middle.over
    assert world.lines[0].status == 200
    assert first == 1


def test_a_cut_is_on_every_line() -> None:
    """JRN-1: streams that are open when the connection is cut are recorded, once."""
    world = World()
    world.ask(GET)
    world.ask(GET)
    world.middle.ended(Reason.CUT)
    world.middle.ended(Reason.CUT)
    assert [line.written for line in world.lines] == [[(How.REFUSED, Reason.CUT)]] * 2
    assert world.middle.streams == 0


@pytest.mark.parametrize(
    "fields", [[(":status", "101")], [(":status", "2xx")], [(":status", "200"), ("x", "a\tb\x7f")]]
)
def test_an_answer_that_is_none_is_not_passed_on(fields: list[tuple[str, str]]) -> None:
    """GAT-4: 502 in its place."""
    world = World()
    world.ask(GET)
    world.site.config.validate_outbound_headers = False
    world.site.send_headers(1, fields)
    world.turn()
    assert [dict(event.headers)[":status"] for event in world.of(ResponseReceived)] == ["502"]
    assert not world.of(ConnectionTerminated)


def test_a_refusal_is_on_record_and_told_whatever_the_clients_windows_are() -> None:
    """INS-6, JRN-1: without room for its line the status is told alone, and the connection goes on."""
    world = World(RuleLimits(requests=only(methods=("GET",))))
    world.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
    world.turn()
    world.ask([(":method", "POST"), *GET[1:]])
    assert [line.written for line in world.lines] == [[(How.REFUSED, Reason.METHOD_NOT_ALLOWED)]]
    (answer,) = world.of(ResponseReceived)
    assert dict(answer.headers)[":status"] == "403"
    assert answer.stream_ended is not None
    world.ask(GET)
    assert len([event for event in world.seen if isinstance(event, RequestReceived)]) == 1


def test_a_refused_stream_that_is_reset_at_once_ends_no_other() -> None:
    """INS-3: the request and its reset arrive together; the connection goes on."""
    world = World(RuleLimits(requests=only(methods=("GET",))))
    world.client.send_headers(1, [(":method", "POST"), *GET[1:]], end_stream=True)
    world.client.reset_stream(1)
    world.turn()
    assert not world.middle.over
    assert [line.written for line in world.lines] == [[(How.REFUSED, Reason.METHOD_NOT_ALLOWED)]]


def test_an_upload_that_is_refused_may_go_on_to_its_end() -> None:
    """B47, INS-3: many clients read the answer only then; frames without a byte on it are a flood all the same."""
    world = World(RuleLimits(requests=only(methods=("GET",))))
    number = world.ask([(":method", "POST"), *GET[1:]], ends=False)
    frame = DataFrame(number, b"x").serialize()
    for _ in range(2 * MOST_IDLE_FRAMES):
        world.middle.from_client(frame)
        while world.middle.client_waits:
            world.middle.from_client(b"")
    assert not world.middle.over
    assert [line.written for line in world.lines] == [[(How.REFUSED, Reason.METHOD_NOT_ALLOWED)]]
    empty = DataFrame(number, b"").serialize()
    for _ in range(MOST_IDLE_FRAMES + 1):
        world.middle.from_client(empty)
        while world.middle.client_waits:
            world.middle.from_client(b"")
    assert world.middle.over


def test_what_is_no_method_is_not_put_on_record() -> None:
    """JRN-5: no bytes of a client's choice reach the journal as a method; too many fields are refused, as in HTTP/1."""
    world = World()
    world.client.config.validate_outbound_headers = False
    world.ask([(":method", "A" * 33), *GET[1:]])
    world.ask([*GET, *[("a", "b")] * 101])
    assert [line.method for line in world.lines] == ["", "GET"]
    statuses = [dict(event.headers)[":status"] for event in world.of(ResponseReceived)]
    assert statuses == ["400", "431"]
    world.ask([*GET, *[("a", "b")] * 100])
    assert len([event for event in world.seen if isinstance(event, RequestReceived)]) == 1


def test_trailers_say_nothing_that_a_head_should() -> None:
    """INS-3, B64: names that decide on method, target, framing or identity stay behind; others travel, both ways."""
    world = World()
    world.client.config.validate_outbound_headers = False
    number = world.ask([(":method", "POST"), *GET[1:]], ends=False)
    bad = ["host", "content-length", "authorization", "x-http-method-override", "x_http_method", "x-original-url"]
    world.client.send_headers(number, [*((name, "1") for name in bad), ("x-sum", "2")], end_stream=True)
    world.turn()
    assert [event.headers for event in world.seen if isinstance(event, TrailersReceived)] == [[("x-sum", "2")]]
    world.site.send_headers(1, [(":status", "200")])
    world.site.send_headers(1, [("alt-svc", "h3"), ("grpc-status", "0")], end_stream=True)
    world.turn()
    assert [event.headers for event in world.of(TrailersReceived)] == [[("grpc-status", "0")]]


def test_frames_of_a_byte_cost_what_they_are() -> None:
    """GAT-5: what waits for a window is kept as bytes, not as an object for each frame; all of it arrives in order."""
    world = World(settings={SettingCodes.INITIAL_WINDOW_SIZE: 0})
    number = world.ask([(":method", "POST"), *GET[1:]], ends=False)
    sent = bytes(range(256)) * 32
    world.middle.from_client(b"".join(DataFrame(number, sent[at : at + 2]).serialize() for at in range(0, 8192, 2)))
    waiting = world.middle._by_client[number].up.waiting
    assert len(waiting) <= 8
    world.site.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 65535})
    world.turn()
    assert b"".join(event.data for event in world.seen if isinstance(event, DataReceived)) == sent


def test_an_answer_of_too_many_fields_is_not_passed_on() -> None:
    """INS-3: fields that were not looked at do not go missing in silence: neither of an answer nor of trailers."""
    world = World()
    number = world.ask(GET)
    world.site.send_headers(1, [(":status", "200"), *[("x-mark", "y")] * 200], end_stream=True)
    world.turn()
    (answer,) = world.of(ResponseReceived)
    assert (answer.stream_id, dict(answer.headers)[":status"]) == (number, "502")
    assert world.lines[0].written[0][1] is Reason.UPSTREAM_RESPONSE
    number = world.ask([(":method", "POST"), *GET[1:]], ends=False)
    world.client.send_headers(number, [("x-mark", "y")] * 200, end_stream=True)
    world.turn()
    assert world.lines[1].written[0][1] is Reason.BAD_REQUEST
    assert not [one for one in world.seen if isinstance(one, TrailersReceived)]


def test_a_destination_that_floods_is_ended() -> None:
    """INS-3, GAT-6: each of its pings is answered, whether it reads or not; what moves between them is no flood."""
    world = World()
    world.ask(GET)
    world.ask(GET)
    for spell in range(4):
        for _ in range(MOST_IDLE_FRAMES // 2 if spell < 3 else MOST_IDLE_FRAMES + 1):
            world.site.ping(bytes(8))
        if spell < 3:
            world.site.send_headers(1, [(":status", "103")])
        world.turn()
        assert world.middle.over is (spell == 3)
    assert [line.written for line in world.lines] == [[(How.REFUSED, Reason.UPSTREAM_RESPONSE)]] * 2
    assert len(world.of(ConnectionTerminated)) == 1


def test_interim_answers_end() -> None:
    """RFC 9110 section 15.2: as many as anybody sends pass; a stream of nothing else is 502, and the others go on."""
    world = World()
    number, other = world.ask(GET), world.ask(GET)
    hint = [(":status", "103"), ("link", "x" * 1000)]
    for at in range(DEFAULT_LIMITS.header_bytes // 1000):
        with contextlib.suppress(ProtocolError):  # its stream was reset
            world.site.send_headers(1, hint)
        if at == 20:
            world.turn()
            assert len(world.of(InformationalResponseReceived)) == 21
    world.turn()
    assert [(event.stream_id, dict(event.headers)[":status"]) for event in world.of(ResponseReceived)] == [
        (number, "502")
    ]
    world.site.send_headers(3, [(":status", "200")], end_stream=True)
    world.turn()
    assert world.of(ResponseReceived)[1].stream_id == other
