"""The relay: what stands between a worker's loopback and the gate's socket, in a container of its own (HLD-4).

    relay.py worker FOLDER PORT GRACE          127.0.0.1:PORT -> FOLDER/gate.sock
    relay.py far FOLDER HOST:PORT KEYS GRACE   FOLDER/gate.sock -> mutual TLS to HOST:PORT, with what is in KEYS
    relay.py check FOLDER                      exit 0 where FOLDER/gate.sock can be connected to, 1 where it cannot
    relay.py ask PORT REQUEST                  what is answered to an HTTP request on 127.0.0.1:PORT: its first line

Beside gate.sock lies life.sock: the worker's relay keeps one connection to it, through all that is between, and gives
back what comes. Whoever owns the task sees there that a relay has ended or was stopped, and the relays that their owner
has: then all connections are cut at once, nobody is let in, and after GRACE seconds they end. READY on standard output
says that the whole way is open. An owner that beats (OPEN, again and again) and falls silent counts as gone until it
beats again; one that says SHUT, since the gate does not answer, has nobody let in until it says OPEN.

The worker's relay is two processes: one moves the bytes, and the container's first looks after it. Where the one that
moves was stopped, it is killed, which resets what is open, and there is another in a moment. Stopped alone, the first
is missed by nobody.

This file runs by itself, in whatever Python an image has (3.8 or later); that is why it imports nothing of ours and is
one file of more than 400 lines. Rules:

* Bytes are moved and never read. Each direction has one buffer of `ROOM` bytes; what is full is not read from.
* The end of one direction is passed on and the other goes on. A connection that breaks is reset on both sides.
* Over TLS each direction is cut into frames (two bytes of length, then so many bytes; none says that it has ended),
  so that an end which was sent and one that merely happened differ. The first frame of the caller says what is wanted
  (GATE or LIFE); what the other side answers with, once it has connected that, is OPEN.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from typing import Protocol

    class Handler(Protocol):
        """What owns a watched descriptor."""

        def ready(self, fd: int, mask: int, /) -> None:
            """Something may have happened on it."""

    class Held(Protocol):
        """A connection, or what becomes one."""

        deadline: float | None

        def ready(self, fd: int, mask: int, /) -> None:
            """Something may have happened on it."""

        def close(self, *, cut: bool) -> None:
            """Close it."""


GATE, LIFE, OPEN, SHUT = b"G", b"L", b"+", b"-"
NAMES = {GATE: "gate.sock", LIFE: "life.sock"}
CERTIFICATE, AUTHORITY = "task.pem", "ca.pem"
READY = "tidegate-relay 1 ready"
SERVER_NAME = "gate.tidegate.internal"  # what the listener's certificate is for, whatever name it is reached by
ROOM = 1 << 16
PIECE = 1 << 14  # what one TLS record holds
MOST = 512  # connections at once; the gate takes half of that
PATIENCE = 10.0  # seconds to be connected
LINGER = 5.0  # seconds for a side that still sends to read the last answer
AGAIN = 0.5  # seconds between tries for the owner, and between signs of life of who moves
STOPPED = 2.0  # seconds without such a sign after which it was stopped
PAUSE = 0.2  # seconds at least between such signs, and before another one moves
MOVED, FAILED, IDLE = 0, 1, 4
"""How who moves ends by itself: its owner has left, it could not begin, or who connected never said that it is one."""
SILENT = 5.0  # seconds without a beat of an owner that beats
ROUNDS = 16  # reads of one connection before the others have their turn
RESET = b"\1\0\0\0\0\0\0\0"  # struct linger: at once
IN = select.EPOLLIN
EDGES = select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET  # each is told once: move what can be


class CutError(OSError):
    """The other side went away in the midst, or is not what it should be."""


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
    """One end of a connection over TLS: it is connected, shakes hands, and speaks in frames.

    `raw` is connecting or connected; `wrap` makes it speak TLS, without a handshake. `wanted` is what the side that
    calls wants. The side that was called reads that with `word`, and says `open` once it can be had.
    """

    def __init__(self, raw: socket.socket, wrap: Callable[[socket.socket], ssl.SSLSocket], wanted: bytes = b"") -> None:
        import ssl

        raw.setblocking(False)
        self.fd = raw.fileno()
        self.sock = raw
        self._tls: ssl.SSLSocket | None = None
        self._shaken = False
        self._open = False
        self._wrap = wrap
        self._in = bytearray()
        self._out = bytearray(_frame(wanted) if wanted else b"")
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
            if self._tls is None:
                _raise_error_of(self.sock)
                self._tls = self.sock = self._wrap(self.sock)  # takes the descriptor over
            if not self._shaken:
                self._tls.do_handshake()
                self._shaken = True
            self._flush()
            return self._frame()
        except (*self._later, BlockingIOError):
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


class _Way:
    """One direction. Where nobody reads any more, what still comes is dropped, so that an answer is not lost by it."""

    __slots__ = ("_dropped", "buffer", "ended", "over", "sink", "source")

    def __init__(self, source: Plain | Framed, sink: Plain | Framed) -> None:
        self.source = source
        self.sink = sink
        self.buffer = bytearray()
        self.ended = False  # the source has
        self.over = False  # and the sink knows, or reads no more
        self._dropped = False

    def move(self) -> bool:
        """Move what can be moved now; whether that was anything.

        Raises:
            OSError: when the connection is broken.
        """
        moved = False
        if self.buffer:
            taken = self.sink.write(self.buffer)
            if taken < 0:
                self._dropped = self.over = True
                self.buffer.clear()
            else:
                del self.buffer[:taken]
            moved = taken != 0
        if not self.ended and len(self.buffer) < ROOM:
            data = self.source.read()
            if data is not None:
                moved = True
                self.ended = not data
                if not self._dropped:
                    self.buffer += data
        if self.ended and not self.over and not self.buffer and self.sink.end():
            self.over = moved = True
        return moved


class Pair:
    """Two ends that are one connection. Owns both sockets.

    `deadline` is when it is cut: if it is not open by then, or when one side has ended and the other still sends.
    """

    def __init__(self, loop: Loop, near: Plain | Framed, far: Plain | Framed) -> None:
        self.ends = (near, far)
        self.ways = (_Way(near, far), _Way(far, near))
        self.deadline: float | None = time.monotonic() + PATIENCE
        self.is_open = False
        self.is_closed = False
        self._loop = loop
        loop.pairs.add(self)
        for end in self.ends:
            loop.forget(end.fd)
            loop.watch(end.fd, self, EDGES)
        self.ready(0, 0)

    def ready(self, _fd: int, _mask: int) -> None:
        """Something may have happened on one of them."""
        if self.is_closed:
            return
        try:
            self._go()
        except OSError:
            self.close(cut=True)

    def _go(self) -> None:
        if not self.is_open:
            near, far = self.ends[0].is_ready(), self.ends[1].is_ready()
            if not (near and far):
                return
            self.is_open = True
            self.deadline = None
        for end in self.ends:
            if isinstance(end, Framed):
                end.flush()
        for _ in range(ROUNDS):
            first, second = self.ways[0].move(), self.ways[1].move()
            if not (first or second):
                break
        else:
            self._loop.again.add(self)
        if all(way.over for way in self.ways):
            if all(way.ended for way in self.ways) and not any(end.owes() for end in self.ends):
                self.close(cut=False)
            elif self.deadline is None:
                self.deadline = time.monotonic() + LINGER

    def close(self, *, cut: bool) -> None:
        """Close both."""
        if not self.is_closed:
            self.is_closed = True
            self._loop.pairs.discard(self)
            self._loop.again.discard(self)
            for end in self.ends:
                self._loop.forget(end.fd)
                end.close(cut=cut)


class Loop:
    """Sockets and what they belong to, on one thread."""

    def __init__(self) -> None:
        self.epoll = select.epoll()
        self.table: dict[int, Handler] = {}
        self.pairs: set[Held] = set()
        self.again: set[Held] = set()

    def watch(self, fd: int, handler: Handler, mask: int) -> None:
        """Tell `handler` what happens on `fd`."""
        self.epoll.register(fd, mask)
        self.table[fd] = handler

    def forget(self, fd: int) -> None:
        """Watch no longer. The descriptor is still open."""
        if self.table.pop(fd, None) is not None:
            self.epoll.unregister(fd)

    def turn(self, seconds: float) -> None:
        """Wait for events at most so long, handle them, and cut what is past its deadline."""
        for fd, mask in self.epoll.poll(0 if self.again else seconds):
            handler = self.table.get(fd)
            if handler is not None:
                handler.ready(fd, mask)
        again, self.again = self.again, set()
        for pair in again:
            pair.ready(0, 0)
        now = time.monotonic()
        for pair in [one for one in self.pairs if one.deadline is not None and one.deadline <= now]:
            pair.close(cut=True)

    def cut_all(self) -> None:
        """Cut every connection."""
        for pair in list(self.pairs):
            pair.close(cut=True)

    def close(self) -> None:
        """Give everything back that is not the caller's."""
        self.cut_all()
        self.epoll.close()


class Door:
    """A listening socket whose connections go where `dial` leads."""

    def __init__(self, loop: Loop, sock: socket.socket, kind: bytes, dial: Callable[[bytes], Plain | Framed]) -> None:
        sock.setblocking(False)
        self._loop = loop
        self._sock = sock
        self._kind = kind
        self._dial = dial
        loop.watch(sock.fileno(), self, IN)

    def ready(self, _fd: int, _mask: int) -> None:
        """Somebody came."""
        try:
            sock = self._sock.accept()[0]
        except OSError:
            time.sleep(0.01)  # out of descriptors: never at full speed
            return
        near = Plain(sock)
        try:
            if len(self._loop.pairs) >= MOST:
                raise ConnectionRefusedError
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)  # also where this process is killed
            far = self._dial(self._kind)
        except OSError:
            near.close(cut=True)
        else:
            Pair(self._loop, near, far)


def connect_unix(path: str) -> socket.socket:
    """Return a connection to a unix socket.

    Raises:
        OSError: when nobody is there, or the queue is full.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return sock


class Worker:
    """Who moves, in the relay in whose network the worker is. `life` is the connection to the owner."""

    def __init__(self, folder: str, port: int, life: socket.socket) -> None:
        self.loop = Loop()
        self.was_owned = False
        self._folder = folder
        self._life: socket.socket | None = life
        self._owned = False
        self._beats = 0
        self._heard = time.monotonic()
        life.setblocking(False)
        self._sock = socket.create_server(("127.0.0.1", port), backlog=128)
        self._door = Door(self.loop, self._sock, GATE, self.dial)
        self.loop.watch(life.fileno(), self, IN)

    def dial(self, kind: bytes) -> Plain:
        """Return a connection to a socket of the folder.

        Raises:
            OSError: when nobody is there, or there is no owner.
        """
        if not self._owned:
            raise ConnectionRefusedError
        return Plain(connect_unix(os.path.join(self._folder, NAMES[kind])))

    def look(self) -> bool:
        """See that the owner is there and beats; False where it has left."""
        if self._owned and self._beats > 2 and time.monotonic() - self._heard > SILENT:
            self._shut()
        return self._life is not None

    def ready(self, _fd: int, _mask: int) -> None:
        """The owner says that it is there, or leaves."""
        assert self._life is not None
        try:
            data = self._life.recv(64)
            if data:
                self._life.send(data)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.loop.forget(self._life.fileno())
            self._life.close()
            self._life = None
            self._shut()
            return
        self._heard = time.monotonic()
        self._beats += 1
        if data[-1:] == SHUT:
            self._shut()
        elif not self._owned:
            self._owned = self.was_owned = True
            say(READY)

    def _shut(self) -> None:
        self._owned = False
        self.loop.cut_all()


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
            Door(self.loop, listen_unix(os.path.join(folder, name)), kind, self.dial) for kind, name in NAMES.items()
        ]
        say("tidegate-relay 1 listening")

    def dial(self, kind: bytes) -> Framed:
        """Return a connection to the listener; it is open later.

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
        return Framed(raw, self._wrap, kind)

    def _wrap(self, raw: socket.socket) -> ssl.SSLSocket:
        return self._context.wrap_socket(raw, server_hostname=SERVER_NAME, do_handshake_on_connect=False)

    def look(self) -> float:
        """Return for how many seconds nothing has led to an owner."""
        if any(getattr(pair, "is_open", False) for pair in self.loop.pairs):
            self._left = time.monotonic()
        return time.monotonic() - self._left


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


def say(line: str) -> None:
    """Print a line, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def serve(relay: Far, grace: float) -> int:
    """Relay until there has been no owner for `grace` seconds."""
    while relay.look() <= grace:
        relay.loop.turn(AGAIN)
    return alone()


def alone() -> int:
    """Say that there is no owner any more; the exit status."""
    say("tidegate-relay 1 nobody is there any more")
    return 3


def keep(folder: str, port: int, grace: float) -> int:
    """See that somebody moves for each owner, until there has been none for `grace` seconds."""
    left = time.monotonic()
    served = False
    while True:
        life = None
        with suppress(OSError):
            life = connect_unix(os.path.join(folder, NAMES[LIFE]))
        while life is not None:
            ended = move_apart(folder, port, life)
            if ended == FAILED and not served:
                return ended
            if ended in (MOVED, IDLE):
                life.close()
                life = None
            served = served or ended in (MOVED, None)
            if ended != IDLE:
                left = time.monotonic()
            if life is not None:
                time.sleep(PAUSE)
        if time.monotonic() - left > grace:
            return alone()
        time.sleep(AGAIN)


def move_apart(folder: str, port: int, life: socket.socket) -> int | None:
    """Move in a process of its own until the owner leaves; how that ended, None where it was stopped or killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = FAILED
        try:
            os.close(reading)
            os.set_blocking(writing, False)
            status = move(Worker(folder, port, life), writing)
        finally:
            os._exit(status)
    os.close(writing)
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    try:
        while poll.poll(STOPPED * 1000) and os.read(reading, 4096):
            pass
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)  # where it has not ended, it was stopped
        status = os.waitpid(child, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None


def move(worker: Worker, sign: int) -> int:
    """Move, and give signs of life, until the owner leaves or nobody looks after us any more."""
    said = 0.0
    while worker.look():
        worker.loop.turn(AGAIN)
        if time.monotonic() - said < PAUSE:
            continue
        said = time.monotonic()
        try:
            os.write(sign, b".")
        except BlockingIOError:
            continue  # who looks after us was stopped; that is no harm
        except OSError:
            break
    return MOVED if worker.was_owned else IDLE


def check(folder: str) -> int:
    """Say whether a container can connect to a socket of the machine."""
    try:
        connect_unix(os.path.join(folder, NAMES[GATE])).close()
    except OSError as error:
        say(f"tidegate-relay 1 {errno.errorcode.get(error.errno or 0, 'EIO')}")
        return 1
    say("tidegate-relay 1 connected")
    return 0


def ask(port: int, request: str) -> int:
    """Say what is answered to a request, as the worker would see it."""
    answer = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock:
            sock.sendall(request.encode("ascii") + b"\r\n\r\n")
            while b"\n" not in answer and len(answer) < 1000:
                data = sock.recv(1000)
                if not data:
                    break
                answer += data
    except OSError as error:
        answer = (error.strerror or str(error)).encode()
    say(answer.partition(b"\r")[0][:200].decode("ascii", "replace"))
    return 0


def main(argv: list[str]) -> int:
    """Run one role; see the head of the file."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # the first process of a container has to say that it may
    role, words = (argv or [""])[0], argv[1:]
    if role == "worker" and len(words) == 3:
        return keep(words[0], int(words[1]), float(words[2]))
    if role == "far" and len(words) == 4:
        host, _colon, port = words[1].rpartition(":")
        return serve(Far(words[0], host, int(port), words[2]), float(words[3]))
    if role == "check" and len(words) == 1:
        return check(words[0])
    if role == "ask" and len(words) == 2:
        return ask(int(words[0]), words[1])
    say(
        "tidegate-relay 1: worker FOLDER PORT GRACE | far FOLDER HOST:PORT KEYS GRACE | check FOLDER | ask PORT REQUEST"
    )
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
