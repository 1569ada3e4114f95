"""TLS by OpenSSL itself, for what Python's `ssl` has no call: the games that a destination's or a client's may play.

    with playing(lab, chain, script, version=0x0303) as played:
        ...
    def script(peer: Peer) -> None:
        peer.read(); peer.write(GOOD); peer.cut()

Each connection runs the script in a thread of its own, after its handshake. `played` says which of them had one.

    client = Peer(library(), calling(extension=(0xFE0D, b"...")), sock, calls="a.test")
"""

from __future__ import annotations

import _ssl
import contextlib
import ctypes
import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.lab.api import Lab

_POINTERS = ("TLS_server_method", "TLS_client_method", "SSL_CTX_new", "SSL_new", "BIO_s_mem", "BIO_new")
_SELECT = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_ubyte),
    ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p,
)  # fmt: skip
_MIN, _MAX, _SET_NAME = 123, 124, 55  # SSL_CTRL_SET_*_PROTO_VERSION, SSL_CTRL_SET_TLSEXT_HOSTNAME
_ANY_STRENGTH = b"DEFAULT:@SECLEVEL=0"
_ADD = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_int), ctypes.c_void_p,
)  # fmt: skip
_NAMED = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int), ctypes.c_void_p)
_SET_NAME_CALLBACK = 53  # SSL_CTRL_SET_TLSEXT_SERVERNAME_CB
NAME_WARNING, NAME_FATAL = 1, 2  # SSL_TLSEXT_ERR_ALERT_*
_LIVING: list[object] = []  # what OpenSSL calls
PEM = 1
VERIFY_PEER, FAIL_IF_NO_CERT = 1, 2


def library() -> ctypes.CDLL:
    """The OpenSSL that Python is linked with, found through its module."""
    lib = ctypes.CDLL(_ssl.__file__)
    for name in _POINTERS:
        getattr(lib, name).restype = ctypes.c_void_p
    return lib


class Peer:
    """One connection: a server's, or a client's that `calls` a host."""

    def __init__(self, lib: ctypes.CDLL, context: ctypes.c_void_p, sock: socket.socket, calls: str = "") -> None:
        self.lib = lib
        self.sock = sock
        self.tls = ctypes.c_void_p(lib.SSL_new(context))
        lib.SSL_set_fd(self.tls, sock.fileno())
        if calls:
            lib.SSL_ctrl(self.tls, _SET_NAME, 0, calls.encode())
            lib.SSL_set_connect_state(self.tls)
        else:
            lib.SSL_set_accept_state(self.tls)

    def shake(self) -> bool:
        """Shake hands; also for what was asked for meanwhile."""
        return bool(self.lib.SSL_do_handshake(self.tls) == 1)

    def read(self, most: int = 65536) -> bytes:
        """Read once; b"" at the end, however it came."""
        room = ctypes.create_string_buffer(most)
        size = self.lib.SSL_read(self.tls, room, most)
        return room.raw[: max(size, 0)]

    def write(self, data: bytes) -> None:
        """Write plain bytes."""
        self.lib.SSL_write(self.tls, data, len(data))

    def gathered(self, *writes: bytes, then: Callable[[], None] | None = None) -> bytes:
        """Return the records of these writes, and of what `then` says, in place of sending them."""
        lib = self.lib
        memory = ctypes.c_void_p(lib.BIO_new(ctypes.c_void_p(lib.BIO_s_mem())))
        lib.SSL_set0_wbio(self.tls, memory)
        for data in writes:
            self.write(data)
        if then is not None:
            then()
        room = ctypes.create_string_buffer(1 << 22)
        size = lib.BIO_read(memory, room, 1 << 22)
        return room.raw[: max(size, 0)]

    def update(self, *, asks: bool = True) -> None:
        """Send a key update of TLS 1.3, one that asks for another."""
        self.lib.SSL_key_update(self.tls, int(asks))
        self.lib.SSL_do_handshake(self.tls)

    def ticket(self) -> None:
        """Send one more session ticket."""
        self.lib.SSL_new_session_ticket(self.tls)
        self.lib.SSL_do_handshake(self.tls)

    def ask_again(self) -> bool:
        """Ask for another handshake of TLS 1.2, as to get a certificate; whether it came about."""
        self.lib.SSL_renegotiate(self.tls)
        self.lib.SSL_do_handshake(self.tls)
        return bool(self.read())

    def ask_for_certificate(self) -> bool:
        """Ask for a certificate after the handshake of TLS 1.3; False where the client did not offer that."""
        self.lib.SSL_set_verify(self.tls, VERIFY_PEER | FAIL_IF_NO_CERT, None)
        return bool(self.lib.SSL_verify_client_post_handshake(self.tls))

    def finish(self) -> None:
        """Say that this is the end (close_notify)."""
        self.lib.SSL_shutdown(self.tls)

    def cut(self) -> None:
        """End the connection without saying so."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)


def _bound(lib: ctypes.CDLL, context: ctypes.c_void_p, versions: tuple[int, int] | None) -> None:
    if versions is not None:
        for command, version in zip((_MIN, _MAX), versions, strict=True):
            lib.SSL_CTX_ctrl(context, command, version, None)


def calling(*, versions: tuple[int, int] | None = None, extension: tuple[int, bytes] | None = None) -> ctypes.c_void_p:
    """A client's context, which verifies nothing. `extension` goes into its hello, as it is."""
    lib = library()
    context = ctypes.c_void_p(lib.SSL_CTX_new(ctypes.c_void_p(lib.TLS_client_method())))
    _bound(lib, context, versions)
    if extension is not None:
        kind, data = extension
        kept = ctypes.create_string_buffer(data, len(data))

        @_ADD
        def add(_tls: int, _kind: int, out: object, size: object, _alert: object, _more: int) -> int:
            ctypes.memmove(out, ctypes.byref(ctypes.c_void_p(ctypes.addressof(kept))), ctypes.sizeof(ctypes.c_void_p))
            size[0] = len(data)  # type: ignore[index]
            return 1

        _LIVING.extend((add, kept))
        if lib.SSL_CTX_add_client_custom_ext(context, kind, add, None, None, None, None) != 1:
            import pytest

            pytest.skip(f"this OpenSSL sends extension {kind} by itself")
    return context


@contextlib.contextmanager
def playing(
    lab: Lab,
    folder: Path,
    chain: str,
    script: Callable[[Peer], None],
    *,
    selects: bytes | None = None,
    versions: tuple[int, int] | None = None,
    certificate: int = 0,
    knows: int | None = None,
) -> Iterator[list[str]]:
    """Serve at 1.2.3.4:443, and yield what it met.

    `selects` is the protocol that it names whatever was offered; `knows` what it says to any name: NAME_WARNING, which
    is none to TLS 1.3, or NAME_FATAL.
    """
    lib = library()
    (folder / "peer.pem").write_text(chain)
    path = str(folder / "peer.pem").encode()
    context = ctypes.c_void_p(lib.SSL_CTX_new(ctypes.c_void_p(lib.TLS_server_method())))
    lib.SSL_CTX_set_cipher_list(context, _ANY_STRENGTH)
    assert lib.SSL_CTX_use_certificate_chain_file(context, path) == 1
    assert lib.SSL_CTX_use_PrivateKey_file(context, path, PEM) == 1
    _bound(lib, context, versions)
    if certificate:
        lib.SSL_CTX_set_verify(context, certificate, None)
    kept = ctypes.create_string_buffer(selects or b"")

    @_SELECT
    def select(_tls: int, out: object, size: object, _offered: int, _count: int, _more: int) -> int:
        assert selects is not None, "it is set for that alone"
        ctypes.memmove(out, ctypes.byref(ctypes.c_void_p(ctypes.addressof(kept))), ctypes.sizeof(ctypes.c_void_p))
        size[0] = len(selects)  # type: ignore[index]
        return 0

    if selects is not None:
        lib.SSL_CTX_set_alpn_select_cb(context, select, None)
    named = _NAMED(lambda _tls, _alert, _more: knows or 0)
    if knows is not None:
        lib.SSL_CTX_callback_ctrl(context, _SET_NAME_CALLBACK, named)
    listener = lab.listener("1.2.3.4", 443)
    met: list[str] = []
    threads: list[threading.Thread] = []

    def serve(sock: socket.socket) -> None:
        sock.settimeout(None)
        peer = Peer(lib, context, sock)
        if peer.shake():
            met.append("shaken")
            with contextlib.suppress(ConnectionError):  # a reset: the gate left, with something of it unread
                script(peer)
        else:
            met.append("not shaken")
        lib.SSL_free(peer.tls)
        sock.close()

    def run() -> None:
        while True:
            try:
                sock = listener.accept()[0]
            except OSError:
                return
            threads.append(threading.Thread(target=serve, args=(sock,), daemon=True))
            threads[-1].start()

    accepting = threading.Thread(target=run, daemon=True)
    accepting.start()
    try:
        yield met
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join()
        for one in threads:
            one.join(20)
        lib.SSL_CTX_free(context)
