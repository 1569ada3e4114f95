"""Where a request wants to go: its target, as a canonical destination, and the agreement of Host with it.

A proxy gets two forms of target (RFC 9112 section 3.2): `host:port` with CONNECT, and `http://host[:port]/path`
with every other method. Everything else is refused with a line that says what to send instead (B31).

The request line rules. A Host field may leave the port out (Java does) but must name the same host, and the
same port where it names one (B32); what travels on is made from the request line (`host_field`). RFC 9112
section 3.2 wants exactly one Host in HTTP/1.1; HTTP/1.0 has none (B61). Hosts are judged by
`canonical_host` alone; nothing is percent-decoded (B10), and user names are refused and never shown (B08).
"""

from __future__ import annotations

from tidegate.model.destination import Destination, PortError, parse_authority, parse_port, split_authority
from tidegate.model.host import HostError, canonical_host
from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError, escaped, shown_host
from tidegate.wire.framing import request_framing
from tidegate.wire.grammar import ALPHA, DIGIT
from tidegate.wire.http1 import RequestHead

HTTP_PORT = 80
HTTPS_PORT = 443
_SCHEME = ALPHA + DIGIT + b"+-."  # RFC 3986 section 3.1
_MORE = frozenset(b"@?#")  # with one of these in it a target may hold a secret where a port should be

# Authority as sent -> destination. A pure function of its key, so this is only memory of work done; bounded by
# being emptied when full, and only short keys go in. Two, because a text without a port means two things.
_MAX_KNOWN = 2048
_MAX_KNOWN_KEY = 128
_connect_known: dict[bytes, Destination] = {}
_http_known: dict[bytes, Destination] = {}


def connect_target(head: RequestHead) -> Destination:
    """Return the destination of a CONNECT request.

    Raises:
        WireError: BAD_HOST, BAD_PORT, HOST_MISMATCH, BAD_REQUEST (Host missing or twice), or BAD_FRAMING where
            a body is announced: what follows a CONNECT is the tunnel.
    """
    target = head.target
    destination = _connect_known.get(target) or _destination(target, target, None, _connect_known)
    host = head.get(b"host")  # mostly the same text as the target
    if host != target or head.names.count(b"host") != 1:
        _check_host(head, destination)
    names = head.names
    if (b"content-length" in names or b"transfer-encoding" in names) and not request_framing(head).empty:
        raise WireError(Reason.BAD_FRAMING, "a CONNECT request has no body")
    return destination


def absolute_target(head: RequestHead) -> tuple[Destination, bytes]:
    """Return the destination of a request other than CONNECT, and the target to send to it (origin-form).

    The second is `*` for OPTIONS without a path (RFC 9112 section 3.2.4).

    Raises:
        WireError: REQUEST_FORM, BAD_HOST, BAD_PORT, HOST_MISMATCH, BAD_REQUEST, or BAD_METHOD for TRACE.
    """
    target = head.target
    if target[:7] != b"http://" and target[:7].lower() != b"http://":
        raise _not_absolute(head)
    end = _authority_end(target)
    authority = target[7:end]
    destination = _http_known.get(authority) or _destination(target, authority, HTTP_PORT, _http_known)
    host = head.get(b"host")
    if host != authority or head.names.count(b"host") != 1:
        _check_host(head, destination)
    if head.method == "TRACE":
        raise WireError(Reason.BAD_METHOD, "TRACE would show the task what the gate adds", destination=destination)
    path = target[end:]
    if b"#" in path:
        raise WireError(Reason.BAD_REQUEST, "the target has a fragment ('#'), which never travels")
    if path[:1] != b"/":
        path = b"*" if head.method == "OPTIONS" and not path else b"/" + path
    return destination, path


def inner_target(head: RequestHead, destination: Destination) -> bytes:
    """Return the target (origin-form, or `*`) of a request inside TLS with `destination`, the only one it may name.

    The absolute form with https:// is allowed, as every server must (RFC 9112 section 3.2.2).

    Raises:
        WireError: MISDIRECTED where target or Host name another host or port (RFC 9110 section 15.5.20), BAD_REQUEST,
            BAD_HOST or BAD_METHOD.
    """
    target = head.target
    if head.method in {"CONNECT", "TRACE"}:
        raise WireError(Reason.BAD_METHOD, f"{head.method} has no place inside TLS", destination=destination)
    if target[:8].lower() == b"https://":
        end = _authority_end(target, 8)
        if not _names(target[8:end], destination):
            raise WireError(Reason.MISDIRECTED, "its target does", destination=destination)
        path = target[end:]
        if path[:1] != b"/":
            path = b"*" if head.method == "OPTIONS" and not path else b"/" + path
        target = path
    elif target[:1] != b"/" and not (target == b"*" and head.method == "OPTIONS"):
        detail = "inside TLS a target is a path, or begins with https://"
        raise WireError(Reason.BAD_REQUEST, detail, destination=destination)
    if b"#" in target:
        detail = "the target has a fragment ('#'), which never travels"
        raise WireError(Reason.BAD_REQUEST, detail, destination=destination)
    hosts = head.values(b"host")
    if len(hosts) > 1 or (not hosts and head.version == (1, 1)):
        detail = "an HTTP/1.1 request needs one Host header"
        raise WireError(Reason.BAD_REQUEST, detail, destination=destination)
    if hosts and not _names(hosts[0], destination):
        raise WireError(Reason.MISDIRECTED, "its Host header does", destination=destination)
    return target


def _names(authority: bytes, destination: Destination) -> bool:
    # Whether an authority inside TLS is that of the connection. The port may be left out, as Java does.
    if destination.host.packed is None and authority == host_field(destination, HTTPS_PORT):
        return True  # most send it as we do, and the canonical form of a canonical name is that name
    try:
        host, text = split_authority(authority)
        named = canonical_host(host)
        port = destination.port if text is None else parse_port(text)
    except (HostError, PortError) as error:
        detail = f"inside TLS: {error.what}"
        raise WireError(Reason.BAD_HOST, detail, destination=destination) from None
    return named == destination.host and port == destination.port


def absolute_form(destination: Destination, origin: bytes) -> bytes:
    """Return the target for an upstream proxy: `origin` as `absolute_target` gave it, made absolute again."""
    return b"http://" + host_field(destination) + (b"" if origin == b"*" else origin)


def host_field(destination: Destination, default_port: int = HTTP_PORT) -> bytes:
    """Return the value of Host for a destination; the port is left out where it is the default one."""
    text = destination.host.bracketed
    return (text if destination.port == default_port else f"{text}:{destination.port}").encode("ascii")


def _destination(
    target: bytes, authority: bytes, default_port: int | None, known: dict[bytes, Destination]
) -> Destination:
    # `target` is what the client sent, for what may be shown of it; `authority` is the part of it that counts.
    try:
        destination = parse_authority(authority, default_port)
    except HostError as error:
        detail = "CONNECT takes host:port, not a URL" if b"/" in authority else error.what
        raise WireError(Reason.BAD_HOST, detail, raw=shown_host(target)) from None
    except PortError as error:
        vague = b"/" in authority or not _MORE.isdisjoint(target)
        detail = "the port is not a number from 1 to 65535" if vague else error.what
        raise WireError(Reason.BAD_PORT, detail, raw=shown_host(target)) from None
    if len(authority) <= _MAX_KNOWN_KEY:
        if len(known) >= _MAX_KNOWN:
            known.clear()
        known[authority] = destination
    return destination


def _authority_end(target: bytes, begin: int = 7) -> int:
    # RFC 3986 section 3.2: the authority ends at the first '/', '?' or '#', or with the target.
    end = target.find(b"/", begin)
    if end < 0:
        end = len(target)
    for sign in (b"?", b"#"):
        at = target.find(sign, begin, end)
        if at >= 0:
            end = at
    return end


def _not_absolute(head: RequestHead) -> WireError:
    scheme, separator, _ = head.target.partition(b"://")
    if separator and not scheme.translate(None, _SCHEME):
        shown = shown_host(head.target)
        if scheme.lower() == b"https":
            detail = "https:// goes through CONNECT host:443, so that TLS stays between the client and the server"
            return WireError(Reason.REQUEST_FORM, detail, raw=shown)
        return WireError(Reason.REQUEST_FORM, f"the scheme {escaped(scheme, 20)!r} is not http", raw=shown)
    what = "'*'" if head.target == b"*" else "a path alone" if head.target[:1] == b"/" else "no URL"
    return WireError(Reason.REQUEST_FORM, f"the target is {what}; a client that speaks to a proxy names the host in it")


def _check_host(head: RequestHead, destination: Destination) -> None:
    values = head.values(b"host")
    if not values:
        if head.version == (1, 0):
            return
        raise WireError(Reason.BAD_REQUEST, "an HTTP/1.1 request needs a Host header", destination=destination)
    if len(values) > 1:
        raise WireError(Reason.BAD_REQUEST, "there is more than one Host header", destination=destination)
    try:
        host_text, port_text = split_authority(values[0])
        host = canonical_host(host_text)
        port = None if port_text is None else parse_port(port_text)
    except (HostError, PortError) as error:
        raise WireError(Reason.BAD_HOST, f"in the Host header: {error.what}", destination=destination) from None
    if host != destination.host:
        raise WireError(Reason.HOST_MISMATCH, "the request line decides, so they must agree", destination=destination)
    if port is not None and port != destination.port:
        raise WireError(Reason.HOST_MISMATCH, "it names another port", destination=destination)
