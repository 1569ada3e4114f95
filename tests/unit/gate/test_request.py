"""One plain request, made ready to be sent on."""

from __future__ import annotations

import pytest

from tidegate.gate.request import Request
from tidegate.gate.upstream import parse_proxy
from tidegate.wire.errors import WireError
from tidegate.wire.http1 import parse_request_head


def read(text: str) -> Request:
    """Read a head."""
    return Request(parse_request_head(text.replace("\n", "\r\n").encode()))


def test_what_is_sent_on() -> None:
    """GAT-4: origin-form, Host from the request line, nothing of this hop."""
    request = read("GET http://A.test:80/x?y HTTP/1.1\nHost: a.test\nProxy-Authorization: Basic eA==\nX: y\n\n")
    assert request.out == b"GET /x?y HTTP/1.1\r\nHost: a.test\r\nX: y\r\n\r\n"
    assert str(request.destination) == "a.test:80"
    assert (request.keep, request.repeatable, request.websocket, request.secret) == (True, True, False, True)


def test_what_an_upstream_proxy_gets() -> None:
    """GAT-8: the absolute form, and the proxy's own credentials."""
    request = read("GET http://a.test:81/x HTTP/1.1\nHost: a.test:81\n\n")
    out = request.for_proxy(parse_proxy("http://u:p@proxy.test:1", "X"))
    assert out.startswith(b"GET http://a.test:81/x HTTP/1.1\r\nHost: a.test:81\r\n")
    assert b"Proxy-Authorization: Basic dTpw\r\n" in out


@pytest.mark.parametrize(
    ("text", "repeatable"),
    [
        ("GET http://a.test/ HTTP/1.1\nHost: a.test\n\n", True),
        ("DELETE http://a.test/ HTTP/1.1\nHost: a.test\n\n", True),
        ("POST http://a.test/ HTTP/1.1\nHost: a.test\n\n", False),
        ("PUT http://a.test/ HTTP/1.1\nHost: a.test\nContent-Length: 1\n\n", False),
    ],
)
def test_what_may_be_sent_twice(text: str, repeatable: bool) -> None:
    """RFC 9110 section 9.2.2: idempotent, and without a body that was read already."""
    assert read(text).repeatable is repeatable


@pytest.mark.parametrize(
    "line", ["Connection: host", "Content-Length: 1\nContent-Length: 1", "Transfer-Encoding: x", "Host: b.test"]
)
def test_what_must_not_travel_is_found_before_anything_is_dialled(line: str) -> None:
    """B59, B34, B32: a WireError, and no request."""
    with pytest.raises(WireError):
        read(f"GET http://a.test/ HTTP/1.1\nHost: a.test\n{line}\n\n")
