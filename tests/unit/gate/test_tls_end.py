"""A TLS end is read and written like a socket: what is left is never mistaken for nothing."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import ssl
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.gate.kit import wait
from tests.unit.gate.peer import library
from tidegate.gate.reactor import ENDED, IN, Reactor
from tidegate.gate.tls_end import MOST_TOLD, RAW, TlsEnd
from tidegate.inspect.authority import Authority
from tidegate.inspect.terminate import Contexts
from tidegate.model.destination import Destination
from tidegate.model.host import canonical_host
from tidegate.policy.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Destination(canonical_host("a.test"), 443)


class _Nobody:
    def ready(self, _fd: int, _mask: int) -> None:
        pass

    def broken(self, _error: Exception) -> None:
        pass


class Pair:
    """An end of ours, and a client's TLS socket on the other side."""

    def __init__(self) -> None:
        authority = Authority(Scope(names=("a.test",)), "t", time.time)  # noqa: TID251
        contexts = Contexts(authority, "", time.time)  # noqa: TID251
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self.ours = ours
        self.reactor = Reactor(time.monotonic)
        self.reactor.watch(ours.fileno(), _Nobody())
        self.end = TlsEnd(self.reactor, ours, contexts.client(HERE, b""))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=b"".join(authority.certificates).decode())
        self.client = context.wrap_socket(theirs, server_hostname="a.test", do_handshake_on_connect=False)
        self.client.setblocking(False)
        done = [False, False]

        def step() -> bool:
            self.end.wake(IN)
            done[0] = done[0] or self.end.shake()
            try:
                self.client.do_handshake()
                done[1] = True
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass
            return all(done)

        wait(step)
        self.client.setblocking(True)

    def close(self) -> None:
        """Close all of it."""
        self.reactor.close()
        self.ours.close()
        self.client.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two ends after their handshake."""
    made = Pair()
    yield made
    made.close()


def test_a_short_read_has_emptied_it(pair: Pair) -> None:
    """GAT-5: many records at once, more than one read of the socket takes: each read is full, or the last."""
    pair.client.setblocking(False)
    sent = 0
    try:
        while sent < 1 << 20:
            sent += pair.client.send(bytes(5000))
    except (BlockingIOError, ssl.SSLWantWriteError):
        pass
    pair.end.wake(IN)
    sizes = []
    while True:
        try:
            sizes.append(len(pair.end.recv(7000)))
        except BlockingIOError:
            break
    assert sum(sizes) == sent
    assert set(sizes[:-1]) <= {7000}
    with pytest.raises(BlockingIOError):
        pair.end.recv(7000)


def test_into_a_buffer(pair: Pair) -> None:
    """GAT-5: recv_into gives the same bytes."""
    pair.client.sendall(b"hello")
    pair.end.wake(IN)
    buffer = bytearray(8)
    assert pair.end.recv_into(buffer, 8) == 5
    assert buffer[:5] == b"hello"


def test_what_waits_is_sent_when_the_socket_takes_it(pair: Pair) -> None:
    """GAT-5: bytes are encrypted once, and wait as such; nothing is lost or sent twice."""
    total = bytes(range(256)) * 20_000
    assert pair.end.outlet.send(total) is False
    assert pair.end.outlet.blocked
    got = bytearray()
    pair.client.settimeout(0.2)
    while len(got) < len(total):
        try:
            got += pair.client.recv(65536)
        except TimeoutError:
            pair.end.outlet.flush()
    assert bytes(got) == total
    assert pair.end.outlet.flush()


def test_an_announced_end_is_an_end(pair: Pair) -> None:
    """GAT-5: close_notify after data: the data, then b"" again and again, without the socket's own end."""
    pair.client.sendall(b"last")
    pair.client.setblocking(False)
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.unwrap()
    pair.end.wake(IN)
    assert pair.end.recv(100) == b"last"
    assert pair.end.ended
    assert pair.end.recv(100) == b""
    assert pair.end.recv(100) == b""


def test_our_end_is_announced(pair: Pair) -> None:
    """GAT-5: `finish` sends close_notify: the other side reads an end, not a cut."""
    pair.end.outlet.send(b"x")
    pair.end.outlet.finish()
    assert pair.client.recv(10) == b"x"
    assert pair.client.recv(10) == b""


def test_a_broken_record_is_an_error(pair: Pair) -> None:
    """INS-3: bytes that are no TLS break the connection, after what came before them."""
    pair.client.sendall(b"ok")
    raw = socket.socket(fileno=socket.socket.detach(pair.client))
    raw.sendall(b"not a record at all")
    raw.shutdown(socket.SHUT_WR)
    pair.end.wake(IN | ENDED)
    assert pair.end.recv(100) == b"ok"
    with pytest.raises(ssl.SSLError):
        pair.end.recv(100)
    raw.close()


class Speaker:
    """A client by OpenSSL itself, for what Python's `ssl` has no call: key updates that ask for one in return."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._lib = library()
        context = self._lib.SSL_CTX_new(ctypes.c_void_p(self._lib.TLS_client_method()))
        self._tls = ctypes.c_void_p(self._lib.SSL_new(ctypes.c_void_p(context)))
        self._lib.SSL_CTX_free(ctypes.c_void_p(context))
        self._lib.SSL_set_fd(self._tls, sock.fileno())
        self._lib.SSL_set_connect_state(self._tls)

    def shake(self) -> bool:
        """Go on with the handshake, or say what waits; True when it is done."""
        return bool(self._lib.SSL_do_handshake(self._tls) == 1)

    def update(self) -> None:
        """Send a key update that asks for one."""
        assert self._lib.SSL_key_update(self._tls, 1) == 1
        self._lib.SSL_do_handshake(self._tls)

    def gather(self, count: int) -> bytes:
        """Return so many key updates at once, in place of sending them."""
        lib = self._lib
        memory = ctypes.c_void_p(lib.BIO_new(ctypes.c_void_p(lib.BIO_s_mem())))
        lib.SSL_set0_wbio(self._tls, memory)
        for _ in range(count):
            self.update()
        room = ctypes.create_string_buffer(100 * count)
        size = lib.BIO_read(memory, room, 100 * count)
        return room.raw[:size]

    def listen(self) -> None:
        """Read what came."""
        self._lib.SSL_read(self._tls, ctypes.create_string_buffer(100), 100)

    def close(self) -> None:
        """Free it."""
        self._lib.SSL_free(self._tls)


@pytest.fixture
def spoken() -> Iterator[tuple[TlsEnd, Speaker]]:
    """An end of ours and such a client, after their handshake."""
    ours, theirs = socket.socketpair()
    reactor = Reactor(time.monotonic)
    for sock in (ours, theirs):
        sock.setblocking(False)
    reactor.watch(ours.fileno(), _Nobody())
    contexts = Contexts(Authority(Scope(names=("a.test",)), "t", time.time), "", time.time)  # noqa: TID251
    end = TlsEnd(reactor, ours, contexts.client(HERE, b""))
    speaker = Speaker(theirs)

    def step() -> bool:
        theirs_done = speaker.shake()
        end.wake(IN)
        return end.shake() and theirs_done

    wait(step)
    yield end, speaker
    speaker.close()
    reactor.close()
    ours.close()
    theirs.close()


def _flood(end: TlsEnd, speaker: Speaker, count: int, *, listens: bool) -> None:
    for _ in range(count):
        speaker.update()
        if listens:
            speaker.listen()
        end.wake(IN)
        with contextlib.suppress(BlockingIOError):
            end.recv(100)


def test_who_makes_tls_speak_and_does_not_listen_is_ended(spoken: tuple[TlsEnd, Speaker]) -> None:
    """GAT-5: key updates without end, none of whose answers is read, end the connection, and keep little waiting."""
    end, speaker = spoken
    with pytest.raises(OSError, match="asks more of TLS than it reads"):
        _flood(end, speaker, 100_000, listens=False)
    assert end.outlet.waiting <= 2 * MOST_TOLD


def test_who_asks_and_listens_is_not_ended(spoken: tuple[TlsEnd, Speaker]) -> None:
    """GAT-5: the neighbour: as many key updates whose answers are read go on, with nothing waiting."""
    end, speaker = spoken
    _flood(end, speaker, 5000, listens=True)
    assert not end.outlet.waiting


def test_who_says_a_lot_and_nothing_plain_is_ended(spoken: tuple[TlsEnd, Speaker]) -> None:
    """GAT-11: a read's worth of key updates, which would keep a turn for as long as they come, ends the connection."""
    end, speaker = spoken
    assert speaker.sock.send(speaker.gather(3000)) > RAW
    end.wake(IN)
    with pytest.raises(OSError, match="nothing of it plain"):
        end.recv(100)


def test_what_was_read_is_not_lost_to_an_alert_that_nobody_takes(pair: Pair) -> None:
    """GAT-5: data, a forged record and a closed socket in one: the data is told, and then what is wrong."""
    pair.client.sendall(b"last")
    os.write(pair.client.fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))
    pair.client.close()
    pair.end.wake(IN | ENDED)
    assert pair.end.recv(100) == b"last"
    assert pair.end.ended
    with pytest.raises((ssl.SSLError, ConnectionError)):
        pair.end.recv(100)


class Written:
    """An end of ours, and a client whose records are written down before they are sent, whole or in pieces."""

    def __init__(self) -> None:
        authority = Authority(Scope(names=("a.test",)), "t", time.time)  # noqa: TID251
        contexts = Contexts(authority, "", time.time)  # noqa: TID251
        ours, self.theirs = socket.socketpair()
        ours.setblocking(False)
        self.ours = ours
        self.reactor = Reactor(time.monotonic)
        self.reactor.watch(ours.fileno(), _Nobody())
        self.end = TlsEnd(self.reactor, ours, contexts.client(HERE, b""))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=b"".join(authority.certificates).decode())
        self.come, self.go = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = context.wrap_bio(self.come, self.go, server_hostname="a.test")
        for _ in range(4):
            with contextlib.suppress(ssl.SSLWantReadError):
                self.client.do_handshake()
            self.theirs.sendall(self.go.read())
            self.end.wake(IN)
            if self.end.shake():
                break
            self.come.write(self.theirs.recv(1 << 16))
        self.end.wake(IN)
        with pytest.raises(BlockingIOError):
            self.end.recv(1)

    def record(self, plain: bytes) -> bytes:
        """Return one record."""
        self.client.write(plain)
        return self.go.read()

    def close(self) -> None:
        """Close all of it."""
        self.reactor.close()
        self.ours.close()
        self.theirs.close()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 4)), min_size=1, max_size=8),
    st.lists(st.integers(0, 1 << 15), max_size=6),
    st.sampled_from((1, 7, 500, 3000, RAW)),
    st.booleans(),
)
def test_however_records_come_all_that_is_whole_is_read_and_no_more(
    sizes: list[tuple[int, int]], cuts: list[int], room: int, long: bool
) -> None:
    """GAT-5: whole records, parts and many at once; by the short way of one read and one record, and the long one."""
    made = Written()
    try:
        stream, ends, plain = b"", [], b""
        for size, seed in sizes:
            part = bytes((seed * 31 + at) % 251 for at in range(size))
            stream += made.record(part)
            plain += part
            ends.append((len(stream), len(plain)))
        got = b""
        at = 0
        for cut in [*sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]:
            made.theirs.sendall(stream[at:cut])
            at = cut
            made.end.wake(IN)
            full = True
            while True:
                if long:
                    made.end._clean = False  # the way that every read took once
                try:
                    data = made.end.recv(room)
                except BlockingIOError:
                    break
                assert full, "a short read was not the last"
                full = len(data) == room
                got += data
            assert got == plain[: max([told for sealed, told in ends if sealed <= cut], default=0)]
    finally:
        made.close()
