"""Secrets over HTTP/2, on memory: what the destination hears, what the client does, and what neither ever keeps."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from h2.events import (
    DataReceived,
    InformationalResponseReceived,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.settings import SettingCodes
from hpack import NeverIndexedHeaderTuple

from tests.coded import Coder, coded
from tests.unit.inspect.test_grpc import message
from tests.unit.inspect.test_http2 import GET, SOCKET, World
from tidegate.inspect.secrets import Place, Secret, Vault, Where
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

VALUE, STANDS = b"ghp_RealRealRealReal0001", b"ghp_FakeFakeFakeFake0002"
BEARER = ("authorization", f"Bearer {STANDS.decode()}")


def vault(place: Place = Place(Where.BEARER), host: str = "a.test") -> Vault:  # noqa: B008
    """One secret."""
    return Vault([Secret("TOKEN", ((host, 443),), place, VALUE, STANDS)])


class Talk(World):
    """A task with a secret of a.test."""

    def __init__(self, secrets: Vault | None = None, **options: Any) -> None:
        super().__init__(secrets=secrets or vault(), **options)

    def asked(self) -> Any:
        """The newest request that the destination heard."""
        return [event for event in self.seen if isinstance(event, RequestReceived)][-1]

    def answer(self, fields: list[tuple[str, str]], *data: bytes, trailers: Any = None) -> int:
        """Let the destination answer the newest request."""
        number: int = self.asked().stream_id
        self.site.send_headers(number, [(":status", "200"), *fields])
        for one in data:
            self.site.send_data(number, one)
        if trailers is not None:
            self.site.send_headers(number, trailers, end_stream=True)
        else:
            self.site.end_stream(number)
        self.turn()
        return number

    def body(self) -> bytes:
        """What the client read."""
        return b"".join(event.data for event in self.of(DataReceived))


PLACES = [
    (Place(Where.BEARER), "/x", BEARER, "authorization", b"Bearer " + VALUE),
    (Place(Where.HEADER, b"x-api-key"), "/x", ("x-api-key", STANDS.decode()), "x-api-key", VALUE),
    (Place(Where.HEADER, b"cookie"), "/x", ("cookie", f"s={STANDS.decode()}"), "cookie", b"s=" + VALUE),
    (Place(Where.QUERY, b"key"), f"/x?key={STANDS.decode()}", ("a", "b"), ":path", b"/x?key=" + VALUE),
]


@pytest.mark.parametrize(("place", "path", "field", "name", "seen"), PLACES)
def test_the_destination_hears_the_value_and_indexes_it_never(
    place: Place, path: str, field: tuple[str, str], name: str, seen: bytes
) -> None:
    """INS-5, RFC 7541 section 7.1.3: in its place; no table of either side keeps it."""
    talk = Talk(vault(place))
    talk.ask([*GET[:3], (":path", path), field, ("accept-encoding", "gzip, exi")])
    found = {key: (value, type(made)) for made in talk.asked().headers for key, value in [made]}
    assert found[name] == (seen.decode(), NeverIndexedHeaderTuple)
    assert found["accept-encoding"][0] == "gzip"
    for table in (talk.middle._upstream.encoder.header_table, talk.site.decoder.header_table):
        assert not any(VALUE in bytes(value) for _, value in table.dynamic_entries)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ([*GET, ("x-other", STANDS.decode())], "belongs in bearer"),
        ([*GET[:3], (":path", f"/{STANDS.decode()}")], "belongs in bearer"),
        ([*GET, ("cookie", "a=b"), ("cookie", f"t={STANDS.decode()}")], "belongs in bearer"),
        ([*GET, ("authorization", f"AWS4-HMAC-SHA256 Credential={STANDS.decode()}/x")], "a signature"),
    ],
)
def test_a_stand_in_elsewhere_stops_the_stream_and_no_other(fields: list[tuple[str, str]], says: str) -> None:
    """INS-5, B124: 403 that names the secret, a line of the journal; the destination hears nothing of it."""
    talk = Talk()
    talk.ask(fields)
    assert not [event for event in talk.seen if isinstance(event, RequestReceived)]
    assert dict(talk.of(ResponseReceived)[0].headers)[":status"] == "403"
    assert "the secret TOKEN" in talk.body().decode()
    assert says in talk.body().decode()
    assert talk.lines[0].written == [(How.REFUSED, Reason.SECRET_MISDIRECTED)]
    talk.ask(GET)
    assert dict(talk.asked().headers)[":path"] == "/x"


def test_another_host_gets_nothing() -> None:
    """B121: the secret is b.test's, the connection a.test's; without the stand-in all passes unchanged."""
    talk = Talk(vault(host="b.test"))
    talk.ask([*GET, BEARER])
    assert "does not belong to a.test:443" in talk.body().decode()
    talk.ask([*GET, ("accept-encoding", "exi")])
    assert ("accept-encoding", "exi") in talk.asked().headers
    talk.answer([("content-encoding", "exi")], VALUE)
    assert talk.body().endswith(VALUE)  # it never had it from us


def test_no_websocket_where_a_secret_is() -> None:
    """B118: 403 with the reason."""
    talk = Talk(settings={SettingCodes.ENABLE_CONNECT_PROTOCOL: 1})
    talk.ask(SOCKET, ends=False)
    assert "a WebSocket cannot be kept free" in talk.body().decode()
    assert talk.lines[0].written == [(How.REFUSED, Reason.NOT_INSPECTABLE)]


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_frames_of_a_byte_each_are_clean(coding: str) -> None:
    """B118: the destination chooses where DATA ends: a byte a frame, padded, with empty frames between them."""
    text = b"<" + VALUE + b"> " + b64encode(b"me:" + VALUE) + b" " + VALUE[:9] + b" end"
    body = coded(text, coding) if coding else text
    talk = Talk()
    talk.ask([*GET, BEARER])
    number = talk.asked().stream_id
    talk.site.send_headers(number, [(":status", "200"), *([("content-encoding", coding)] if coding else [])])
    for at in range(len(body)):
        talk.site.send_data(number, body[at : at + 1], pad_length=at % 7)
        if not at % 5:
            talk.site.send_data(number, b"", pad_length=3)
        talk.turn()
    talk.site.end_stream(number)
    talk.turn()
    assert talk.body().replace(STANDS, b"") == b"<> " + b64encode(b"me:" + STANDS) + b" " + VALUE[:9] + b" end"
    assert talk.body().count(STANDS) == 1


@pytest.mark.parametrize("codings", [(), ("gzip",), ("br",), ("zstd",), ("deflate", "gzip")], ids="-".join)
def test_every_part_of_an_answer_is_clean(codings: tuple[str, ...]) -> None:
    """B118: interim and final fields, DATA cut in the middle of the value, trailers; under each coding."""
    talk = Talk()
    talk.ask([*GET, BEARER])
    number = talk.asked().stream_id
    talk.site.send_headers(number, [(":status", "103"), ("link", f"</{VALUE.decode()}>")])
    text = b"a" * 3000 + VALUE + b"b" * 3000
    body = coded(text, *codings)
    fields = [("x-back", f"<{VALUE.decode()}>"), ("location", f"/?t={VALUE.decode()}"), ("digest", "x")]
    fields += [("content-length", str(len(body))), ("etag", '"1"')]
    if codings:
        fields.append(("content-encoding", ", ".join(codings)))
    pieces = [body[at : at + 7] for at in range(0, len(body), 7)]
    talk.answer(fields, *pieces, trailers=[("grpc-message", VALUE.decode()), ("content-digest", "x")])
    heard = [event.headers for event in (*talk.of(InformationalResponseReceived), *talk.of(ResponseReceived))]
    stands = STANDS.decode()
    assert ("link", f"</{stands}>") in heard[0]
    final = dict(heard[1])
    assert (final["x-back"], final["location"]) == (f"<{stands}>", f"/?t={stands}")
    assert ("digest" in final, "content-encoding" in final) == (False, False)
    assert (final.get("content-length"), final["etag"]) == ((None, 'W/"1"') if codings else (str(len(text)), '"1"'))
    assert talk.body() == text.replace(VALUE, STANDS)
    assert [event.headers for event in talk.of(TrailersReceived)] == [[("grpc-message", stands)]]
    assert talk.lines[0].written == [(How.INSPECTED, Reason.ALLOWED)]
    assert talk.site.outbound_flow_control_window > 1 << 19


def test_events_come_as_they_were_flushed() -> None:
    """B119: each before the next; what may begin a value waits, and no more."""
    talk, coder = Talk(), Coder("gzip")
    talk.ask([*GET, BEARER])
    number = talk.asked().stream_id
    talk.site.send_headers(number, [(":status", "200"), ("content-encoding", "gzip")])
    for at in range(3):
        talk.site.send_data(number, coder.flushed(b"data: %d\n\n" % at))
        talk.turn()
        assert talk.body().endswith(b"data: %d\n\n" % at)
    talk.site.send_data(number, coder.flushed(VALUE[:9]))
    talk.turn()
    assert talk.body().endswith(b"2\n\n")


@pytest.mark.parametrize(
    ("fields", "body", "passes"),
    [
        ([("content-encoding", "exi")], b"x", False),
        ([("content-range", "bytes 0-1/9")], b"x", False),
        ([("content-type", "application/grpc"), ("grpc-encoding", "snappy")], message(b"", 1), False),
        ([("content-type", "application/grpc")], message(b"x"), True),
    ],
)
def test_what_cannot_be_read_is_an_answer_that_says_so(
    fields: list[tuple[str, str]], body: bytes, passes: bool
) -> None:
    """INS-5, B118: 502 in place of it, and the stream is recorded with the reason."""
    talk = Talk()
    talk.ask([*GET, BEARER])
    talk.answer(fields, body)
    status = dict(talk.of(ResponseReceived)[0].headers)[":status"]
    assert (status, talk.lines[0].status) == (("200", 200) if passes else ("502", 502))


def wide() -> Talk:
    """One whose client takes all that comes."""
    talk = Talk(mine={SettingCodes.INITIAL_WINDOW_SIZE: (1 << 31) - 1})
    talk.client.increment_flow_control_window((1 << 31) - 1 - 65535)
    return talk


def resets(talk: Talk) -> list[int]:
    """The streams that the client heard end without an end."""
    return [event.stream_id for event in talk.of(StreamReset)]


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ([("content-type", "application/grpc")], message(b"x" * 50) + message(b"y", 1)),
        ([("content-encoding", "gzip")], coded(b"x" * 5000, "gzip")[:-4]),
        ([("content-encoding", "gzip")], coded(bytes(24 << 20), "gzip")),
        ([("content-encoding", "br")], b"none of it, whatever it says"),
    ],
    ids=["message", "cut", "bomb", "broken"],
)
def test_what_turns_out_to_be_unreadable_is_reset(fields: list[tuple[str, str]], body: bytes) -> None:
    """INS-5, issue 6: the client sees an error and never an end; the connection lives on, with its window."""
    talk = wide()
    for _ in range(3):
        number = talk.ask([*GET, BEARER])
        asked = talk.asked().stream_id
        talk.site.send_headers(asked, [(":status", "200"), *fields])
        talk.site.send_data(asked, body[:16000])
        for at in range(16000, len(body), 16000):
            talk.turn()
            if number in resets(talk):
                break
            talk.site.send_data(asked, body[at : at + 16000])
        talk.turn()
        if number not in resets(talk):
            talk.site.end_stream(asked)
            talk.turn()
        assert number in resets(talk)
    assert not talk.of(StreamEnded)
    assert {line.written[0] for line in talk.lines} == {(How.INSPECTED, Reason.UPSTREAM_RESPONSE)}
    assert talk.site.outbound_flow_control_window > 1 << 19
    talk.heard.clear()
    talk.ask(GET)
    talk.answer([], b"fine")
    assert talk.body() == b"fine"


def test_pushed_streams_are_refused() -> None:
    """RFC 9113 section 8.4: push is switched off; whoever pushes all the same ends its connection, unread."""
    talk = Talk()
    talk.ask([*GET, BEARER])
    number = talk.asked().stream_id
    talk.site.remote_settings.enable_push = 1
    talk.site.remote_settings.acknowledge()
    talk.site.push_stream(number, 2, GET)
    talk.site.send_headers(2, [(":status", "200"), ("x-back", VALUE.decode())])
    talk.turn()
    assert VALUE not in b"".join(repr(event).encode() for event in talk.heard)
    assert talk.lines[0].written == [(How.REFUSED, Reason.UPSTREAM_RESPONSE)]
