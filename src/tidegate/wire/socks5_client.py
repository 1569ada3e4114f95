"""SOCKS5 as the gate speaks it to an upstream proxy (RFC 1928, RFC 1929; GAT-8).

Readers look at the beginning of a buffer and say how much of it they used, 0 (or None) while it is not whole. An
answer that is refused or malformed is a WireError whose reason says which upstream failure it is.
"""

from __future__ import annotations

from tidegate.model.host import Host
from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError
from tidegate.wire.socks5 import ATYP_IPV4, ATYP_IPV6, ATYP_NAME, CMD_CONNECT, VERSION

NO_AUTHENTICATION = 0
USER_PASSWORD = 2

# RFC 1928 section 6, as reasons of ours.
_REASONS = {
    3: (Reason.UPSTREAM_UNREACHABLE, "the network is unreachable"),
    4: (Reason.UPSTREAM_UNREACHABLE, "the host is unreachable"),
    5: (Reason.UPSTREAM_REFUSED, "the connection was refused"),
    6: (Reason.UPSTREAM_TIMEOUT, "the time to live ran out"),
}
_WORDS = {
    1: "general failure",
    2: "not allowed by its rules",
    7: "it knows no CONNECT",
    8: "it does not know this kind of address",
}


def greeting(credentials: bool) -> bytes:
    """Return the greeting: without authentication, and where there are credentials also with them."""
    return b"\x05\x02\x00\x02" if credentials else b"\x05\x01\x00"


def read_method(buf: bytes | bytearray) -> tuple[int, int] | None:
    """Return the bytes used and the method the proxy chose (NO_AUTHENTICATION or USER_PASSWORD).

    Raises:
        WireError: UPSTREAM_PROXY when it is no SOCKS5 proxy or wants another method.
    """
    if buf and buf[0] != VERSION:
        raise _no("it does not answer in SOCKS5")
    if len(buf) < 2:
        return None
    if buf[1] not in {NO_AUTHENTICATION, USER_PASSWORD}:
        raise _no("it accepts no authentication method that was offered")
    return 2, buf[1]


def password_request(user: bytes, password: bytes) -> bytes:
    """Return the sub-negotiation of RFC 1929.

    Raises:
        WireError: UPSTREAM_PROXY when either is empty or longer than 255 bytes.
    """
    if not (0 < len(user) < 256 and 0 < len(password) < 256):
        raise _no("its user name and password must have 1 to 255 bytes each")
    return b"\x01%c%b%c%b" % (len(user), user, len(password), password)


def read_password_reply(buf: bytes | bytearray) -> int:
    """Return the bytes used.

    Raises:
        WireError: UPSTREAM_PROXY when the credentials are not accepted.
    """
    if buf and buf[0] != 1:
        raise _no("its answer to the password is malformed")
    if len(buf) < 2:
        return 0
    if buf[1] != 0:
        raise _no("it does not accept the user name and password")
    return 2


def request(host: Host, port: int) -> bytes:
    """Return the CONNECT request for a host, by name or by address as the host is one or the other."""
    if host.packed is None:
        name = host.text.encode("ascii")
        address = b"%c%c%b" % (ATYP_NAME, len(name), name)
    else:
        address = b"%c%b" % (ATYP_IPV4 if len(host.packed) == 4 else ATYP_IPV6, host.packed)
    return b"\x05%c\x00%b%b" % (CMD_CONNECT, address, port.to_bytes(2, "big"))


def read_reply(buf: bytes | bytearray) -> int:
    """Return the bytes used by a reply that grants the connection.

    Raises:
        WireError: the upstream failure that the reply code says, or UPSTREAM_PROXY.
    """
    if buf and buf[0] != VERSION:
        raise _no("its reply is not SOCKS5")
    if len(buf) >= 2 and buf[1] != 0:
        reason, what = _REASONS.get(buf[1], (Reason.UPSTREAM_PROXY, _WORDS.get(buf[1], f"code {buf[1]}")))
        raise WireError(reason, f"the SOCKS5 proxy says: {what}")
    if len(buf) < 5:
        return 0
    kind = buf[3]
    if kind == ATYP_IPV4:
        end = 10
    elif kind == ATYP_IPV6:
        end = 22
    elif kind == ATYP_NAME:
        end = 7 + buf[4]
    else:
        raise _no("its reply has an unknown kind of address")
    return end if len(buf) >= end else 0


def _no(detail: str) -> WireError:
    return WireError(Reason.UPSTREAM_PROXY, f"the SOCKS5 proxy: {detail}")
