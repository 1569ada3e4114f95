"""The one thing the gate ever says in SSH: why it closes (RFC 4253 sections 4.2, 6 and 11.1; GAT-9)."""

from __future__ import annotations

BANNER = b"SSH-2.0-tidegate\r\n"

_DISCONNECT = 1
_BY_APPLICATION = 11  # SSH_DISCONNECT_BY_APPLICATION
_BLOCK = 8  # the cipher block size before any key exchange
_MAX_TEXT = 1024


def ssh_disconnect(text: str, *, banner: bool) -> bytes:
    """Return a disconnect message in clear, whose text clients show.

    `banner` puts an identification line before it: needed where the server has not sent its own yet.
    """
    line = text.encode("ascii", "backslashreplace")[:_MAX_TEXT]
    payload = b"%c%b%b%b%b" % (
        _DISCONNECT,
        _BY_APPLICATION.to_bytes(4, "big"),
        len(line).to_bytes(4, "big"),
        line,
        bytes(4),  # no language tag
    )
    padding = _BLOCK - (len(payload) + 5) % _BLOCK
    if padding < 4:  # section 6: at least four bytes
        padding += _BLOCK
    packet = (len(payload) + padding + 1).to_bytes(4, "big") + b"%c" % padding + payload + bytes(padding)
    return BANNER + packet if banner else packet
