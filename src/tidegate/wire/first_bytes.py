"""What a peer speaks, told from its first bytes (GAT-1, GAT-9). Nothing is consumed here."""

from __future__ import annotations

from tidegate.model.closed import Closed
from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError
from tidegate.wire.grammar import TOKEN

_IN_A_METHOD = frozenset(TOKEN)
_SSH = b"SSH-"  # RFC 4253 section 4.2
_TLS_HANDSHAKE = 0x16  # RFC 8446 section 5.1
_SOCKS4 = 4
_SOCKS4_REJECTED = b"\0\x5b" + bytes(6)  # 91, "request rejected or failed", of the protocol's own description


class Speaks(Closed):
    """A protocol, as far as the gate tells them apart inside a tunnel."""

    HTTP = "http"
    HTTP2 = "http2"  # the clear-text preface of RFC 9113
    TLS = "tls"
    SSH = "ssh"
    OTHER = "other"


def why_no_request(data: bytes | bytearray) -> WireError | None:
    """Return why what begins with these bytes can be no HTTP/1 request, whatever follows; None while it can be one.

    The first byte tells, and of `SSH-` the fourth. Whoever speaks another protocol to the proxy's port waits for an
    answer in it, not for the end of a head, so it hears of it at once and not when its time for a head is over.
    """
    if not data:
        return None
    first = data[0]
    if first in _IN_A_METHOD:
        return _no("SSH is spoken through CONNECT, by a ProxyCommand") if data[:4] == _SSH else None
    if first == _TLS_HANDSHAKE:
        return _no("it begins like TLS, and the way to a proxy is clear text: write http:// in the proxy's address")
    if first == _SOCKS4:
        what = "it begins like SOCKS4, and the SOCKS that is spoken here is 5: write socks5h:// in the proxy's address"
        return _no(what, _SOCKS4_REJECTED)
    return _no("the request does not begin with a method")


def _no(what: str, reply: bytes = b"") -> WireError:
    return WireError(Reason.BAD_REQUEST, what, reply=reply)
