"""A task's first key, made by a child of its gate while that waits for its order (INS-1; docs/decisions/0018).

libcrypto would leave 5 MB in each gate for a key and two signatures. The child has it for as long as the start takes.
Its key goes to the gate by a pair of sockets that only the two have, and with the child. Where the child is lost, the
gate makes a key itself.
"""

from __future__ import annotations

import os
from _socket import AF_UNIX, SOCK_CLOEXEC, SOCK_STREAM, socketpair

from tidegate.runtime.channel import ChannelClosedError, receive, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import NoReturn

    from tidegate.inspect.first_key import Key


class EarlyKey:
    """What inspect.first_key.Key is. To be made before there is a thread, and closed when the roots are signed."""

    __slots__ = ("_child", "_made", "_own", "_wire")

    def __init__(self, channel: socket) -> None:
        """`channel` leads to the front, which must not wait for the child when the gate ends."""
        self._wire, theirs = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)
        self._made: tuple[bytes, bytes] | None = None
        self._own: Key | None = None
        self._child = os.fork()
        if self._child == 0:
            self._wire.close()
            channel.close()
            _serve(theirs)
        theirs.close()

    @property
    def private(self) -> bytes:
        """The key as DER."""
        return self._both()[0]

    @property
    def point(self) -> bytes:
        """The public key as an uncompressed point."""
        return self._both()[1]

    def sign(self, data: bytes) -> bytes:
        """Return the signature of the data, as DER.

        Raises:
            ChannelClosedError: where the process that has the key ended first.
        """
        made = self._both()
        if self._own is None:
            try:
                send(self._wire, data)
                signature: bytes = receive(self._wire)[0]
            except ChannelClosedError:
                # What was made is given up: a signature by another key under the same name would be worth nothing.
                raise ChannelClosedError(f"the key of {len(made[1])} bytes was lost while it signed") from None
            return signature
        return self._own.sign(data)

    def let_go(self) -> None:
        """Let the child end, and do not wait for that."""
        self._wire.close()

    def close(self) -> None:
        """Let the child end, and wait for it. Later calls do nothing."""
        if self._child:
            self.let_go()
            os.waitpid(self._child, 0)
            self._child = 0

    def _both(self) -> tuple[bytes, bytes]:
        if self._made is None:
            try:
                private, point = receive(self._wire)[0]
                self._made = (private, point)
            except ChannelClosedError:
                from tidegate.inspect.first_key import Key

                self._own = Key()
                self._made = (self._own.private, self._own.point)
        return self._made


def _serve(wire: socket) -> NoReturn:
    try:
        from tidegate.inspect.first_key import Key

        key = Key()
        send(wire, (key.private, key.point))
        while True:
            send(wire, key.sign(receive(wire)[0]))
    except BaseException:  # noqa: BLE001  the gate goes on without it
        os._exit(1)
