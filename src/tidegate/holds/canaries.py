"""Listeners of this machine that no task may reach, open while a task is being proven (HLD-11).

They are made before the task's namespaces, so a probe inside knows where to knock: TCP and UDP over IPv4 and IPv6, on
loopback and on this machine's own addresses, a unix socket with a path and one with an abstract name, vsock where
there is a loopback for it. One that cannot be made (no IPv6) is left out. What arrives must carry this run's word,
so that a stranger's port scan stops nobody.
"""

from __future__ import annotations

import _socket
import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

AF_VSOCK = 40
VMADDR_CID_LOCAL = 1  # linux/vm_sockets.h
_NAME = "tidegate-canary."
# Only looked up in the routing table: connecting a datagram socket sends nothing. RFC 5737, RFC 3849.
_ELSEWHERE = ((_socket.AF_INET, "192.0.2.1"), (_socket.AF_INET6, "2001:db8::1"))
_LOOPBACK = ((_socket.AF_INET, "127.0.0.1"), (_socket.AF_INET6, "::1"))


class Canaries:
    """The open listeners. `targets` are (family, kind, address) to knock at; `word` is what to say."""

    def __init__(self, folders: Iterable[str], known: frozenset[int] = frozenset()) -> None:
        """Open them. `known` are ports that the task may reach here: by chance one of ours must not be among them."""
        self._known = known
        self.word = b"tidegate/canary/" + os.urandom(8).hex().encode()
        self.targets: list[tuple[int, int, object]] = []
        self._sockets: list[_socket.socket] = []
        self._heard: list[str] = []
        self._file = ""
        for family, address in (*_LOOPBACK, *own_addresses()):
            for kind in (_socket.SOCK_STREAM, _socket.SOCK_DGRAM):
                self._add(family, kind, (address, 0))
        self._add(_socket.AF_UNIX, _socket.SOCK_STREAM, b"\0" + self.word)
        self._add(AF_VSOCK, _socket.SOCK_STREAM, (VMADDR_CID_LOCAL, 0xFFFFFFFF))
        for folder in folders:
            if self._add_path(folder):
                break

    def heard(self) -> list[str]:
        """Which canaries this run's word has reached, by name. Never blocks."""
        poll = select.poll()
        by_descriptor = {wire.fileno(): wire for wire in self._sockets}
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN)
        for descriptor, _events in poll.poll(0):
            wire = by_descriptor[descriptor]
            if self._said(wire):
                self._heard.append(_name(wire))
        return self._heard

    def close(self) -> None:
        """Close all of them and remove the one with a path."""
        for wire in self._sockets:
            wire.close()
        self._sockets = []
        if self._file:
            _unlink(self._file)
            self._file = ""

    def _add(self, family: int, kind: int, address: object) -> bool:
        try:
            wire = _socket.socket(family, kind | _socket.SOCK_CLOEXEC | _socket.SOCK_NONBLOCK)
        except OSError:
            return False
        try:
            wire.bind(address)  # type: ignore[arg-type]
            if kind == _socket.SOCK_STREAM:
                wire.listen(16)
            name = wire.getsockname()
            if family in (_socket.AF_INET, _socket.AF_INET6) and name[1] in self._known:
                wire.close()
                return self._add(family, kind, address)
            self.targets.append((family, kind, name))
        except OSError:
            wire.close()
            return False
        self._sockets.append(wire)
        return True

    def _add_path(self, folder: str) -> bool:
        try:
            names = os.listdir(folder)
        except OSError:
            return False
        for name in names:
            if name.startswith(_NAME) and not _alive(name.removeprefix(_NAME)):
                _unlink(os.path.join(folder, name))  # left by a run that was killed
        path = os.path.join(folder, f"{_NAME}{os.getpid()}")
        _unlink(path)
        if self._add(_socket.AF_UNIX, _socket.SOCK_STREAM, path):
            self._file = path
            return True
        return False

    def _said(self, wire: _socket.socket) -> bool:
        """Whether something waiting at this socket is our word: a connection that says it, or a datagram."""
        if wire.type & _socket.SOCK_DGRAM:
            while said := _received(wire):
                if said == self.word:
                    return True
            return False
        while True:
            try:
                descriptor, _from = wire._accept()  # type: ignore[attr-defined]  # noqa: SLF001 (the bare socket has no other)
            except OSError:
                return False
            connection = _socket.socket(fileno=descriptor)
            connection.setblocking(False)
            said = _received(connection)
            connection.close()
            if said == self.word:
                return True


def _received(wire: _socket.socket) -> bytes:
    try:
        return wire.recv(64)
    except OSError:
        return b""


def own_addresses() -> list[tuple[int, str]]:
    """The addresses this machine would use towards the rest of the world."""
    found = []
    for family, elsewhere in _ELSEWHERE:
        try:
            wire = _socket.socket(family, _socket.SOCK_DGRAM | _socket.SOCK_CLOEXEC)
        except OSError:
            continue
        try:
            wire.connect((elsewhere, 9))
            address = wire.getsockname()[0]
        except OSError:
            continue
        finally:
            wire.close()
        if (family, address) not in _LOOPBACK:
            found.append((family, address))
    return found


def _name(wire: _socket.socket) -> str:
    kind = "udp" if wire.type & _socket.SOCK_DGRAM else "tcp"
    address = wire.getsockname()
    if wire.family == _socket.AF_UNIX:
        return f"unix {address!r}"
    return f"{'vsock' if wire.family == AF_VSOCK else kind} {address[0]} port {address[1]}"


def _alive(pid: str) -> bool:
    return pid.isdigit() and os.path.exists(f"/proc/{pid}")


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
