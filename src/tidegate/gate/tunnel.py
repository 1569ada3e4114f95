"""Two sockets and the bytes between them, once a connection is allowed and dialled.

Rules of the file:

* Nothing is buffered but what a blocked receiver has not taken: at most one shared buffer or one pipe per
  direction. A direction that is blocked is not read, so the sender feels it (GAT-5, B56).
* The client's first bytes are held until they are judged (GAT-9); the server's never are, because ssh and databases
  speak first.
* A direction that ends is closed on the other side (half-close) and the tunnel lives until both have ended. A reset
  on one side is a reset on the other.
* A direction moves by copy until it fills the shared buffer, then by splice for as long as it is busy.
* One activity clock for both directions (B52), off by default.
* What the edge of epoll means: see reactor.py. A short read has emptied the socket unless its end was announced
  (epoll(7), "Questions and answers" 9).

Nothing here knows HTTP: opening.py judges, this moves.
"""

from __future__ import annotations

from _socket import SHUT_WR, SO_ERROR, SO_LINGER, SOL_SOCKET
from os import splice

from tidegate.gate.reactor import ENDED, ERR, IN, OUT, READ_WRITE
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.gate.gate import Gate
    from tidegate.gate.judge import Judge
    from tidegate.gate.listener import Listener
    from tidegate.gate.pipes import Pipe
    from tidegate.gate.reactor import Timer
    from tidegate.gate.record import Entry
    from tidegate.gate.task import Meter

SIZE = 1 << 16  # the shared buffer: what one read takes at most before a direction counts as busy
ROUNDS = 16  # reads in one turn before others get theirs
SPLICE_ROUNDS = 4  # with pipes of 1 MiB
_BUFFER = bytearray(SIZE)
_VIEW = memoryview(_BUFFER)
_INPUT = IN | ENDED
_RESET = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # struct linger {1, 0}: close(2) sends RST


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
        self.limit: Meter | None = None

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
                self.tunnel.close(Reason.BYTES_LIMIT)
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
            self.tunnel.close(Reason.BYTES_LIMIT)
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
        else:
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
                self.tunnel.close(Reason.BYTES_LIMIT)
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


class Tunnel:
    """A handler of two descriptors; it owns both sockets from its first moment and closes them together."""

    __slots__ = (
        "client", "client_fd", "down", "entry", "gate", "how", "idle", "judge", "kept_alive", "listener", "touched", "up",
        "upstream", "upstream_fd",
    )  # fmt: skip

    def __init__(self, gate: Gate, listener: Listener, client: socket, upstream: socket, entry: Entry) -> None:
        self.gate = gate
        self.listener = listener
        self.client: socket | None = client
        self.upstream = upstream
        self.client_fd = client.fileno()
        self.upstream_fd = upstream.fileno()
        self.entry = entry
        self.how = How.TUNNELED
        self.judge: Judge | None = None
        self.up = Flow(self, client, upstream)
        self.down = Flow(self, upstream, client)
        self.kept_alive = False
        self.touched = 0.0
        self.idle: Timer | None = None
        seconds = entry.task.policy.limits.idle_seconds
        if seconds:
            self.touched = gate.reactor.now
            self.idle = gate.reactor.after(seconds, self._look_idle, self)
        if entry.decision is not None and entry.decision.rule is not None:
            self.up.limit = entry.task.meter(entry.decision)

    def ready(self, fd: int, mask: int) -> None:
        """Something happened on one of the two descriptors."""
        if self.idle is not None:
            self.touched = self.gate.reactor.now
        if fd == self.client_fd:
            source, sink = self.up, self.down
        else:
            source, sink = self.down, self.up
        if mask & OUT and sink.blocked:
            sink.push()
        if mask & _INPUT and self.client is not None:
            if self.judge is not None and source is self.up:
                self._hear(self.judge, mask & ENDED)
            elif source.eof:
                if mask & ERR:
                    self._look_for_reset(source)
            else:
                source.pull(mask & ENDED)

    # The client's first bytes (GAT-9).

    def hear(self, data: bytes) -> None:
        """Take first bytes that came with the request."""
        judge = self.judge
        if judge is None:
            self.up.offer(data)
        else:
            judge.feed(data)

    def _hear(self, judge: Judge, ended: int) -> None:
        while self.judge is judge and not judge.waiting:
            try:
                data = self.up.source.recv(judge.room)
            except BlockingIOError:
                return
            except OSError:
                self.reset()
                return
            if not data:
                judge.ended()
                return
            judge.feed(data)
        if self.client is not None and self.judge is None:
            self.up.pull(ended)

    def pass_on(self, held: bytes | memoryview) -> None:
        """The first bytes are judged and may go; from here on nothing is looked at."""
        self.judge = None
        if held:
            self.up.offer(held)

    def pass_end(self) -> None:
        """The client ended its direction before or while it was judged."""
        self.judge = None
        self.up._end()  # noqa: SLF001 - one state machine in two classes

    def refuse(self, reason: Reason, reply: bytes) -> None:
        """Cut the tunnel, and tell the client why in its own protocol. The server sees no byte of it."""
        client = self.client
        if client is None:
            return
        if reply and not self.down.blocked:
            try:
                client.send(reply)
            except OSError:
                reply = b""
        self.gate.reactor.table.pop(self.client_fd, None)
        self._finish(reason, How.REFUSED)
        self.gate.linger(self.listener, client, watched=True)

    # Ends.

    def ended(self, flow: Flow) -> None:
        """One direction has ended and all its bytes are passed on."""
        if self.client is None:
            return
        if self.up.done and self.down.done:
            self.close(self.reason)
            return
        try:
            flow.sink.shutdown(SHUT_WR)
        except OSError:
            self.reset()

    @property
    def reason(self) -> Reason:
        """The reason of a tunnel that ended by itself."""
        decision = self.entry.decision
        return decision.reason if decision is not None else Reason.ALLOWED

    def again(self, flow: Flow) -> None:
        """Let the flow go on in the next turn, after the others had theirs."""
        fd = self.client_fd if flow is self.up else self.upstream_fd
        self.gate.reactor.again(self, fd, IN | ENDED)

    def _look_for_reset(self, flow: Flow) -> None:
        # A direction that has ended is not read any more, so a reset shows only here.
        if flow.source.getsockopt(SOL_SOCKET, SO_ERROR):
            self.reset()

    def reset(self) -> None:
        """One side broke: both do, and the other side sees a reset too."""
        if self.client is None:
            return
        for sock in (self.client, self.upstream):
            sock.setsockopt(SOL_SOCKET, SO_LINGER, _RESET)
        self.close(self.reason)

    def write_failed(self, flow: Flow) -> None:
        """A side takes no more bytes. What it said before (an early answer) still reaches the other side first."""
        flow.give_up()
        other = self.down if flow is self.up else self.up
        moved = other.moved
        if not other.eof:
            other.pull(ENDED)
        if self.client is not None and other.eof and not other.blocked:
            if other.moved == moved:
                self.reset()
            else:
                self.close(self.reason)

    def _look_idle(self) -> None:
        seconds = self.entry.task.policy.limits.idle_seconds
        reactor = self.gate.reactor
        left = self.touched + seconds - reactor.now
        if left <= 0:
            self.close(Reason.IDLE_TIMEOUT)
        else:
            self.idle = reactor.after(seconds if left > seconds / 2 else left, self._look_idle, self)

    def cut(self, reason: Reason) -> None:
        """The gate or the task is ending."""
        self.close(reason)

    def broken(self, _error: Exception) -> None:
        """A bug: this tunnel ends, and only it."""
        self.close(Reason.INTERNAL)

    def close(self, reason: Reason) -> None:
        """Close both sides and record it; later calls do nothing."""
        client = self.client
        if client is None:
            return
        self._finish(reason, self.how)
        client.close()
        self.listener.left()

    def _finish(self, reason: Reason, how: How) -> None:
        # All but the client's socket.
        self.client = None
        table = self.gate.reactor.table
        table.pop(self.client_fd, None)
        table.pop(self.upstream_fd, None)
        self.upstream.close()
        self.up.drop_pipe()
        self.down.drop_pipe()
        if self.idle is not None:
            self.idle.cancel()
        if self.judge is not None:
            self.judge.cancel()
            self.judge = None
        entry = self.entry
        entry.up, entry.down = self.up.moved, self.down.moved
        entry.write(how, reason)
