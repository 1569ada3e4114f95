"""Whose a TCP socket is: the one question to the kernel's socket diagnostics, and its answer. Pure and strict.

The question names both ends of one socket, so the kernel looks in its table of connections once, however many sockets
there are. Its look-up goes on to *listening* sockets when no connection fits, and gives any state; so an answer counts
only where it repeats both ends exactly, in a state in which a process owns the socket. A socket that its process has
closed has no inode, and one that is only waiting for stray packets has neither that nor an owner: both are nobody's.

Invariant: any bytes give an Owner, None (the kernel says that there is no such socket), or WireError.

From linux/inet_diag.h (inet_diag_req_v2, inet_diag_msg), linux/sock_diag.h; sock_diag(7).
"""

from __future__ import annotations

from struct import pack, unpack_from

from tidegate.model.value import Value
from tidegate.wire import netlink

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
AF_INET, AF_INET6 = 2, 10
IPPROTO_TCP = 6
INET_DIAG_NOCOOKIE = 0xFFFFFFFF

# The kernel's include/net/tcp_states.h. In these the process at the client's end can still use its socket, while ours
# is open: it has ended at most its own direction.
TCP_ESTABLISHED, TCP_FIN_WAIT1, TCP_FIN_WAIT2 = 1, 4, 5
_IN_USE = frozenset((TCP_ESTABLISHED, TCP_FIN_WAIT1, TCP_FIN_WAIT2))
_STATES = sum(1 << state for state in _IN_USE)

MAPPED = bytes(10) + b"\xff\xff"  # RFC 4291 section 2.5.5.2
_MESSAGE = 72  # struct inet_diag_msg
_ENDS, _UID = 4, 64  # where the socket's name and its owner stand in it


class Ends(Value):
    """Both ends of a connection as the socket in question has them: packed addresses (4 or 16 bytes) and ports."""

    local: bytes
    local_port: int
    remote: bytes
    remote_port: int


class Owner(Value):
    """Whose a socket is. `inode` is the socket's number in /proc/PID/fd; `cookie` is its own for good (SO_COOKIE)."""

    uid: int
    inode: int
    cookie: int


def question(ends: Ends, sequence: int) -> bytes:
    """Return the request for the one socket with these ends.

    Raises:
        ValueError: when the ends are of two families, or of none.
    """
    sizes = {len(ends.local), len(ends.remote)}
    if sizes not in ({4}, {16}):
        raise ValueError("both ends of a connection are of one family")
    family = AF_INET if sizes == {4} else AF_INET6
    head = pack("=BBBBI", family, IPPROTO_TCP, 0, 0, _STATES)
    return netlink.request(SOCK_DIAG_BY_FAMILY, sequence, head + _name(ends) + _ANY)


_ANY = pack("=III", 0, INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE)  # any interface, whatever its cookie


def _name(ends: Ends) -> bytes:
    ports = pack(">HH", ends.local_port, ends.remote_port)
    return ports + ends.local.ljust(16, b"\0") + ends.remote.ljust(16, b"\0")


def _mapped_name(ends: Ends) -> bytes | None:
    # A socket of IPv6 that was connected to an IPv4 address, as a JVM's are: it stands in the same table.
    if len(ends.local) != 4:
        return None
    return pack(">HH", ends.local_port, ends.remote_port) + MAPPED + ends.local + MAPPED + ends.remote


def answer(data: bytes, sequence: int, ends: Ends) -> Owner | None:
    """Return whose the socket is; None where there is none, or no process owns it any more.

    Raises:
        WireError: when this is no answer to that question.
    """
    part = netlink.answer(data, sequence, "whose a socket is")
    if part is None:
        return None
    kind, start, end = part
    if kind != SOCK_DIAG_BY_FAMILY or end - start < _MESSAGE:
        raise netlink.malformed("not an answer about a socket")
    family, state = data[start], data[start + 1]
    name = data[start + _ENDS : start + _ENDS + 36]
    is_it = name == _name(ends) and family == (AF_INET if len(ends.local) == 4 else AF_INET6)
    is_it = is_it or (family == AF_INET6 and name == _mapped_name(ends))
    if not is_it or state not in _IN_USE:
        return None  # a listener, or one that has been closed
    low, high = unpack_from("=II", data, start + _ENDS + 40)
    uid, inode = unpack_from("=II", data, start + _UID)
    return Owner(uid, inode, high << 32 | low) if inode else None
