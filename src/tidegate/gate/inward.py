"""Sockets of a task's network namespace, as many as are wanted, made by a gate that stands outside it (HLD-10).

A socket belongs for life to the namespace it was made in, and one that comes out of accept(2) to its listener's. So
two sockets that the hold made inside (`moulds`) are enough: one listens for an instant, the other connects to it, and
what is accepted is cut loose (connect(2) to AF_UNSPEC) and free to connect anywhere *inside*. The two are cut loose as
well, and ready for the next.

Why so: entering the namespace would need rights that an ordinary user's gate must not have; a helper inside would be a
process that a task may try to fool, and one more that can end. Here nothing lives on in the namespace, no port of it
is taken for longer than an instant, and no right is needed.

What it does not do: nothing made here can leave the namespace, and nobody inside is given any of it. A task that
connects in that instant gets a reset.
"""

from __future__ import annotations

import _socket
from _socket import AF_INET
from ctypes import CDLL, get_errno
from errno import EADDRNOTAVAIL, EINPROGRESS, EISCONN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

STRANGERS = 8  # of a task, in the queue before ours; a listener that is listening for an instant has seldom one
_NOWHERE = bytes(16)  # struct sockaddr with AF_UNSPEC
_LOOPBACK = {AF_INET: "127.0.0.1"}
_libc = CDLL(None, use_errno=True)


class Inward:
    """The moulds of one task: two unbound TCP sockets of each family that its namespace has. Owns them.

    `users` are who still makes sockets of them; the last to leave closes them.
    """

    __slots__ = ("_moulds", "users")

    def __init__(self, descriptors: Sequence[int]) -> None:
        """Take them over.

        Raises:
            OSError: when one of them is no socket; what was not taken over is still the caller's.
        """
        self.users = 0
        self._moulds: dict[int, list[_socket.socket]] = {}
        for descriptor in descriptors:
            sock = _socket.socket(fileno=descriptor)
            sock.setblocking(False)
            self._moulds.setdefault(sock.family, []).append(sock)

    def socket(self, family: int) -> _socket.socket:
        """Return a fresh TCP socket of the task's namespace, non-blocking.

        Raises:
            OSError: where its network has no such family, or nothing is left to make one of.
        """
        moulds = self._moulds.get(family, [])
        if len(moulds) < 2:
            raise OSError(EADDRNOTAVAIL, "the task's network has no such family")
        listener, caller = moulds
        try:
            listener.bind((_LOOPBACK.get(family, "::1"), 0))
            listener.listen(STRANGERS)
            address = listener.getsockname()
            number = caller.connect_ex(address)
            if number == EINPROGRESS:
                number = caller.connect_ex(address)
            if number not in (0, EISCONN):
                raise OSError(number, "the task's loopback does not answer")
            return self._cast(listener, caller.getsockname())
        finally:
            _cut_loose(listener)
            _cut_loose(caller)

    def _cast(self, listener: _socket.socket, wanted: object) -> _socket.socket:
        for _ in range(STRANGERS + 1):
            descriptor, peer = listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001 - see listener.py
            sock = _socket.socket(fileno=descriptor)
            if peer == wanted:
                sock.setblocking(False)
                _cut_loose(sock)
                return sock
            sock.close()
        raise OSError(EADDRNOTAVAIL, "strangers were in the way")

    def leave(self) -> None:
        """One user less."""
        self.users -= 1
        if not self.users:
            self.close()

    def close(self) -> None:
        """Close the moulds."""
        for moulds in self._moulds.values():
            for mould in moulds:
                mould.close()
        self._moulds.clear()


def _cut_loose(sock: _socket.socket) -> None:
    if _libc.connect(sock.fileno(), _NOWHERE, len(_NOWHERE)):
        raise OSError(get_errno(), "a socket cannot be cut loose")
