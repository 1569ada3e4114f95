"""The answer to an HTTP client that is refused: one line a person can act on, one field a program can read (GAT-7).

    HTTP/1.1 403 Forbidden
    Content-Type: text/plain
    Proxy-Status: tidegate; error=http_request_denied; details="no-rule"; fix="--allow example.com:443"
    Connection: close

The connection closes after it, always (GAT-3, B37). The line is printable ASCII whatever it was made of.

Where the host is allowed and a request to it is not, tools like npm and twine were told "yes" before, and show of a
refusal what their server would say: a client that sends JSON, or asks for it first, gets the line as JSON, and the
phrase after 403 says why.
"""

from __future__ import annotations

from tidegate.model.decision import Decision
from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError, printable
from tidegate.wire.proxy_status import proxy_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_KINDS = frozenset((b"content-type", b"accept"))

# RFC 9110 section 15 and, for 431, RFC 6585.
_PHRASES = {
    400: "Bad Request",
    403: "Forbidden",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    414: "URI Too Long",
    421: "Misdirected Request",
    426: "Upgrade Required",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
}
# Refused where others to the same place pass.
_OF_REQUESTS = frozenset({Reason.METHOD_NOT_ALLOWED, Reason.REGISTRY_READ_ONLY, Reason.GIT_READ_ONLY})
_UPGRADE = "Upgrade: HTTP/1.1\r\n"  # RFC 9110 section 15.5.22: with every 426
_ALLOW = "Allow: CONNECT, DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT\r\n"  # RFC 9110 section 15.5.6: with every 405


def reads_json(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a client that sends these reads JSON: it sends it, or names it before anything else (RFC 9110 12.5.1)."""
    for name, value in headers:
        if name.lower() in _KINDS:
            first = value.partition(b",")[0].partition(b";")[0].strip().lower()
            if first.startswith(b"application/") and first.endswith((b"/json", b"+json")):
                return True
    return False


def told(reason: Reason, line: str, *, json: bool) -> tuple[str, str]:
    """Return the media type and the text of a refusal.

    In JSON, `error` is what npm and its kin show, `errors` what cargo does.
    """
    text = printable(line)
    if not json:
        return "text/plain", f"{text}\n"
    from json import dumps

    return "application/json", dumps({"error": text, "reason": reason.word, "errors": [{"detail": text}]}) + "\n"


def refusal_response(
    reason: Reason, line: str, *, fix: str = "", body: bool = True, json: bool = False, told_as: bytes = b""
) -> bytes:
    """Return a whole response. `body` is false for HEAD; a reason without a status of its own answers 403.

    `told_as` is JSON in ASCII that stands for the line.
    """
    status = reason.status or 403
    kind, text = ("application/json", told_as.decode("ascii")) if told_as else told(reason, line, json=json)
    phrase = f"Forbidden by tidegate: {reason.sentence}" if reason in _OF_REQUESTS else _PHRASES[status]
    return (
        f"HTTP/1.1 {status} {phrase}\r\n"
        f"Content-Type: {kind}\r\n"
        f"Content-Length: {len(text)}\r\n"
        f"Proxy-Status: {proxy_status(reason, fix)}\r\n"
        f"{_ALLOW if status == 405 else _UPGRADE if status == 426 else ''}"
        "Connection: close\r\n"
        "\r\n"
        f"{text if body else ''}"
    ).encode("ascii")


def refuse_decision(decision: Decision, *, body: bool = True, json: bool = False) -> bytes:
    """Return the response that refuses for a decision."""
    return refusal_response(decision.reason, decision.sentence(), fix=decision.fix, body=body, json=json)


def refuse_error(error: WireError, *, body: bool = True) -> bytes:
    """Return the response that refuses for a request that is not well formed."""
    return refusal_response(error.reason, error.sentence(), body=body)
