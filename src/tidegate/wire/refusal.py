"""The answer to an HTTP client that is refused: one line a person can act on, one field a program can read (GAT-7).

    HTTP/1.1 403 Forbidden
    Content-Type: text/plain
    Proxy-Status: tidegate; error=http_request_denied; details="no-rule"; fix="--allow example.com:443"
    Connection: close

The connection closes after it, always (GAT-3, B37). The line is printable ASCII whatever it was made of.
"""

from __future__ import annotations

from tidegate.model.decision import Decision
from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError, printable
from tidegate.wire.proxy_status import proxy_status

# RFC 9110 section 15 and, for 431, RFC 6585.
_PHRASES = {
    400: "Bad Request",
    403: "Forbidden",
    405: "Method Not Allowed",
    408: "Request Timeout",
    414: "URI Too Long",
    421: "Misdirected Request",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
}
_ALLOW = "Allow: CONNECT, DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT\r\n"  # RFC 9110 section 15.5.6: with every 405


def refusal_response(reason: Reason, line: str, *, fix: str = "", body: bool = True) -> bytes:
    """Return a whole response. `body` is false for HEAD; a reason without a status of its own answers 403."""
    status = reason.status or 403
    text = printable(line) + "\n"
    return (
        f"HTTP/1.1 {status} {_PHRASES[status]}\r\n"
        "Content-Type: text/plain\r\n"
        f"Content-Length: {len(text)}\r\n"
        f"Proxy-Status: {proxy_status(reason, fix)}\r\n"
        f"{_ALLOW if status == 405 else ''}"
        "Connection: close\r\n"
        "\r\n"
        f"{text if body else ''}"
    ).encode("ascii")


def refuse_decision(decision: Decision, *, body: bool = True) -> bytes:
    """Return the response that refuses for a decision."""
    return refusal_response(decision.reason, decision.sentence(), fix=decision.fix, body=body)


def refuse_error(error: WireError, *, body: bool = True) -> bytes:
    """Return the response that refuses for a request that is not well formed."""
    return refusal_response(error.reason, error.sentence(), body=body)
