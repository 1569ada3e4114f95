"""One direction of a tunnel: bytes from one socket to the other, and nothing kept but what the receiver has not taken.

Rules of the file:

* A direction that is blocked is not read, so the sender feels it (GAT-5, B56). What waits is one shared buffer or one
  pipe at most.
* It moves by copy until it fills the shared buffer, then by splice for as long as it is busy. Pipes are few; without
  one it goes on copying.
* A short read has emptied the socket unless its end was announced (epoll(7), "Questions and answers" 9).
* One busy direction stops after some rounds and goes on in the next turn.

Sources: splice(2), epoll(7).
"""

from __future__ import annotations

from os import splice

from tidegate.gate.reactor import ENDED, READ_WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.pipes import Pipe
    from tidegate.gate.task import Allowance, Meter
    from tidegate.gate.tunnel import Tunnel

SIZE = 1 << 16  # the shared buffer: what one read takes at most before a direction counts as busy
ROUNDS = 16  # reads in one turn before others get theirs
SPLICE_ROUNDS = 4  # with pipes of 1 MiB
_BUFFER = bytearray(SIZE)
_VIEW = memoryview(_BUFFER)


class Flow:
    """One direction."""

    __slots__ = ("busy", "done", "eof", "limit", "moved", "out", "pending", "pipe", "sink", "source", "tunnel")

    def __init__(self, tunnel: Tunnel, source: socket, sink: socket) -> None:
        self.tunnel = tunnel
        self.source = source
        self.sink = sink
        self.moved = 0
        self.pending = b""
        self.pipe: Pipe | None = None
        self.busy = False  # the last read filled the buffer: splice
        self.eof = False
        self.done = False  # the end was passed on
        self.out = False  # epoll tells when the sink takes bytes again
        self.limit: Meter | Allowance | None = None

    @property
    def blocked(self) -> bool:
        """Whether bytes wait for the sink."""
        return bool(self.pending) or (self.pipe is not None and self.pipe.filled > 0)

    def pull(self, ended: int) -> None:
        """Read until there is nothing, and pass it on. `ended` when a short read proves nothing."""
        if self.eof or self.blocked:
            return
        if self.busy:
            self._splice()
            return
        receive, send = self.source.recv_into, self.sink.send
        for _ in range(ROUNDS):
            try:
                count = receive(_BUFFER)
            except BlockingIOError:
                return
            except OSError:
                self.tunnel.reset()
                return
            if not count:
                self._end()
                return
            self.moved += count
            if self.limit is not None and not self.limit.spend(count):
                self.tunnel.close(self.limit.reason)
                return
            try:
                sent = send(_VIEW[:count])
            except BlockingIOError:
                sent = 0
            except OSError:
                self.tunnel.write_failed(self)
                return
            if sent < count:
                self.pending = bytes(_VIEW[sent:count])
                self._block()
                return
            if count == SIZE:
                self.busy = True
                self._splice()
                return
            if not ended:
                return
        self.tunnel.again(self)

    def offer(self, data: bytes | memoryview) -> None:
        """Pass on bytes that were read by someone else; more than the sink takes waits."""
        self.moved += len(data)
        if self.limit is not None and not self.limit.spend(len(data)):
            self.tunnel.close(self.limit.reason)
            return
        if self.pending:
            self.pending = bytes(self.pending) + bytes(data)
            return
        try:
            sent = self.sink.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.tunnel.write_failed(self)
            return
        if sent < len(data):
            self.pending = bytes(data[sent:])
            self._block()

    def push(self) -> None:
        """The sink may take bytes again."""
        if self.pending:
            try:
                sent = self.sink.send(self.pending)
            except BlockingIOError:
                return
            except OSError:
                self.tunnel.write_failed(self)
                return
            self.pending = self.pending[sent:]
            if self.pending:
                return
        if self.pipe is not None and self.pipe.filled and not self._drain(self.pipe):
            return
        if self.eof:
            self._pass_end()
        elif self.tunnel.judged(self):
            self.pull(ENDED)

    def _splice(self) -> None:
        pipe = self.pipe
        if pipe is None:
            pipe = self.tunnel.gate.pipes.take()
            if pipe is None:
                self.busy = False
                self.tunnel.again(self)  # copies in the next turn, until the buffer is full again
                return
            self.pipe = pipe
        source, into, size = self.source.fileno(), pipe.write, pipe.size
        moved = 0
        for _ in range(SPLICE_ROUNDS):
            try:
                count = splice(source, into, size)
            except BlockingIOError:
                self._idle(moved)
                return
            except OSError:
                self.tunnel.reset()
                return
            if not count:
                self._idle(0)
                self._end()
                return
            moved += count
            pipe.filled = count
            self.moved += count
            if self.limit is not None and not self.limit.spend(count):
                self.tunnel.close(self.limit.reason)
                return
            if not self._drain(pipe):
                return
        self.tunnel.again(self)

    def _drain(self, pipe: Pipe) -> bool:
        # Whether the pipe is empty now.
        sink, out = self.sink.fileno(), pipe.read
        while pipe.filled:
            try:
                pipe.filled -= splice(out, sink, pipe.filled)
            except BlockingIOError:
                self._block()
                return False
            except OSError:
                self.tunnel.write_failed(self)
                return False
        return True

    def give_up(self) -> None:
        """The sink is gone: what waits for it, and what would still come, goes nowhere."""
        self.eof = self.done = True
        self.pending = b""
        self.drop_pipe()

    def _idle(self, moved: int) -> None:
        # The source is empty for now. The pipe goes back; a slow source goes back to copying.
        self.drop_pipe()
        if moved < SIZE:
            self.busy = False

    def drop_pipe(self) -> None:
        """Give the pipe back."""
        if self.pipe is not None:
            self.tunnel.gate.pipes.give(self.pipe)
            self.pipe = None

    def _block(self) -> None:
        if not self.out:
            self.out = True
            self.tunnel.gate.reactor.rewatch(self.sink.fileno(), READ_WRITE)

    def _end(self) -> None:
        self.eof = True
        if not self.blocked:
            self._pass_end()

    def _pass_end(self) -> None:
        if self.done:
            return
        self.done = True
        self.drop_pipe()
        self.tunnel.ended(self)
