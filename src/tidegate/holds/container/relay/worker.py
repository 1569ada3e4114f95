"""The relay in whose network a worker is: who moves the bytes, and the first process, which looks after that one."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from contextlib import suppress

from tidegate.holds.container.relay.caught import LookUps, TurnedAway, going_to
from tidegate.holds.container.relay.ends import Framed, Plain, connect_unix
from tidegate.holds.container.relay.pairs import Door, Loop
from tidegate.holds.container.relay.rules import take
from tidegate.holds.container.relay.words import (
    AGAIN,
    CAUGHT,
    FAILED,
    FRAMED,
    GATE,
    IDLE,
    IN,
    LIFE,
    LOOKUP,
    MOVED,
    NAMES,
    PAUSE,
    READY,
    SHUT,
    SILENT,
    STOPPED,
    alone,
    say,
)
from tidegate.holds.inside import DATAGRAMS, REDIRECTED, STREAMS, TURNED_AWAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Way: TypeAlias = tuple[str, int, list[tuple[str, int]], bool]
    """Folder, port, sockets that capture with what each is for, and whether a carrier has the folder."""


class Worker:
    """Who moves, in the relay in whose network the worker is. `life` is the connection to the owner.

    `made` are the sockets that capture, with what each is for; `framed` says that a carrier has the folder.
    """

    def __init__(self, way: Way, life: socket.socket) -> None:
        folder, port, made, self._framed = way
        self.loop = Loop()
        self.was_owned = False
        self._folder = folder
        self._life: socket.socket | None = life
        self._owned = False
        self._beats = 0
        self._heard = time.monotonic()
        life.setblocking(False)
        self._sock = socket.create_server(("127.0.0.1", port), backlog=128)
        self._doors = [Door(self.loop, self._sock, GATE, self.dial)]
        self._streams = self._capture(made) if made else []
        self.loop.watch(life.fileno(), self, IN)

    def _capture(self, made: list[tuple[str, int]]) -> list[LookUps | TurnedAway]:
        socks: dict[str, list[socket.socket]] = {}
        for role, fd in made:
            socks.setdefault(role, []).append(socket.socket(fileno=os.dup(fd)))
        for role, kind, name in ((REDIRECTED, CAUGHT, going_to), (STREAMS, LOOKUP, None)):
            self._doors += [Door(self.loop, sock, kind, self.dial, name) for sock in socks.get(role, ())]
        found: list[LookUps | TurnedAway] = [LookUps(self.loop, self.connect, socks.get(DATAGRAMS, []))]
        return found + [TurnedAway(self.loop, self.connect, log.detach()) for log in socks.get(TURNED_AWAY, ())]

    def connect(self, kind: bytes, name: bytes = b"") -> socket.socket:
        """Return a connection to a socket of the folder; `name` is what its end is called.

        Raises:
            OSError: when nobody is there, or there is no owner.
        """
        if not self._owned:
            raise ConnectionRefusedError
        return connect_unix(os.path.join(self._folder, NAMES[kind]), name)

    def dial(self, kind: bytes, name: bytes) -> Plain | Framed:
        """The same, as one end of a pair.

        Raises:
            OSError: likewise.
        """
        if self._framed and kind in FRAMED:
            return Framed(self.connect(kind), None, kind + name)
        return Plain(self.connect(kind, name))

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
        for stream in self._streams:
            stream.cut()


def keep(folder: str, port: int, grace: float, *, captured: bool = False, framed: bool = False) -> int:
    """See that somebody moves for each owner, until there has been none for `grace` seconds.

    `captured`: nobody moves before those sockets are there. `framed`: as for Worker.
    """
    try:
        made = take() if captured else []
    except OSError as error:
        say(f"tidegate-relay 1 nobody made the rules that capture: {error.strerror or error}")
        return FAILED
    left = time.monotonic()
    served = False
    while True:
        life = None
        with suppress(OSError):
            life = connect_unix(os.path.join(folder, NAMES[LIFE]))
        while life is not None:
            ended = move_apart((folder, port, made, framed), life)
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


def move_apart(way: Way, life: socket.socket) -> int | None:
    """Move in a process of its own until the owner leaves; how that ended, None where it was stopped or killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = FAILED
        try:
            os.close(reading)
            os.set_blocking(writing, False)
            status = move(Worker(way, life), writing)
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
