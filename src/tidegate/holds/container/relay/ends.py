"""One end of a connection: a plain socket, or one that speaks in frames, over TLS or not (see __init__.py)."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress

from tidegate.holds.container.relay.words import OPEN, PIECE, RESET, CutError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable


class Plain:
    """One end of a connection without TLS."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.fd = sock.fileno()

    def is_ready(self) -> bool:
        """Whether bytes can flow."""
        return True

    def owes(self) -> bool:
        """Whether it has taken bytes that it has not sent."""
        return False

    def read(self) -> bytes | None:
        """Return what came, b'' at the end of the direction, None where nothing is there yet."""
        try:
            return self.sock.recv(PIECE)
        except BlockingIOError:
            return None

    def write(self, data: bytearray) -> int:
        """Take some of the bytes and return how many, -1 where nobody reads them any more."""
        try:
            return self.sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            return -1

    def end(self) -> bool:
        """Pass on the end of a direction; False where it has to be tried again."""
        with suppress(OSError):  # it has gone already
            self.sock.shutdown(socket.SHUT_WR)
        return True

    def close(self, *, cut: bool) -> None:
        """Close it; `cut` resets it, where the family knows that."""
        if self.sock.family != socket.AF_UNIX:
            with suppress(OSError):
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET if cut else bytes(8))
        self.sock.close()


class Framed:
    """One end of a connection in frames: it is connected, shakes hands where it speaks TLS, and says what it wants.

    `raw` is connecting or connected; `wrap` makes it speak TLS, without a handshake; without one it does not. `wanted`
    is what the side that calls wants. The side that was called reads that with `word`, and says `open` once it can be
    had.
    """

    def __init__(
        self, raw: socket.socket, wrap: Callable[[socket.socket], ssl.SSLSocket] | None, wanted: bytes = b""
    ) -> None:
        raw.setblocking(False)
        self.fd = raw.fileno()
        self.sock = raw
        self._connected = False
        self._tls: ssl.SSLSocket | None = None
        self._shaken = False
        self._open = False
        self._wrap = wrap
        self._in = bytearray()
        self._out = bytearray(_frame(wanted) if wanted else b"")
        self._later: tuple[type[OSError], ...] = (BlockingIOError,)
        if wrap is not None:
            import ssl

            self._later = (ssl.SSLWantReadError, ssl.SSLWantWriteError)

    def is_ready(self) -> bool:
        """Go on with what comes before the bytes; whether they can flow.

        Raises:
            OSError: when it cannot be connected, or is not who it should be.
        """
        if not self._open:
            word = self.word()
            if word is None:
                return False
            if word != OPEN:
                raise CutError(errno.EPROTO, "the other side speaks something else")
            self._open = True
        return True

    def word(self) -> bytes | None:
        """Return the first frame of the other side, None where it has not come yet.

        Raises:
            OSError: when it cannot be connected, the handshake fails, or the other side leaves.
        """
        try:
            if not self._connected:
                _raise_error_of(self.sock)
                self._connected = True
                if self._wrap is not None:
                    self._tls = self.sock = self._wrap(self.sock)  # takes the descriptor over
            if self._tls is not None and not self._shaken:
                self._tls.do_handshake()
                self._shaken = True
            self._flush()
            return self._frame()
        except BlockingIOError:
            return None
        except self._later:
            return None

    def open(self) -> None:
        """Tell the caller that it is connected."""
        self._out += _frame(OPEN)
        self._open = True

    def peer(self) -> bytes | None:
        """Return the certificate that the other side has shown, as DER, once hands were shaken."""
        return self._tls.getpeercert(binary_form=True) if self._tls is not None and self._shaken else None

    def owes(self) -> bool:
        """Whether it has taken bytes that it has not sent."""
        return bool(self._out)

    def read(self) -> bytes | None:
        """Return what came, b'' at the end of the direction, None where nothing is there yet.

        Raises:
            CutError: when the connection ended without saying that the direction does.
        """
        try:
            return self._frame()
        except self._later:
            return None

    def _frame(self) -> bytes | None:
        # That the rest of it is still to come is told by the error that TLS has for it.
        held = self._in
        while len(held) < 2 or len(held) < 2 + (held[0] << 8 | held[1]):
            data = self.sock.recv(PIECE)
            if not data:
                raise CutError(errno.ECONNRESET, "cut")
            held += data
        size = held[0] << 8 | held[1]
        data = bytes(held[2 : 2 + size])
        del held[: 2 + size]
        return data

    def write(self, data: bytearray) -> int:
        """Take some of the bytes and return how many.

        Raises:
            OSError: when the connection is no more.
        """
        if not self._flush():
            return 0
        taken = bytes(data[: PIECE - 2])
        self._out += _frame(taken)
        self._flush()
        return len(taken)

    def _flush(self) -> bool:
        while self._out:
            try:
                sent = self.sock.send(self._out)
            except self._later:
                return False
            del self._out[:sent]
        return True

    def end(self) -> bool:
        """Pass on the end of a direction; False where it has to be tried again."""
        if not self._flush():
            return False
        self._out += _frame(b"")
        self._flush()
        return True

    def flush(self) -> None:
        """Go on with what is still to be sent."""
        if self._open:
            self._flush()

    def close(self, *, cut: bool) -> None:  # noqa: ARG002 - whoever reads frames sees whether all came
        """Close it."""
        self.sock.close()


def _frame(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


def _raise_error_of(sock: socket.socket) -> None:
    """See how a connection that was begun goes.

    Raises:
        BlockingIOError: while it is on its way.
        OSError: when it failed.
    """
    error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if error:
        raise OSError(error, os.strerror(error))
    try:
        sock.getpeername()
    except OSError:
        raise BlockingIOError from None


def connect_unix(path: str, name: bytes = b"") -> socket.socket:
    """Return a connection to a unix socket. `name` is what whoever accepts it sees its end called.

    Raises:
        OSError: when nobody is there, or the queue is full.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        if name:
            sock.bind(name)
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return sock


def listen_unix(path: str) -> socket.socket:
    """Return a listening socket in the place of one that a relay before this one left.

    Raises:
        OSError: when it cannot be made.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with suppress(FileNotFoundError):
        os.unlink(path)
    sock.bind(path)
    os.chmod(path, 0o666)  # noqa: S103 - who may come near is said by the folder
    sock.listen(128)
    return sock
