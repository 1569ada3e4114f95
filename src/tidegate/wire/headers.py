"""Heads on their way through the gate: what stays behind, and the bytes that travel on (GAT-4, B59).

RFC 9110 section 7.6.1: fields that concern one connection never travel on. These are the ones named here, all
`Proxy-*` of a request, and those that Connection names. A Connection field that names something the ends need for
authentication, routing or framing is an attack, not a wish: it is refused. All other fields keep their
order, spelling and number; Host is made from the destination that was judged, in the place it had.

Of `Upgrade` only a WebSocket offer with a GET without body travels on (RFC 6455); others are dropped, and the
request is a plain one. `Proxy-Status` of a response is for its reader and stays (RFC 9209).
"""

from __future__ import annotations

from tidegate.model.destination import Destination
from tidegate.model.reason import Reason
from tidegate.wire.authority import HTTP_PORT, host_field
from tidegate.wire.errors import WireError
from tidegate.wire.framing import Framing
from tidegate.wire.grammar import is_token, list_members
from tidegate.wire.http1 import RequestHead, ResponseHead, Version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authentication-info",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"upgrade",
        b"http2-settings",
    }
)

# What Connection may not name: the end-to-end fields that decide who is asked, by whom, and where the message ends.
_NEVER_NAMED = frozenset(
    b"""host authorization content-length content-type content-encoding content-range cookie set-cookie cache-control
    expect range if-match if-none-match if-modified-since if-unmodified-since if-range origin referer location
    www-authenticate forwarded x-forwarded-for x-forwarded-host x-forwarded-proto x-api-key x-goog-api-key
    sec-websocket-key sec-websocket-accept""".split()
)
# Akamai names this one in responses; it is hop-by-hop by nature, so there it changes nothing.
_NEVER_NAMED_IN_REQUESTS = _NEVER_NAMED | {b"transfer-encoding"}

_NONE: frozenset[bytes] = frozenset()
_KEEP_ALIVE = frozenset({b"keep-alive"})
_CLOSE = frozenset({b"close"})
_USUAL_OPTIONS = _KEEP_ALIVE | _CLOSE
_USUAL = {b"keep-alive": _KEEP_ALIVE, b"Keep-Alive": _KEEP_ALIVE, b"close": _CLOSE, b"Close": _CLOSE}

_NO_BODY_FIELDS = frozenset({b"content-length", b"transfer-encoding", b"trailer"})
_CHUNK_FIELDS = frozenset({b"transfer-encoding", b"trailer"})
_EXPECT = frozenset({b"expect"})

_WEBSOCKET_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 section 1.3


def connection_options(head: RequestHead | ResponseHead) -> frozenset[bytes]:
    """Return the options that Connection (and of a request Proxy-Connection) names, in lower case.

    Raises:
        WireError: BAD_REQUEST or UPSTREAM_RESPONSE for a field that is no list, or names what it must not.
    """
    if head.options is None:
        head.options = _connection_options(head)
    return head.options


def _connection_options(head: RequestHead | ResponseHead) -> frozenset[bytes]:
    names = head.names
    request = type(head) is RequestHead
    proxied = request and b"proxy-connection" in names
    if b"connection" not in names and not proxied:
        return _NONE
    values = head.values(b"connection")
    if proxied:
        values += head.values(b"proxy-connection")
    usual = _USUAL.get(values[0]) if len(values) == 1 else None
    if usual is not None:
        return usual
    options = frozenset(list_members(values))
    bad = Reason.BAD_REQUEST if request else Reason.UPSTREAM_RESPONSE
    if not all(map(is_token, options)):
        raise WireError(bad, "the Connection header is no list of tokens")
    if not options.isdisjoint(_NEVER_NAMED_IN_REQUESTS if request else _NEVER_NAMED):
        raise WireError(bad, "the Connection header names a field that must reach the other end")
    return options


def keeps_alive(head: RequestHead | ResponseHead) -> bool:
    """Whether the sender wants the connection to last: in 1.1 unless it says close, in 1.0 only if it says so.

    Raises:
        WireError: as `connection_options`.
    """
    options = connection_options(head)
    if b"close" in options:
        return False
    return head.version == (1, 1) or b"keep-alive" in list_members(head.values(b"connection"))


def offers_websocket(head: RequestHead, framing: Framing) -> bool:
    """Whether the request offers to become a WebSocket, in the one form that travels on (RFC 6455 section 4.1)."""
    return (
        b"upgrade" in head.names
        and head.method == "GET"
        and head.version == (1, 1)
        and framing.empty
        and b"upgrade" in connection_options(head)
        and b"websocket" in list_members(head.values(b"upgrade"))
        and len(head.values(b"sec-websocket-key")) == 1
    )


def accepts_websocket(request: RequestHead, response: ResponseHead) -> bool:
    """Whether a 101 response really accepts the WebSocket that `request` offered (RFC 6455 section 4.2.2)."""
    if response.status != 101 or response.version != (1, 1):
        return False
    key = request.get(b"sec-websocket-key") or b""
    return (
        list_members(response.values(b"upgrade")) == [b"websocket"]
        and b"upgrade" in connection_options(response)
        and response.values(b"sec-websocket-accept") == [websocket_accept(key)]
    )


def websocket_accept(key: bytes) -> bytes:
    """Return the Sec-WebSocket-Accept that answers a Sec-WebSocket-Key."""
    from binascii import b2a_base64
    from hashlib import sha1  # only when the first WebSocket opens; it costs a millisecond

    return b2a_base64(sha1(key + _WEBSOCKET_GUID, usedforsecurity=False).digest(), newline=False)


def request_head_bytes(
    head: RequestHead,
    destination: Destination,
    target: bytes,
    *,
    close: bool = False,
    websocket: bool = False,
    extra: Iterable[tuple[bytes, bytes]] = (),
    default_port: int = HTTP_PORT,
) -> bytes:
    """Return the head to send to `destination`, or with an absolute `target` to an upstream proxy.

    `close` asks for the end of the connection after the response; `websocket` passes the offer on (see
    `offers_websocket`); `extra` fields are added, such as Proxy-Authorization for the upstream proxy. Host leaves a
    `default_port` out. The body follows as it came: the framing field stays the one that was judged.

    Raises:
        WireError: as `connection_options`.
    """
    host = host_field(destination, default_port)
    options = connection_options(head)
    lines = [b"%b %b HTTP/1.1" % (head.method.encode("ascii"), target)]
    if b"host" not in head.names:
        lines.append(b"Host: " + host)
    # RFC 9110 section 10.1.1: nobody in 1.0 waits for 100, whatever it says.
    lines += _field_lines(head, options, _EXPECT if head.version == (1, 0) else _NONE, host)
    wishes = []
    if websocket:
        wishes.append(b"Upgrade")
        lines.append(b"Upgrade: websocket")
    elif close:
        wishes.append(b"close")
    if b"te" in head.names and b"trailers" in list_members(head.values(b"te")):
        wishes.append(b"TE")
        lines.append(b"TE: trailers")
    if wishes:
        lines.append(b"Connection: " + b", ".join(wishes))
    lines += [b"%b: %b" % field for field in extra]
    lines.append(b"\r\n")
    return b"\r\n".join(lines)


def response_head_bytes(
    head: ResponseHead,
    *,
    close: bool,
    client_version: Version = (1, 1),
    decode: bool = False,
    switching: bool = False,
    without: frozenset[bytes] = _NONE,
) -> bytes:
    """Return the head to send to the client.

    `close` says that the gate closes afterwards; a body that lasts until the upstream closes needs it. `decode`
    leaves Transfer-Encoding and Trailer out, for the data of a chunked body alone. `switching` is for a 101 that
    `accepts_websocket` approved. Fields named in `without`, in lower case, stay behind, and lengths in 1xx and 204,
    which have no body whatever they say.

    Raises:
        WireError: UPSTREAM_RESPONSE, as `connection_options`.
    """
    status = head.status
    lines = [b"HTTP/1.1 %d %b" % (status, head.reason)]
    dropped = _NO_BODY_FIELDS if status < 200 or status == 204 else _CHUNK_FIELDS if decode else _NONE
    lines += _field_lines(head, connection_options(head), dropped | without if dropped else without, None)
    if switching:
        lines.append(b"Upgrade: websocket\r\nConnection: Upgrade")
    elif status >= 200:
        if close:
            lines.append(b"Connection: close")
        elif client_version == (1, 0):
            lines.append(b"Connection: keep-alive")
    lines.append(b"\r\n")
    return b"\r\n".join(lines)


def connect_request(destination: Destination, authorization: bytes = b"") -> bytes:
    """Return a CONNECT for an upstream proxy; `authorization` is the whole value of Proxy-Authorization."""
    authority = str(destination).encode("ascii")
    line = b"Proxy-Authorization: %b\r\n" % authorization if authorization else b""
    return b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (authority, authority, line)


def basic_authorization(user: bytes, password: bytes) -> bytes:
    """Return the value of an Authorization field with Basic credentials (RFC 7617)."""
    from binascii import b2a_base64

    return b"Basic " + b2a_base64(user + b":" + password, newline=False)


def _stays(head: RequestHead | ResponseHead, options: frozenset[bytes]) -> frozenset[bytes]:
    # The lower-case names of what does not travel on. Transfer-Encoding is the framing's business alone.
    stays = _HOP_BY_HOP if options <= _USUAL_OPTIONS else _HOP_BY_HOP | options - {b"transfer-encoding"}
    if type(head) is RequestHead:
        extra = [name for name in head.names if name[:6] == b"proxy-"]
        if extra:
            return stays.union(extra)
    return stays


_MOST_KNOWN = 32
_KNOWN: dict[frozenset[bytes], frozenset[bytes]] = {}


def _usual_and(dropped: frozenset[bytes]) -> frozenset[bytes]:
    # One of few sets of this file and its callers. By hand: functools would be loaded for this alone.
    known = _KNOWN.get(dropped)
    if known is None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        known = _KNOWN[dropped] = _HOP_BY_HOP | dropped
    return known


def _field_lines(
    head: RequestHead | ResponseHead, options: frozenset[bytes], dropped: frozenset[bytes], host: bytes | None
) -> list[bytes]:
    # Hot: one pass, one formatted line for each field that travels on.
    stays = _stays(head, options)
    if dropped:
        stays = _usual_and(dropped) if stays is _HOP_BY_HOP else stays | dropped
    lines = [b": ".join(field) for name, field in zip(head.names, head.headers, strict=True) if name not in stays]
    if host is not None and b"host" in head.names:
        # Where Host stands among the lines: none of those in front of it is Host, so counting them is enough.
        before = head.names[: head.names.index(b"host")]
        at = sum(name not in stays for name in before)
        lines[at] = head.headers[len(before)][0] + b": " + host
    return lines
