"""Proves that a ClientHello is read right however it is cut, and that a malformed one is refused (GAT-9, B115)."""

from __future__ import annotations

import ssl
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire import hellos
from tests.unit.wire.feeding import bytewise, cut, outcome, pieces_of
from tidegate.model.reason import Reason
from tidegate.wire import client_hello
from tidegate.wire.client_hello import (
    MAX_RECORD,
    NOT_TLS,
    ClientHello,
    ClientHelloReader,
    NotTls,
    alert_code,
    parse_client_hello,
    refusal_alert,
    tls_alert,
)

PLAIN = ClientHello("a.test", (), ech=False)


def read(pieces: list[bytes]) -> Any:
    """Feed the pieces in order; return the first answer, None, or the reason of the error."""

    def feed() -> Any:
        reader = ClientHelloReader()
        for piece in pieces:
            answer = reader.feed(piece)
            if answer is not None:
                assert reader.feed(b"later bytes") is answer
                return answer
        return None

    return outcome(feed)


@pytest.mark.parametrize("tls12", [False, True])
@pytest.mark.parametrize("alpn", [None, ["http/1.1"], ["h2", "http/1.1"]])
@pytest.mark.parametrize("name", [None, "a.test", "A.TEST", "xn--nxasmq6b.test", "1.2.3.4"])
def test_what_openssl_sends(name: str | None, alpn: list[str] | None, tls12: bool) -> None:
    """With and without SNI and ALPN, TLS 1.2 and 1.3; whole, in single bytes and cut in two anywhere."""
    data = hellos.real_hello(name, alpn, tls12=tls12)
    # OpenSSL names no server that is an address.
    sni = None if name in {None, "1.2.3.4"} else name.lower()
    expected = ClientHello(sni, tuple(text.encode() for text in alpn or ()), ech=False)
    assert read([data]) == expected
    assert read(bytewise(data)) == expected
    assert read([data + b"\x14\x03\x03\x00\x01\x01\x17\x03\x03"]) == expected
    for at in range(1, len(data)):
        assert read([data[:at], data[at:]]) == expected


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 50, 100])
def test_over_several_records(size: int) -> None:
    """A hello in records of any size, down to one byte each, is the same hello."""
    data = hellos.real_hello("a.test", ["h2"])
    cut_up = hellos.in_records(data[5:], [size] * len(data))
    expected = ClientHello("a.test", (b"h2",), ech=False)
    assert read([cut_up]) == expected
    assert read(bytewise(cut_up)) == expected


def test_a_hello_in_two_records_is_waited_for() -> None:
    """One record alone says nothing yet, even if it holds the name."""
    handshake = hellos.real_hello("a.test")[5:]
    data = hellos.in_records(handshake, [len(handshake) - 1])
    assert read([data[:-6]]) is None
    assert read([data]) == PLAIN


@pytest.mark.parametrize("extra", [1200, 1700, 8000, 16000])
def test_large_hellos(extra: int) -> None:
    """A post-quantum key share makes 1.7 KiB and more, larger than a segment; up to 16 KiB are read."""
    share = hellos.extension(51, bytes(extra))
    data = hellos.hello(share, hellos.server_name(b"a.test"), hellos.extension(0xFE0D, b"outer"))
    expected = ClientHello("a.test", (), ech=True)
    assert read([data]) == expected
    assert read(cut(data, range(0, len(data), 1460))) == expected


def test_the_largest_hello() -> None:
    """Exactly one full record passes; a byte more does not, in one record or in two."""
    base = len(hellos.hello(hellos.server_name(b"a.test"), hellos.extension(21, b""))) - 5
    for more, expected in [(0, PLAIN), (1, Reason.BAD_TLS)]:
        data = hellos.hello(hellos.server_name(b"a.test"), hellos.extension(21, bytes(MAX_RECORD - base + more)))
        assert read([data]) == expected
        assert read(cut(data, range(0, len(data), 997))) == expected
    data = hellos.in_records(hellos.message(bytes(MAX_RECORD)), [9000])
    assert read([data]) is Reason.BAD_TLS
    assert read(bytewise(data)) is Reason.BAD_TLS


def test_a_hello_that_never_ends_is_bounded() -> None:
    """Records of a hello that claims a lot are not collected beyond the bound."""
    reader = ClientHelloReader()

    def flood() -> None:
        reader.feed(hellos.record(b"\x01\x00\x3f\x00"))
        for _ in range(10_000):
            reader.feed(hellos.record(b"x"))

    assert outcome(flood) is Reason.BAD_TLS
    assert read([hellos.record(b"\x01\x00\x40\x00")]) is Reason.BAD_TLS


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"GET / HTTP/1.1\r\n",
        b"\x80\x2e\x01\x03\x01",  # SSLv2-style hello
        b"\x16\xfe\xfd",  # DTLS
        b"\x16\x16",
        b"\x15\x10",
        b"\x14\x00",
        b"\x19\x03",
        b"\x00",
        b"\x03",
    ],
)
def test_other_protocols_are_not_tls(data: bytes) -> None:
    """The first two bytes decide, as soon as they are there."""
    assert read([data]) is NOT_TLS
    assert read(bytewise(data)) is NOT_TLS
    assert isinstance(read([data[:2]]), NotTls)
    assert read([b""]) is None
    assert read([b"\x16"]) is None
    assert read([b"\x16\x03"]) is None


LENIENT = [
    b"\x15\x03\x01\x00\x02\x01\x5a",  # the warning user_canceled, which Go's server skips
    b"\x15\x00\x01\x00\x02\x01\x5a",
    b"\x14\x03\x03\x00\x01\x01",
    b"\x17\x03\x03\x00\x00",
]


@pytest.mark.parametrize(
    "data",
    [
        *(before + hellos.record(hellos.message(hellos.body())) for before in LENIENT),
        *(
            b"\x16" + version + hellos.record(hellos.message(hellos.body()))[3:]
            for version in (b"\x00\x00", b"\x0f\xff")
        ),
    ],
)
def test_what_only_a_lenient_server_takes_for_tls_is_refused(data: bytes) -> None:
    """GAT-9: a record in front of the ClientHello, or an odd record version (Go), does not hide the name in it."""
    assert read([data]) is Reason.BAD_TLS
    assert read(bytewise(data)) is Reason.BAD_TLS


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x00\x10\x00\xfd\x05\x09localhost",  # Minecraft: a length of 22 and packet 0
        b"\x16\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00",  # MongoDB: a length of 278
        b"\x15\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00",
    ],
)
def test_short_lengths_of_other_protocols_are_not_tls(data: bytes) -> None:
    """A protocol that begins with a little length is not taken for TLS of an odd version."""
    assert read([data]) is NOT_TLS
    assert read(bytewise(data)) is NOT_TLS


@pytest.mark.parametrize(
    ("sent", "sni"),
    [
        (b"a.test", "a.test"),
        (b"A.Test", "a.test"),
        (b"a.test.", "a.test"),
        (b"1.2.3.4", "1.2.3.4"),
        (b"_x.a-b.test", "_x.a-b.test"),
        (b".".join([b"x" * 63] * 3 + [b"x" * 61]), ".".join(["x" * 63] * 3 + ["x" * 61])),
    ],
)
def test_the_name_is_canonical(sent: bytes, sni: str) -> None:
    """Case and a final dot make no difference, and 253 bytes are allowed (B115, POL-3)."""
    assert read([hellos.hello(hellos.server_name(sent))]) == ClientHello(sni, (), ech=False)


@pytest.mark.parametrize(
    "extensions",
    [
        [hellos.server_name(b"a.test", b"b.test")],
        [hellos.server_name(b"a.test", b"a.test")],
        [hellos.server_name(b"a.test"), hellos.server_name(b"b.test")],
        [hellos.server_name(b"a.test"), hellos.server_name(b"a.test")],
        [hellos.server_name()],
        [hellos.server_name(b"")],
        [hellos.server_name(b".")],
        [hellos.server_name(b"a..test")],
        [hellos.server_name(b"a.test..")],
        [hellos.server_name(b"a\x00.test")],
        [hellos.server_name(b"a b")],
        [hellos.server_name(b"a\xe9.test")],
        [hellos.server_name(b"127.1")],
        [hellos.server_name(b"::1")],
        [hellos.server_name(b"a.test:443")],
        [hellos.server_name(b".".join([b"x" * 63] * 4))],
        [hellos.server_name(b"x" * 256)],
        [hellos.server_name(b"a.test", kind=1)],
        [hellos.extension(0, b"")],
        [hellos.extension(0, b"\x00\x00")],
        [hellos.extension(0, b"\x00\x09\x00\x00\x06a.test\x00")],
        [hellos.extension(0, hellos.server_name(b"a.test")[4:] + b"\x00")],
        [hellos.extension(0, b"\x00\x09\x00\x00\x07a.test")],
        [hellos.alpn()],
        [hellos.alpn(b"")],
        [hellos.alpn(b"h2", b"")],
        [hellos.extension(16, b"\x00\x03\x03h2")],
        [hellos.extension(16, b"\x00\x03\x02h2\x00")],
        [hellos.extension(16, b"")],
        [hellos.extension(99, b""), hellos.extension(99, b"")],
        [hellos.alpn(b"h2"), hellos.alpn(b"h2")],
        [b"\x00"],
        [b"\x00\x63\x00\x05abc"],
    ],
)
def test_malformed_extensions_are_refused(extensions: list[bytes]) -> None:
    """Two names, names that are no host, wrong lengths, an extension twice: BAD_TLS (B115)."""
    data = hellos.hello(*extensions)
    assert read([data]) is Reason.BAD_TLS
    assert read(bytewise(data)) is Reason.BAD_TLS


@pytest.mark.parametrize(
    "fields",
    [
        {"version": b"\x02\x00"},
        {"session": bytes(33)},
        {"suites": b""},
        {"suites": b"\x13\x01\x13"},
        {"compression": b""},
        {"tail": b"\x00"},
        {"without_extensions": True, "tail": b"\x00"},
        {"without_extensions": True, "tail": b"\x00\x04\x00"},
    ],
)
def test_a_malformed_body_is_refused(fields: dict[str, Any]) -> None:
    """Every field has its bounds, and nothing follows the last."""
    assert outcome(lambda: parse_client_hello(hellos.body(hellos.server_name(b"a.test"), **fields))) is Reason.BAD_TLS


@pytest.mark.parametrize(
    "fields",
    [
        {"version": b"\x03\x00"},
        {"version": b"\x03\x01"},
        {"session": bytes(32)},
        {"suites": bytes(1000)},
        {"compression": b"\1\0"},
    ],
)
def test_the_neighbours_of_a_malformed_body_pass(fields: dict[str, Any]) -> None:
    """Old versions, a full session id and many suites are fine here; the origin judges them."""
    assert parse_client_hello(hellos.body(hellos.server_name(b"a.test"), **fields)) == PLAIN


def test_a_hello_without_extensions_names_nobody() -> None:
    """As in SSL 3.0 and early TLS 1.0."""
    assert parse_client_hello(hellos.body(without_extensions=True)) == ClientHello(None, (), ech=False)
    assert parse_client_hello(hellos.body()) == ClientHello(None, (), ech=False)


@pytest.mark.parametrize(
    "data",
    [
        hellos.record(hellos.message(b"", kind=2)),
        hellos.record(b"\x00"),
        hellos.record(b""),
        b"\x16\x03\x05",
        b"\x16\x03\x01\xff",
        b"\x16\x03\x01\x40\x01",
        hellos.record(b"\x01\x00") + hellos.record(b"", kind=22),
        hellos.record(b"\x01\x00") + hellos.record(b"\x01", kind=20),
        hellos.record(b"\x01\x00") + hellos.record(b"\x01", kind=21),
        hellos.record(b"\x01\x00") + b"GET",
        hellos.record(b"\x01\x00") + b"\x16\x02",
        hellos.record(hellos.message(hellos.body()) + b"\x00"),
        hellos.record(hellos.message(hellos.body()) * 2),
    ],
)
def test_malformed_records_are_refused(data: bytes) -> None:
    """Once it looks like TLS it must be TLS: nothing is skipped, nothing follows the hello in its record."""
    assert read([data]) is Reason.BAD_TLS
    assert read(bytewise(data)) is Reason.BAD_TLS


def test_errors_show_a_name_escaped() -> None:
    """The journal gets the raw name in printable form."""
    reader = ClientHelloReader()
    data = hellos.hello(hellos.server_name(b"a\x00\x1b[2J"))
    with pytest.raises(Exception, match="malformed") as caught:
        reader.feed(data)
    assert caught.value.raw == r"a\x00\x1b[2J"


def test_alerts_are_understood_by_openssl() -> None:
    """A client that is cut reads why in its own protocol (GAT-9)."""
    for reason, words in [(Reason.SNI_MISMATCH, "unrecognized name"), (Reason.NO_RULE, "access denied")]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(incoming, outgoing, server_hostname="a.test")
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        incoming.write(refusal_alert(reason))
        with pytest.raises(ssl.SSLError, match=words.replace(" ", ".")):
            client.do_handshake()
    assert tls_alert(alert_code(Reason.BAD_TLS)) == b"\x15\x03\x03\x00\x02\x02\x32"


GOOD = hellos.real_hello("a.test", ["h2"])


@st.composite
def nearly_good(draw: Any) -> bytes:
    """Draw hellos cut into records at random, with some bytes changed, cut off or added."""
    data = bytearray(hellos.in_records(GOOD[5:], draw(st.lists(st.integers(1, 300), max_size=5))))
    for _ in range(draw(st.integers(0, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


@given(
    nearly_good()
    | st.binary(max_size=40).map(lambda tail: b"\x16\x03\x01" + tail)
    | st.binary(max_size=8)
    | st.tuples(st.sampled_from(LENIENT), nearly_good()).map(b"".join)
    | st.tuples(st.binary(max_size=3), nearly_good()).map(lambda two: b"\x16" + two[0] + two[1][3:]),
    st.data(),
)
def test_whole_or_in_pieces_is_the_same(data: bytes, source: Any) -> None:
    """A hello, not TLS, a wait or BAD_TLS; never anything else, however the bytes come."""
    whole = read([data])
    assert read(bytewise(data)) == whole
    assert read(source.draw(pieces_of(data))) == whole


@given(nearly_good())
def test_what_openssl_accepts_too_names_the_same_server(data: bytes) -> None:
    """Where OpenSSL's server reads a name and we accept the hello, it is the same name."""
    mine = read([data])
    if not isinstance(mine, ClientHello):
        return
    seen: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = lambda _socket, name, _context: seen.append(name)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    incoming.write(data)
    server = context.wrap_bio(incoming, outgoing, server_side=True)
    with pytest.raises(ssl.SSLError):
        server.do_handshake()
    if seen and seen[0] is not None:
        assert mine.sni == seen[0].lower().removesuffix(".")


def test_names_that_are_remembered_are_few() -> None:
    """A client that never names the same server twice makes nothing grow."""
    for number in range(3000):
        assert read([hellos.hello(hellos.server_name(b"N%d.test" % number))]) == ClientHello(
            f"n{number}.test", (), ech=False
        )
    assert len(client_hello._known) <= client_hello._MAX_KNOWN
    assert read([hellos.hello(hellos.server_name(b"N2999.test."))]) == ClientHello("n2999.test", (), ech=False)
