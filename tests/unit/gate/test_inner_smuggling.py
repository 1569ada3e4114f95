"""What would be two messages to somebody, inside TLS: requests, and answers (GAT-4, INS-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.inside import Inside, answer, get, inside, read_all
from tidegate.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab

    Start = Callable[..., Inside]

__all__ = ["inside"]


@pytest.fixture(autouse=True)
def _names(lab: Lab) -> None:
    lab.dns.set("a.test", A=["1.2.3.4"])


def post(*lines: bytes, body: bytes = b"") -> bytes:
    """A request with these lines."""
    return b"\r\n".join((b"POST / HTTP/1.1", b"Host: a.test", *lines, b"", b"")) + body


def head(line: bytes = b"GET / HTTP/1.1", host: bytes = b"Host: a.test") -> bytes:
    """A request with this line and Host."""
    return line + b"\r\n" + host + b"\r\n\r\n"


LENGTHS = {
    "twice-the-same": (b"Content-Length: 5", b"Content-Length: 5"),
    "none": (b"Content-Length:",),
    "hexadecimal": (b"Content-Length: 0x5",),
    "underscore": (b"Content-Length: 1_0",),
    "leading-zero": (b"Content-Length: 05",),
    "negative": (b"Content-Length: -5",),
    "overflow": (b"Content-Length: 9223372036854775808",),
    "huge": (b"Content-Length: " + b"9" * 5000,),
    "as-a-variable": (b"Content_Length: 5",),
    "as-a-variable-too": (b"Content-Length: 5", b"content_length: 0"),
    "coding-twice": (b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
    "identity": (b"Transfer-Encoding: identity",),
    "gzip": (b"Transfer-Encoding: gzip",),
    "gzip-chunked": (b"Transfer-Encoding: gzip, chunked",),
    "parameter": (b"Transfer-Encoding: chunked;q=1",),
    "quoted": (b'Transfer-Encoding: "chunked"',),
    "no-coding": (b"Transfer-Encoding:",),
    "coding-as-a-variable": (b"Transfer_Encoding: chunked",),
    "folded": (b"Transfer-Encoding:", b"\tchunked"),
}
HEADS = {
    "tab-fold": head(host=b"Host: a.test\r\nX: y\r\n\tz"),
    "host-space": head(host=b"Host : a.test"),
    "host-user": head(host=b"Host: a.test@b.test"),
    "host-list": head(host=b"Host: a.test, b.test"),
    "host-empty": head(host=b"Host: "),
    "host-port-zero": head(host=b"Host: a.test:0443"),
    "host-port-empty": head(host=b"Host: a.test:"),
    "host-two-ports": head(host=b"Host: a.test:443:443"),
    "host-path": head(host=b"Host: a.test/x"),
    "host-two-dots": head(host=b"Host: a.test.."),
    "host-address": head(host=b"Host: 1.2.3.4"),
    "user": head(b"GET https://u:p@a.test/ HTTP/1.1"),
    "backslash": head(b"GET https://a.test\\@b.test/ HTTP/1.1"),
    "one-slash": head(b"GET https:/a.test/ HTTP/1.1"),
    "no-host": head(b"GET https:///x HTTP/1.1"),
    "other-scheme": head(b"GET wss://a.test/ HTTP/1.1"),
    "star": head(b"GET * HTTP/1.1"),
    "connect": head(b"CONNECT b.test:443 HTTP/1.1", b"Host: b.test:443"),
    "connect-itself": head(b"CONNECT a.test:443 HTTP/1.1", b"Host: a.test:443"),
    "trace": head(b"TRACE / HTTP/1.1"),
    "preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "empty-line-in-front": b"\r\n" + head(),
    "other-version": head(b"GET / HTTP/1.2"),
    "old-version": b"GET / HTTP/0.9\r\n\r\n",
    "no-version": b"GET /\r\n\r\n",
    "lower-case-version": head(b"GET / http/1.1"),
    "nul-in-name": head(host=b"Host: a.test\r\nX\0: y"),
    "nul-in-value": head(host=b"Host: a.test\r\nX: \0y"),
    "no-name": head(host=b"Host: a.test\r\n: y"),
    "high-byte-in-target": head(b"GET /\x80 HTTP/1.1"),
    "tab-in-target": head(b"GET /\tx HTTP/1.1"),
    **{kind: post(*lines, body=b"0\r\n\r\n") for kind, lines in LENGTHS.items()},
}


@pytest.mark.parametrize("kind", HEADS)
def test_heads_that_are_refused_before_anybody_hears(lab: Lab, inside: Start, kind: str) -> None:
    """GAT-4, B34, B35, B64, issue 6: refused, the connection ends, and what stands behind is no request."""
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443")
    got = gate.ask("a.test:443", HEADS[kind] + get("a.test", "/smuggled", "Connection: close"))
    assert got[:12] in {b"HTTP/1.1 400", b"HTTP/1.1 405", b"HTTP/1.1 421", b"HTTP/1.1 431", b"HTTP/1.1 505"}, got
    assert b"\nHTTP/1.1 " not in got
    gate.gate.idle()
    assert (origin.requests, origin.received) == (0, b"")


CHUNKS = {
    "underscore": b"1_0\r\nabcdefghijklmnop\r\n",
    "plus": b"+5\r\nabcde\r\n",
    "space-behind": b"5 \r\nabcde\r\n",
    "space-in-front": b" 5\r\nabcde\r\n",
    "overflow": b"FFFFFFFFFFFFFFFFF\r\nabcde\r\n",
    "sixteen-digits": b"FFFFFFFFFFFFFFFF\r\nabcde\r\n",
    "bare-lf": b"5\nabcde\r\n",
    "bare-cr": b"5\rabcde\r\n",
    "extension-lf": b"5;\nabcde\r\n",
    "extension-quoted-crlf": b'5;a="\r\n"\r\nabcde\r\n',
    "longer-than-it-says": b"5\r\nabcdefg\r\n",
    "lf-behind-data": b"5\r\nabcde\n",
    "two-crs": b"5\r\r\nabcde\r\n",
    "nul": b"5\0\r\nabcde\r\n",
    "empty-size": b"\r\n",
    "trailer-no-colon": b"0\r\nx\r\n\r\n",
    "trailer-space": b"0\r\nX : y\r\n\r\n",
    "trailer-fold": b"0\r\n X: y\r\n\r\n",
    "trailer-lf": b"0\r\nX: y\n\r\n",
}


@pytest.mark.parametrize("kind", CHUNKS)
def test_chunks_that_are_none(lab: Lab, inside: Start, kind: str) -> None:
    """GAT-4, B50, B64: 400, and the body that has begun has no end for the destination, nor anything behind it."""
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443")
    sent = post(b"Transfer-Encoding: chunked", body=CHUNKS[kind]) + b"0\r\n\r\n"
    got = gate.ask("a.test:443", sent + get("a.test", "/smuggled", "Connection: close"))
    assert got.startswith(b"HTTP/1.1 400 ")
    assert got.count(b"HTTP/1.1 ") == 1
    gate.gate.idle()
    assert b"/smuggled" not in origin.received
    assert not origin.received.endswith(b"0\r\n\r\n")


PASSES = {
    "absolute": (head(b"GET HTTPS://A.TEST/x HTTP/1.1"), b"GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n"),
    "query-alone": (head(b"GET https://a.test?x HTTP/1.1"), b"GET /?x HTTP/1.1\r\nHost: a.test\r\n\r\n"),
    "h2c": (
        head(host=b"Host: a.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk"),
        b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
    ),
    "h2c-beside-a-websocket": (
        head(host=b"Host: a.test\r\nConnection: Upgrade\r\nUpgrade: h2c, websocket\r\nSec-WebSocket-Key: AAAA"),
        (b"GET / HTTP/1.1\r\nHost: a.test\r\nSec-WebSocket-Key: AAAA\r\n"
        b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
    ),
    "te-gzip": (head(host=b"Host: a.test\r\nTE: gzip, trailers\r\nConnection: TE"),
                b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: TE\r\nTE: trailers\r\n\r\n"),
    "chunk-extension": (
        post(b"Transfer-Encoding: chunked", body=b"5;x=y\r\nabcde\r\n0\r\n\r\n"),
        b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
    ),
    "trailers-that-frame": (
        post(
            b"Transfer-Encoding: chunked",
            body=b"0\r\nContent-Length: 5\r\nHost: b.test\r\ncontent_length: 5\r\nTransfer-Encoding: x\r\nX: y\r\n\r\n",
        ),
        b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", PASSES)
def test_what_passes_says_one_thing(lab: Lab, inside: Start, kind: str) -> None:
    """GAT-4, B50, B59: the neighbours: written anew, with nothing in them that only some would read."""
    sent, heard = PASSES[kind]
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test")
    with inside("a.test:443").tunnel("a.test:443") as sock:
        sock.sendall(sent)
        assert answer(sock)[0].startswith(b"HTTP/1.1 200 ")
    assert sorted(origin.received.split(b"\r\n")) == sorted(heard.split(b"\r\n"))


SECOND = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled"
BEHIND = {
    "two-answers": ("GET", f"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi{SECOND}", b"hi"),
    "a-byte-more": ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi!", b"hi"),
    "head-with-a-body": ("HEAD", f"HTTP/1.1 200 OK\r\nContent-Length: {len(SECOND)}\r\n\r\n{SECOND}", b""),
    "204-with-a-body": ("GET", f"HTTP/1.1 204 No Content\r\n\r\n{SECOND}", b""),
    "204-with-a-length": ("GET", f"HTTP/1.1 204 No Content\r\nContent-Length: {len(SECOND)}\r\n\r\n{SECOND}", b""),
    "304-with-a-body": ("GET", f"HTTP/1.1 304 Not Modified\r\nContent-Length: {len(SECOND)}\r\n\r\n{SECOND}", b""),
    "behind-the-last-chunk": (
        "GET", f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n{SECOND}",
        b"2\r\nhi\r\n0\r\n\r\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BEHIND)
def test_what_stands_behind_an_answer_answers_nothing(lab: Lab, inside: Start, kind: str) -> None:
    """GAT-4, B35, issue 6: the answer is whole, its connection is not used again, and what was behind it is gone."""
    method, said, body = BEHIND[kind]
    lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=[["head"], ["send", said], ["drain"]])
    gate = inside("a.test:443")
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(get("a.test", method=method) + get("a.test", "/second"))
        got = read_all(sock)
    assert got.partition(b"\r\n\r\n")[2] == body
    assert b"smuggled" not in got
    assert gate.gate.event().reason is Reason.ALLOWED


UNASKED = ["HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled", "x"]


@pytest.mark.parametrize("said", UNASKED)
def test_an_answer_that_comes_before_its_request_is_none(lab: Lab, inside: Start, said: str) -> None:
    """GAT-4: said while nothing was asked: it ends the connection, on both sides."""
    steps = [
        ["head"],
        ["send", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"],
        ["sleep", 0.3],
        ["send", said],
        ["drain"],
    ]
    lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=steps)
    with inside("a.test:443").tunnel("a.test:443") as sock:
        sock.sendall(get("a.test"))
        assert answer(sock)[1] == b"hi"
        assert read_all(sock) == b""


ANSWERS = {
    "chunk-plus": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+2\r\nhi\r\n0\r\n\r\n",
    "chunk-underscore": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1_0\r\nhi\r\n0\r\n\r\n",
    "chunk-overflow": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nhi\r\n0\r\n\r\n",
    "chunk-lf": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nhi\n0\n\n",
    "bare-lf": "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
    "fold": "HTTP/1.1 200 OK\r\nX: y\r\n z\r\nContent-Length: 2\r\n\r\nhi",
    "nul": "HTTP/1.1 200 OK\r\nX: \0\r\nContent-Length: 2\r\n\r\nhi",
    "name-space": "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nhi",
    "length-list": "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nhi",
    "length-plus": "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nhi",
    "coding-twice": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    "coding-in-1.0": "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    "identity": "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nhi",
    "status-0": "HTTP/1.1 099 X\r\nContent-Length: 2\r\n\r\nhi",
    "status-long": "HTTP/1.1 2000 X\r\nContent-Length: 2\r\n\r\nhi",
    "status-plus": "HTTP/1.1 +20 X\r\nContent-Length: 2\r\n\r\nhi",
    "switch-not-asked": "HTTP/1.1 101 Switching Protocols\r\n\r\nhi",
    "interim-without-end": "HTTP/1.1 103 Early Hints\r\nX: " + "y" * 4000 + "\r\n\r\n",
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_answers_that_are_none(lab: Lab, inside: Start, kind: str) -> None:
    """GAT-4, B34, B64, issue 6: 502 where nothing of it was passed on, else an end that looks like none."""
    said = ANSWERS[kind] * (100 if kind == "interim-without-end" else 1)
    lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=[["head"], ["send", said], ["drain"]])
    gate = inside("a.test:443")
    got = gate.ask("a.test:443", get("a.test"))
    if kind == "interim-without-end":
        assert 0 < got.count(b"HTTP/1.1 103 ") < 100
    assert b"HTTP/1.1 502 " in got
    assert not got.endswith(b"hi")
    assert gate.gate.event().reason is Reason.UPSTREAM_RESPONSE


@pytest.mark.parametrize("kind", [kind for kind in ANSWERS if kind.startswith("chunk-")])
def test_an_answer_that_is_none_later_has_no_end(lab: Lab, inside: Start, kind: str) -> None:
    """GAT-4, B50: what was passed on of it cannot be taken for the whole."""
    head, blank, body = ANSWERS[kind].partition("\r\n\r\n")
    begun = f"{head}{blank}2\r\nyo\r\n"
    steps = [["head"], ["send", begun], ["sleep", 0.2], ["send", body], ["drain"]]
    lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=steps)
    gate = inside("a.test:443")
    got = gate.ask("a.test:443", get("a.test"))
    assert got.endswith(b"\r\n\r\n2\r\nyo\r\n")
    assert gate.gate.event().reason is Reason.UPSTREAM_RESPONSE
