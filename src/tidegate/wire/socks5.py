"""SOCKS5 as the gate speaks it to a task (RFC 1928): no authentication, CONNECT only.

The functions look at the beginning of a buffer and say how much of it they used, so a greeting and a request
in one segment, or a byte at a time, are the same. Names come as `socks5h` sends them and pass the same
`canonical_host` as everything else; a name that is the text of an address is that address, also an IPv6 address without
brackets, which older clients send as a name and which cannot be confused here: the port is elsewhere.

Every error carries the reply that says it in SOCKS (section 6); the client closes after it.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_ntop

from tidegate.model.destination import Destination
from tidegate.model.host import Host, HostError, canonical_host
from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError, shown_host

VERSION = 5
NO_AUTH = b"\x05\x00"
NO_METHOD = b"\x05\xff"

CMD_CONNECT = 1
ATYP_IPV4 = 1
ATYP_NAME = 3
ATYP_IPV6 = 4

# Reply codes (RFC 1928 section 6).
OK = 0
GENERAL_FAILURE = 1
NOT_ALLOWED = 2
NETWORK_UNREACHABLE = 3
HOST_UNREACHABLE = 4
REFUSED = 5
TTL_EXPIRED = 6
NO_COMMAND = 7
NO_ADDRESS_TYPE = 8

_CODES = {
    Reason.UPSTREAM_NXDOMAIN: HOST_UNREACHABLE,
    Reason.UPSTREAM_DNS_FAILED: HOST_UNREACHABLE,
    Reason.UPSTREAM_DNS_TIMEOUT: HOST_UNREACHABLE,
    Reason.NO_ADDRESS: HOST_UNREACHABLE,
    Reason.UPSTREAM_UNREACHABLE: NETWORK_UNREACHABLE,
    Reason.UPSTREAM_REFUSED: REFUSED,
    Reason.UPSTREAM_TIMEOUT: TTL_EXPIRED,
}


def reply(code: int) -> bytes:
    """Return a reply with this code. The bound address is left zero: the gate's is nobody's business."""
    return b"\x05%c\x00\x01\x00\x00\x00\x00\x00\x00" % code


SUCCEEDED = reply(OK)


def reply_code(reason: Reason) -> int:
    """Return the reply code that says `reason`: 2 for every refusal of the policy, 1 where SOCKS has no word."""
    code = _CODES.get(reason)
    if code is not None:
        return code
    return NOT_ALLOWED if reason.status == 403 else GENERAL_FAILURE


def refusal_reply(reason: Reason) -> bytes:
    """Return the reply that refuses for `reason`."""
    return reply(reply_code(reason))


def read_greeting(buf: bytes | bytearray) -> int:
    """Return the length of the greeting at the beginning of `buf`, 0 while it is not whole.

    Raises:
        WireError: BAD_SOCKS when it is another version, or does not offer to do without authentication.
    """
    if not buf:
        return 0
    if buf[0] != VERSION:
        raise WireError(Reason.BAD_SOCKS, f"version {buf[0]} was asked for")
    if len(buf) < 2:
        return 0
    count = buf[1]
    if not count:
        raise WireError(Reason.BAD_SOCKS, "it offers no authentication method", reply=NO_METHOD)
    if len(buf) < 2 + count:
        return 0
    if buf.find(b"\x00", 2, 2 + count) < 0:
        raise WireError(Reason.BAD_SOCKS, "it insists on authentication", reply=NO_METHOD)
    return 2 + count


def read_request(buf: bytes | bytearray) -> tuple[int, Destination] | None:
    """Return the length of the request at the beginning of `buf` and its destination, None while it is not whole.

    Raises:
        WireError: BAD_SOCKS, BAD_HOST or BAD_PORT, with the reply to send.
    """
    size = len(buf)
    if size >= 1 and buf[0] != VERSION:
        raise _bad("the request has another version")
    if size >= 2 and buf[1] != CMD_CONNECT:
        raise _bad(f"command {buf[1]} was asked for; only CONNECT is offered", NO_COMMAND)
    if size >= 3 and buf[2] != 0:
        raise _bad("the reserved byte is not zero")
    if size < 4:
        return None
    kind = buf[3]
    if kind == ATYP_IPV4:
        begin, length = 4, 4
    elif kind == ATYP_IPV6:
        begin, length = 4, 16
    elif kind == ATYP_NAME:
        if size < 5:
            return None
        begin, length = 5, buf[4]
        if not length:
            raise _bad("the host is empty", GENERAL_FAILURE, Reason.BAD_HOST)
    else:
        raise _bad(f"address type {kind} is unknown", NO_ADDRESS_TYPE)
    end = begin + length
    if size < end + 2:
        return None
    address = bytes(buf[begin:end])
    if kind == ATYP_IPV4:
        host = Host(inet_ntop(AF_INET, address), address)
    elif kind == ATYP_IPV6:
        host = Host(inet_ntop(AF_INET6, address), address)
    else:
        host = _named(address)
    port = buf[end] << 8 | buf[end + 1]
    if not port:
        raise WireError(Reason.BAD_PORT, "the port is 0", raw=host.bracketed, reply=reply(GENERAL_FAILURE))
    return end + 2, Destination(host, port)


def _named(text: bytes) -> Host:
    try:
        bare = b":" in text and text[:1] != b"["
        return canonical_host(b"[" + text + b"]" if bare else text)
    except HostError as error:
        raise WireError(Reason.BAD_HOST, error.what, raw=shown_host(text), reply=reply(GENERAL_FAILURE)) from None


def _bad(detail: str, code: int = GENERAL_FAILURE, reason: Reason = Reason.BAD_SOCKS) -> WireError:
    return WireError(reason, detail, reply=reply(code))
