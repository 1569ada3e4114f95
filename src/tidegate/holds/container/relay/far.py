"""The relay on a network of the engine, which carries what comes to the listener of another machine, over TLS."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress

from tidegate.holds.container.relay.ends import Framed, listen_unix
from tidegate.holds.container.relay.pairs import Caller, Door, Loop
from tidegate.holds.container.relay.words import (
    AGAIN,
    AUTHORITY,
    CERTIFICATE,
    FRAMED,
    MOST,
    NAMES,
    SERVER_NAME,
    CutError,
    alone,
    say,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from tidegate.holds.container.relay.ends import Plain


class Far:
    """The relay on a network of the engine, which alone has the certificate."""

    def __init__(self, folder: str, host: str, port: int, keys: str) -> None:
        import ssl

        self.loop = Loop()
        self._host, self._port = host, port
        self._address: tuple[int, tuple[str, int]] | None = None
        self._left = time.monotonic()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_verify_locations(os.path.join(keys, AUTHORITY))
        context.load_cert_chain(os.path.join(keys, CERTIFICATE))
        self._context = context
        self._doors = [
            (_FramedDoor if kind in FRAMED else Door)(
                self.loop, listen_unix(os.path.join(folder, name)), kind, self.dial
            )
            for kind, name in NAMES.items()
        ]
        say("tidegate-relay 1 listening")

    def dial(self, kind: bytes, name: bytes) -> Framed:
        """Return a connection to the listener; it is open later. `name` is where a captured one was going.

        Raises:
            OSError: when it cannot even be tried.
        """
        if self._address is None:
            found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)  # noqa: TID251 - not a task's
            self._address = found[0][0], (str(found[0][4][0]), self._port)
        family, address = self._address
        raw = socket.socket(family, socket.SOCK_STREAM)
        try:
            raw.setblocking(False)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            with suppress(BlockingIOError):
                raw.connect(address)
        except OSError:
            raw.close()
            self._address = None
            raise
        return Framed(raw, self._wrap, kind + name)

    def _wrap(self, raw: socket.socket) -> ssl.SSLSocket:
        return self._context.wrap_socket(raw, server_hostname=SERVER_NAME, do_handshake_on_connect=False)

    def look(self) -> float:
        """Return for how many seconds nothing has led to an owner."""
        if any(getattr(pair, "is_open", False) for pair in self.loop.pairs):
            self._left = time.monotonic()
        return time.monotonic() - self._left


class _FramedDoor(Door):
    """One whose callers say in a frame what they want, so that what was cut differs from what has ended."""

    def enter(self, sock: socket.socket) -> None:
        """Have it say so."""
        if len(self.loop.pairs) >= MOST:
            sock.close()
        else:
            _Near(self.loop, Framed(sock, None), self.kind, self.dial)


class _Near(Caller):
    """A connection of the relay beside the worker."""

    def __init__(self, loop: Loop, end: Framed, kind: bytes, dial: Callable[[bytes, bytes], Plain | Framed]) -> None:
        self._kind = kind
        self._dial = dial
        super().__init__(loop, end)

    def arrived(self, word: bytes) -> Plain | Framed:
        """Lead it to the listener.

        Raises:
            OSError: when it wants something else, or that cannot be tried.
        """
        if word[:1] != self._kind:
            raise CutError(0, "it wants what there is not")
        return self._dial(self._kind, word[1:])


def serve(relay: Far, grace: float) -> int:
    """Relay until there has been no owner for `grace` seconds."""
    while relay.look() <= grace:
        relay.loop.turn(AGAIN)
    return alone()
