"""Sees at once when somebody removes or changes the table of the hold `uid`, a user's place in it, or routes (HLD-7).

The kernel tells of every change of nftables (NFNLGRP_NFTABLES). What is said about elements of others is passed over;
after anything else about our table, and after messages were lost, its chains and rules are read again and compared,
byte by byte, with what they were when the table was last found to be what it must be. The same goes for the routing
rule that keeps the range on this machine, its routes and the address they send from. Raw netlink, because who watches
runs no programs.

Rules of the file: a table that cannot be read has been changed. linux/netfilter/nf_tables.h, nfnetlink(7).
"""

from __future__ import annotations

import errno
import os
import select
import struct
from _socket import MSG_DONTWAIT, SOL_SOCKET

from tidegate.holds import netlink, nft, uid_routes
from tidegate.holds.netlink import NLM_F_ACK, NLM_F_CREATE, Message, attribute, nest, text
from tidegate.holds.uid_table import OWN, TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Iterable, Iterator

_GROUP = 1 << 6  # NFNLGRP_NFTABLES is 7
_SUBSYSTEM = 10  # NFNL_SUBSYS_NFTABLES
_GET_TABLE, _GET_CHAIN, _GET_RULE = 1, 4, 7
_NEW_ELEMENT, _DELETE_ELEMENT, _NEW_GENERATION = 12, 14, 15
_DUMP = 0x300  # NLM_F_DUMP
_DONE, _ERROR = 3, 2
_SO_RCVBUFFORCE = 33
_ROOM = 1 << 22  # bytes for what a burst of launches says
_LARGEST = 1 << 17


class TableWatch:
    """The table as it is now, and a socket that is readable when anything of nftables changes."""

    def __init__(self) -> None:
        """Begin to listen; `know` and `expect` say what may not change.

        Raises:
            OSError: where this process may not.
        """
        self._wire = netlink.connect(netlink.NETLINK_NETFILTER)
        self._routes = netlink.connect(netlink.NETLINK_ROUTE)
        self._both = select.epoll()
        try:
            for wire, groups in ((self._wire, _GROUP), (self._routes, uid_routes.GROUPS)):
                wire.bind((0, groups))
                wire.setsockopt(SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM)
                self._both.register(wire.fileno(), select.EPOLLIN)
        except OSError:
            self.close()
            raise
        self._known = b""
        self._known_routes: frozenset[str] = frozenset()
        self._places: tuple[bytes, ...] = ()

    def know(self, table: bytes) -> None:
        """Take this (see `look`) for what the table must be. What was changed since this began to listen is seen."""
        self._known = table

    def know_routes(self) -> bool:
        """Take the routing rule and its routes as they are for what they must be; False where something lacks."""
        found = uid_routes.look()
        self._known_routes = found
        return found >= uid_routes.NEEDED

    def expect(self, uid: int) -> None:
        """From now on the elements of this user may not go."""
        # NFTA_DATA_VALUE: a key of one word, and the first of two
        self._places = tuple(struct.pack("=HHI", size, 1, uid) for size in (8, 12))

    def fileno(self) -> int:
        """The descriptor to wait for."""
        return self._both.fileno()

    def descriptors(self) -> tuple[int, ...]:
        """All that it is made of, for a child that closes everything else."""
        return self._both.fileno(), self._wire.fileno(), self._routes.fileno()

    def altered(self) -> bool:
        """Take what was said; whether the table is another than it was or lacks the user, or routes lack something."""
        return self._routes_altered() or self._table_altered()

    def _routes_altered(self) -> bool:
        doubtful = False
        for data in _heard(self._routes):
            doubtful = doubtful or not data or any(uid_routes.is_about(kind, body) for kind, body in _messages(data))
        return doubtful and not uid_routes.look() >= self._known_routes

    def _table_altered(self) -> bool:
        doubtful = False
        for data in _heard(self._wire):
            doubtful = doubtful or not data
            for kind, body in _messages(data):
                what = kind & 0xFF
                if kind >> 8 != _SUBSYSTEM or what == _NEW_GENERATION or not _is_ours(body):
                    continue
                if what == _DELETE_ELEMENT and any(one in body for one in self._places) and not _is_of(body, OWN):
                    return True
                doubtful = doubtful or what not in (_NEW_ELEMENT, _DELETE_ELEMENT)
        if not doubtful:
            return False
        return look() != self._known or not self._known

    def close(self) -> None:
        """Listen no more."""
        for one in (self._both, self._wire, self._routes):
            one.close()


def add_own(wire: socket, uid: int, port: int) -> None:
    """Let a user connect to a port that its own server listens on; what it meets there is looked at, too.

    Raises:
        OSError: where there is no such set any more, or no right.
    """
    _change_own(wire, _NEW_ELEMENT, NLM_F_CREATE, uid, (port,))


def forget_own(wire: socket, uid: int, ports: Iterable[int]) -> None:
    """Take such ports back; all of them are there.

    Raises:
        OSError: as above.
    """
    _change_own(wire, _DELETE_ELEMENT, 0, uid, ports)


def _change_own(wire: socket, what: int, flags: int, uid: int, ports: Iterable[int]) -> None:
    keys = [struct.pack("=I", uid) + port.to_bytes(2, "big") + bytes(2) for port in ports]
    # NFTA_LIST_ELEM, NFTA_SET_ELEM_KEY, NFTA_DATA_VALUE
    elements = b"".join(nest(1, nest(1, attribute(1, key))) for key in keys)
    body = nft.netfilter_header(nft.INET) + text(1, TABLE) + text(2, OWN) + nest(3, elements)
    change = Message(f"ports of uid {uid}", _SUBSYSTEM << 8 | what, NLM_F_ACK | flags, body)
    netlink.transact(wire, nft.transaction([change]))


def look() -> bytes:
    """The table, its chains and rules, as the kernel lists them; b'' where there is none, or it cannot be read."""
    try:
        wire = netlink.connect(netlink.NETLINK_NETFILTER)
    except OSError:
        return b""
    try:
        return b"".join(body for what in (_GET_TABLE, _GET_CHAIN, _GET_RULE) for body in _list(wire, what))
    except OSError:
        return b""
    finally:
        wire.close()


def _list(wire: socket, what: int) -> Iterator[bytes]:
    wire.send(Message("a list", _SUBSYSTEM << 8 | what, _DUMP, nft.netfilter_header(nft.INET)).packed(what))
    while True:
        for kind, body in _messages(wire.recv(_LARGEST)):
            if kind == _DONE:
                return
            if kind == _ERROR:
                (code,) = struct.unpack_from("=i", body)
                raise OSError(-code, os.strerror(-code), "a list of nftables")
            if _is_ours(body):
                yield body[4:]  # without struct nfgenmsg, which has the generation


def _heard(wire: socket) -> Iterator[bytes]:
    """What a socket has now; b"" where something was lost (ENOBUFS), or where it can be read no more."""
    while True:
        try:
            data = wire.recv(_LARGEST, MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError as error:
            yield b""
            if error.errno != errno.ENOBUFS:
                return
            continue
        yield data


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    for kind, _sequence, start, end in netlink.split(data):
        yield kind, data[start:end]


def _is_ours(body: bytes) -> bool:
    """Whether a message is about our table: its name is the first attribute in each."""
    return body[4:].startswith(text(1, TABLE)) and body[0] == nft.INET


def _is_of(body: bytes, name: str) -> bool:
    return text(2, name) in body[:64]
