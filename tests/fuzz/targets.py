"""What the fuzzer drives: each target takes any bytes and fails where a parser breaks its invariant.

The invariant of wire/: a value or a WireError, the same one whether the bytes come whole or one by one, and what is
told of an error is printable and bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.unit.wire.feeding import MORE, bytewise, outcome, read_body, read_head
from tests.unit.wire.hellos import real_hello
from tidegate.model.limits import Limits
from tidegate.wire import conntrack, kernel_log, netlink, nflog, sock_diag
from tidegate.wire.attempt import Attempt
from tidegate.wire.authority import absolute_target, connect_target, host_field
from tidegate.wire.body import make_body
from tidegate.wire.client_hello import ClientHelloReader
from tidegate.wire.dns import parse_query, read_frame
from tidegate.wire.dns_answer import addresses, no_data, no_name
from tidegate.wire.framing import Framing, Kind, request_framing, response_framing
from tidegate.wire.headers import request_head_bytes
from tidegate.wire.method_fields import method_fields as fields_of
from tidegate.wire.opening import OpeningReader
from tidegate.wire.sock_diag import Ends
from tidegate.wire.socks5 import read_greeting, read_request

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = Limits(header_bytes=512, header_fields=8, target_bytes=128)
LONGEST = 4096  # bytes of one input: every limit of SMALL is far below


def client_hello(data: bytes) -> None:
    """Read a ClientHello, and the first bytes of a tunnel (RFC 8446 section 4.1.2)."""

    def hello(pieces: list[bytes]) -> Any:
        reader = ClientHelloReader()
        answers = (reader.feed(piece) for piece in pieces)
        return next((answer for answer in answers if answer is not None), MORE)

    def opening(pieces: list[bytes]) -> Any:
        reader = OpeningReader(SMALL)
        answers = (reader.feed(piece) for piece in pieces)
        return next((answer for answer in answers if answer is not None), MORE)

    for read in (hello, opening):
        assert outcome(lambda read=read: read([data])) == outcome(lambda read=read: read(bytewise(data)))


def dns(data: bytes) -> None:
    """Read a query and answer it in every way; read a stream of framed ones (RFC 1035)."""
    query = outcome(lambda: parse_query(data))
    if hasattr(query, "labels"):
        assert len(query.shown) <= 4 * 256
        for answer in (addresses(query, (bytes(4),), 1, 512), no_data(query, 512), no_name(query, "why", 512)):
            assert answer[:2] == data[:2]
            assert len(answer) <= 512
    framed = outcome(lambda: read_frame(data))
    if isinstance(framed, tuple):
        assert data[2 : framed[1]] == framed[0]


def socks5(data: bytes) -> None:
    """Read a greeting and a request (RFC 1928)."""
    for read in (read_greeting, read_request):
        whole = outcome(lambda read=read: read(data))
        grown: Any = None
        for end in range(1, len(data) + 1):
            grown = outcome(lambda read=read, end=end: read(data[:end]))
            if grown:
                break
        assert grown == whole or (not data and not whole)


def http_request(data: bytes) -> None:
    """Read a request head, its target and framing, and write what travels on (RFC 9112)."""
    whole = read_head([data], SMALL)
    assert read_head(bytewise(data), SMALL) == whole
    if not isinstance(whole, tuple):
        return
    head = whole[0]
    outcome(lambda: connect_target(head))
    absolute = outcome(lambda: absolute_target(head))
    framing = outcome(lambda: request_framing(head))
    if isinstance(absolute, tuple) and isinstance(framing, Framing):
        destination, origin = absolute
        sent = outcome(lambda: request_head_bytes(head, destination, origin))
        if isinstance(sent, bytes):
            received = read_head([sent])[0]
            assert (received.target, received.method) == (origin, head.method), "what is sent on is what was judged"
            assert received.values(b"host") == [host_field(destination)]
            assert request_framing(received) == framing


def http_response(data: bytes) -> None:
    """Read a response head and its framing."""
    whole = read_head([data], SMALL, response=True)
    assert read_head(bytewise(data), SMALL, response=True) == whole
    if isinstance(whole, tuple):
        for method in ("GET", "HEAD", "CONNECT"):
            outcome(lambda method=method: response_framing(whole[0], method))


def chunked(data: bytes) -> None:
    """Read a chunked body (RFC 9112 section 7.1)."""
    framing = Framing(Kind.CHUNKED, 0)
    whole = read_body(lambda: make_body(framing), [data])
    assert read_body(lambda: make_body(framing), bytewise(data)) == whole


def method_fields(data: bytes) -> None:
    """Look through forms, JSON and multipart bodies for a field that asks for another method (RFC 7578)."""
    for kind in (b"application/x-www-form-urlencoded", b"application/json", b"multipart/form-data"):

        def through(pieces: list[bytes], kind: bytes = kind) -> Any:
            look = fields_of(((b"content-type", kind),))
            assert look is not None
            return b"".join(map(look.feed, pieces)) + look.end()

        whole = outcome(lambda through=through: through([data]))
        assert outcome(lambda through=through: through(bytewise(data))) == whole
        assert not isinstance(whole, bytes) or whole == data


def kernel(data: bytes) -> None:
    """Read what the kernel says of packets, connections and their owners: a value or an error, never a guess."""
    told = outcome(lambda: nflog.attempts(data))
    line = outcome(lambda: kernel_log.attempt(data, b"tidegate "))
    for attempt in (*(told if isinstance(told, list) else ()), *((line,) if isinstance(line, Attempt) else ())):
        assert len(attempt.address) in (4, 16)
        assert 0 <= attempt.port <= 65535
        assert -1 <= attempt.uid <= 0xFFFFFFFF
    owner = outcome(lambda: sock_diag.answer(data, 1, _ENDS))
    if isinstance(owner, sock_diag.Owner):
        assert owner.inode
    before = outcome(lambda: conntrack.answer(data, 1, _ENDS))
    if isinstance(before, Ends):
        assert (len(before.local), len(before.remote)) == (4, 4)


_OF_A_USER = b"\x08\0\x0b\0\0\0\x75\x31" + b"\x1c\0\x09\0\x45" + bytes(23)  # NFULA_UID, and a packet
_ENDS = Ends(bytes((127, 0, 0, 1)), 40000, bytes((127, 0, 0, 1)), 3128)
TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (client_hello, dns, socks5, http_request, http_response, chunked, method_fields, kernel)
}

_QUERY = bytes.fromhex("123401000001000000000001 016104746573740000010001 00002904d0000000000000")
SEEDS: dict[str, tuple[bytes, ...]] = {
    "client_hello": (
        real_hello("a.test", ["h2", "http/1.1"]),
        real_hello(None, tls12=True),
        b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"SSH-2.0-x\r\n",
    ),
    "dns": (_QUERY, _QUERY[:11] + b"\x00" + _QUERY[12:24], len(_QUERY).to_bytes(2, "big") + _QUERY),
    "socks5": (
        b"\x05\x02\x00\x02", b"\x05\x01\x00\x03\x06a.test\x01\xbb", b"\x05\x01\x00\x01\x01\x02\x03\x04\x00\x50",
        b"\x05\x01\x00\x04" + bytes(15) + b"\x01\x00\x50",
    ),
    "http_request": (
        b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n",
        (b"GET http://a.test/x?y HTTP/1.1\r\nHost: a.test\r\nConnection: x, close\r\nX: y\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"),
        b"POST http://[2600:beef::1]:80/ HTTP/1.0\r\nContent-Length: 3\r\n\r\n",
        b"GET http://a.test/ HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n\r\n",
    ),
    "http_response": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
        b"HTTP/1.1 101 \r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
    ),
    "kernel": (
        netlink.request(nflog.NFNL_SUBSYS_ULOG << 8, 0, bytes(4) + _OF_A_USER),
        b"4,1,2,-;tidegate IN= OUT=lo SRC=127.0.0.1 DST=1.2.3.4 LEN=60 PROTO=TCP SPT=1 DPT=443 UID=30001 GID=30001 \n",
        sock_diag.question(_ENDS, 1),
        conntrack.question(_ENDS, 1),
    ),
    "method_fields": (
        b"a=1&+.%5fmethod=x&method=delete", b'{"a": "x", "\\u005fmethod": 1}', b"x" * 300 + b"&_method=",
        b'Content-Disposition: form-data; name="method"\r\n\r\nput', b"name*=utf-8'en'%5Fm\\ethod",
    ),
    "chunked": (b"5\r\nhello\r\n0\r\n\r\n", b"a;x=y\r\n0123456789\r\n0\r\nX: y\r\n\r\n"),
}  # fmt: skip
