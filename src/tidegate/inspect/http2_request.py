"""What a stream of HTTP/2 asks, judged: whom it names, what, and whether its fields are any (INS-4, INS-6; RFC 9113).

Rules of the file: everything is held to the grammar of HTTP/1 too. Who is behind the destination may speak that, and
what would end a line or a word there does not travel. It decides on values and knows no connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.destination import PortError, parse_port, split_authority
from tidegate.model.host import HostError, canonical_host
from tidegate.model.reason import Reason
from tidegate.policy.alternatives import posts_only, why_refused
from tidegate.policy.paths import OVERRIDES
from tidegate.wire.authority import HTTPS_PORT, host_field
from tidegate.wire.body import travels_as_trailer
from tidegate.wire.grammar import FIELD, OWS, TOKEN, VCHAR, is_token
from tidegate.wire.http1 import MAX_METHOD, ODD_FRAMING
from tidegate.wire.method_fields import method_fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.model.decision import Decision
    from tidegate.model.destination import Destination
    from tidegate.wire.method_fields import MethodFields

    Headers = list[tuple[bytes, bytes]]

WEBSOCKET = b"websocket"
ALT_SVC = b"alt-svc"  # RFC 7838: it leads elsewhere


def method_of(pseudo: dict[bytes, bytes]) -> str:
    """Return the method, '' where it is none: so nothing else is put on record."""
    word = pseudo.get(b":method", b"")
    return word.decode("ascii") if is_token(word) and len(word) <= MAX_METHOD else ""


def judged(
    decision: Decision, pseudo: dict[bytes, bytes], headers: Headers, method: str, *, ends: bool
) -> tuple[Reason | None, str]:
    """Return why a request does not pass, None where it does, and a clause for people; `ends`: nothing follows it."""
    path, protocol = pseudo.get(b":path", b""), pseudo.get(b":protocol")
    if checked(headers) is None or not method or path.translate(None, VCHAR):
        return Reason.BAD_REQUEST, "a header has a byte that none may have, or the method is none"
    if method in {"CONNECT", "TRACE"} and protocol != WEBSOCKET:
        return Reason.BAD_METHOD, f"{method} has no place inside TLS"
    if pseudo.get(b":scheme") != b"https":
        return Reason.BAD_REQUEST, "the scheme is not https"
    named = [pseudo[b":authority"]] if b":authority" in pseudo else []
    named += [value for name, value in headers if name == b"host"]
    if not named:
        return Reason.BAD_REQUEST, "it names no authority"
    if not all(_is_ours(authority, decision.destination) for authority in named):
        return Reason.MISDIRECTED, ""
    if (path[:1] != b"/" and not (path == b"*" and method == "OPTIONS")) or b"#" in path:
        return Reason.BAD_REQUEST, "its path does not begin with '/', or has a fragment"
    overrides = [field for field in headers if field[0] in OVERRIDES]
    # RFC 8441: what is a GET with an Upgrade in HTTP/1.1 is a CONNECT with a protocol here.
    socket = protocol is not None
    why = why_refused(decision, "GET" if socket else method, path, overrides, socket=socket, body=not (ends or socket))
    return why, ""


def fields_of_method(decision: Decision, headers: Headers, *, ends: bool) -> MethodFields | None:
    """Return what the body of a request goes through; None where a field of it can ask for nothing more.

    Raises:
        MethodFieldError: nobody can say what method its body asks for.
    """
    pseudo = {name: value for name, value in headers if name[:1] == b":"}
    if ends or pseudo.get(b":method") != b"POST" or not posts_only(decision, pseudo.get(b":path", b"")):
        return None
    return method_fields(headers)


def misframed(headers: Headers, *, ends: bool) -> bool:
    """Whether a request says another length than it has, as far as its fields tell (RFC 9113 section 8.1.1), or oddly.

    Where HTTP/1 is spoken behind the destination, a body that never came would be taken from the next request.
    """
    if any(name in ODD_FRAMING for name, _ in headers):
        return True
    lengths = [value for name, value in headers if name == b"content-length"]
    if not lengths:
        return False
    return len(lengths) > 1 or not lengths[0].isdigit() or (ends and int(lengths[0]) != 0)


def checked_trailers(headers: Iterable[tuple[bytes, bytes]]) -> Headers | None:
    """Return the fields of trailers that travel, None as `checked`."""
    kept = checked(headers)
    return None if kept is None else [field for field in kept if travels_as_trailer(field[0]) and field[0] != ALT_SVC]


def checked(headers: Iterable[tuple[bytes, bytes]]) -> Headers | None:
    """Return the fields, or None where one of them is none to HTTP/1 (RFC 9113 section 8.2.1)."""
    kept: Headers = []
    for name, value in headers:
        bare = name[1:] if name[:1] == b":" else name
        if not bare or bare.translate(None, TOKEN) or bare != bare.lower():
            return None
        if value.translate(None, FIELD) or value != value.strip(OWS):
            return None
        kept.append((name, value))
    return kept


def _is_ours(authority: bytes, destination: Destination) -> bool:
    if destination.host.packed is None and authority == host_field(destination, HTTPS_PORT):
        return True  # as in HTTP/1 (wire/authority.py)
    try:
        host, text = split_authority(authority)
        port = destination.port if text is None else parse_port(text)
        return canonical_host(host) == destination.host and port == destination.port
    except (HostError, PortError):
        return False
