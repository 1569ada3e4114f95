"""How a stream of HTTP/2 is refused: as an answer of HTTP, or of gRPC where its client speaks that (GAT-7, INS-3).

A gRPC client shows of another status than 200 its number alone, so it is answered in its own terms, with nothing but
trailers. Sources: gRPC over HTTP/2 (PROTOCOL-HTTP2.md, "Trailers-Only" and grpc-message), and gRPC's mapping of HTTP
statuses (http-grpc-status-mapping.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.wire.errors import printable
from tidegate.wire.proxy_status import proxy_status
from tidegate.wire.refusal import reads_json, told

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.model.reason import Reason

    Fields = list[tuple[bytes, bytes]]

_GRPC_STATUS = {400: 13, 403: 7, 429: 14, 502: 14, 503: 14, 504: 14}
_GRPC_UNKNOWN = 2
_GRPC = b"application/grpc"


def refusal(
    reason: Reason, line: str, asked: Iterable[tuple[bytes, bytes]], *, method: str, room: int, told_as: bytes = b""
) -> tuple[Fields, bytes]:
    """Return the fields and the body of an answer.

    Args:
        reason: why.
        line: for people.
        asked: the fields of the request, in lower case.
        method: of the request: HEAD gets no body.
        room: what the client's windows take; where that is too little it gets the status alone.
        told_as: JSON in ASCII that stands for the line.
    """
    asked = list(asked)
    status = reason.status or 403
    why = (b"proxy-status", proxy_status(reason).encode("ascii"))
    if any(name == b"content-type" and value.startswith(_GRPC) for name, value in asked):
        return [
            (b":status", b"200"),
            (b"content-type", _GRPC),
            (b"grpc-status", b"%d" % _GRPC_STATUS.get(status, _GRPC_UNKNOWN)),
            (b"grpc-message", printable(line).replace("%", "%25").encode("ascii")),
            why,
        ], b""
    kind, text = told(reason, line, json=reads_json(asked))
    kind, body = ("application/json", told_as) if told_as else (kind, text.encode("ascii"))
    fields = [(b":status", b"%d" % status), (b"content-type", kind.encode("ascii"))]
    if method == "HEAD" or len(body) <= room:
        fields.append((b"content-length", b"%d" % len(body)))
    fields.append(why)
    return fields, body if method != "HEAD" and len(body) <= room else b""
