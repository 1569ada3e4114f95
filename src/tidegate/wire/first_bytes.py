"""What a peer speaks, told from its first bytes (GAT-1, GAT-9). Nothing is consumed here."""

from __future__ import annotations

from tidegate.model.closed import Closed
from tidegate.wire.grammar import ALPHA

_LETTERS = frozenset(ALPHA)
_SSH = b"SSH-"  # RFC 4253 section 4.2


class Speaks(Closed):
    """A protocol, as far as the gate tells them apart."""

    HTTP = "http"
    HTTP2 = "http2"  # the clear-text preface of RFC 9113, inside a tunnel
    SOCKS5 = "socks5"
    TLS = "tls"
    SSH = "ssh"
    OTHER = "other"


def listener_speaks(data: bytes | bytearray | memoryview) -> Speaks | None:
    """Return what a client of the proxy port speaks, None while that is open.

    It is open for no byte at all and for the beginning of `SSH-`, which could still be an HTTP method. TLS and SSH are
    told apart from OTHER for the sake of the answer; the proxy port serves neither.
    """
    if not data:
        return None
    first = data[0]
    if first in _LETTERS:
        start = bytes(data[:4])
        if start == _SSH:
            return Speaks.SSH
        return None if _SSH.startswith(start) else Speaks.HTTP
    if first == 0x05:
        return Speaks.SOCKS5
    return Speaks.TLS if first == 0x16 else Speaks.OTHER
