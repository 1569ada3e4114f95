"""The gate: reactor, listeners, and everything their connections share.

Rules of the file:

* One gate serves any number of tasks on one thread. `post` and `stop` may be called from anywhere, nothing else.
* Whatever a connection needs (resolver, pipes, surroundings, upstream) hangs here, is bounded, and is closed here.
* What is recorded is flushed once per turn. When `run` returns, every open connection is closed and recorded.
* Threads exist only once a name was looked up (resolve.py).

The names at the bottom are what other rooms use; everything else in gate/ is private to it.
"""

from __future__ import annotations

from time import monotonic

from tidegate.gate.linger import Linger
from tidegate.gate.listener import Listener, keep_alive
from tidegate.gate.marks import Marks
from tidegate.gate.pipes import PipePool
from tidegate.gate.reactor import Reactor
from tidegate.gate.task import GateTask
from tidegate.gate.tunnel import Tunnel
from tidegate.model.reason import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from _socket import socket
    from collections.abc import Callable

    from tidegate.addresses.surroundings import Surroundings
    from tidegate.gate.around import Around
    from tidegate.gate.capture import Capture, CaptureSockets
    from tidegate.gate.door import Door
    from tidegate.gate.identity import Peers, Stranger, Strangers
    from tidegate.gate.record import Entry
    from tidegate.gate.resolve import Resolver
    from tidegate.gate.upstream import UpstreamConfig
    from tidegate.model.decision import Decision
    from tidegate.model.event import Event
    from tidegate.model.seams import Asker, Recorder
    from tidegate.wire.sock_diag import Owner
else:
    import _signal  # signal itself makes enums at each start

ROUND = 20.0  # seconds between looks at tunnels that became old enough for keepalive


class _Watch:
    """A descriptor of somebody else in the gate's loop."""

    __slots__ = ("_callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def ready(self, _fd: int, _mask: int) -> None:
        """Tell them."""
        self._callback()

    def cut(self, _reason: Reason) -> None:
        """Theirs to close."""

    def broken(self, _error: Exception) -> None:
        """Theirs to mend."""


class Gate:
    """See the head of the file. `wall` gives Unix time, `clock` monotonic seconds.

    `surroundings` must return the same object while nothing changes; without it the gate watches this machine's
    interfaces itself, and adds `protected_ports`. `fault` is told of exceptions that are bugs, `stranger` of
    connections that were refused for whose they are, and how many (identity.py).
    """

    def __init__(
        self,
        *,
        recorder: Recorder,
        wall: Callable[[], float],
        clock: Callable[[], float] = monotonic,
        asker: Asker | None = None,
        surroundings: Callable[[], Surroundings] | None = None,
        protected_ports: frozenset[int] = frozenset(),
        resolver: Resolver | None = None,
        upstream: UpstreamConfig | None = None,
        fault: Callable[[Exception], None] | None = None,
        stranger: Callable[[Stranger, int], None] | None = None,
    ) -> None:
        self.faults = 0
        self.connections = 0
        self.lookout: Callable[[], None] | None = None  # called after a turn in which something was open
        self.listeners: set[Listener] = set()  # those that pause are not in the reactor's table
        self.wall = wall
        self.clock = clock
        self.asker = asker
        self.upstream = upstream
        self.pipes = PipePool()
        self.marks = Marks()
        self.reactor = Reactor(clock, self.fault)
        self._on_fault = fault
        self._on_stranger = stranger
        self._peers: Peers | None = None
        self._strangers: Strangers | None = None
        self.around: Around | None = None  # attempts of tasks on this machine's network: whoever opens the log sets it
        self._recorder = recorder
        self._recorded: set[Recorder] = set()  # those that took an event in this turn
        self._resolver = resolver
        self._own_resolver = resolver is None
        self._interfaces = None
        if surroundings is None:
            from tidegate.gate.interfaces import Interfaces

            self._interfaces = Interfaces(self.reactor, protected_ports)
            surroundings = self._interfaces.surroundings
        self.surroundings = surroundings
        self.reactor.turned = self._turned
        self.reactor.after(ROUND, self._round)

    # For whoever runs it.

    def add_listener(self, fd: int, task: GateTask, belongs: Callable[[Owner], bool] | None = None) -> Listener:
        """Serve `task` on a listening TCP socket of whatever namespace, and own it from now on.

        Where others than the task can connect to it, `belongs` says of the owner of a client's socket whether it is
        the task's (identity.owned_by); the socket is in this process's network namespace then.

        Raises:
            OSError: when `fd` is no listening TCP socket, or the kernel cannot be asked; it is still the caller's then.
        """
        if belongs is not None:
            self.peers  # noqa: B018 - made now: without it nobody could be served
        listener = Listener(self, fd, task)
        if belongs is not None:
            self.guard(listener, belongs)
        return listener

    def guard(
        self, listener: Listener, belongs: Callable[[Owner], bool], impossible: frozenset[int] | None = None
    ) -> None:
        """Let in only who belongs to the listener's task, from now on; as `add_listener` with `belongs`.

        `impossible` are users that no such task can have; those that no task has, where it is None.

        Raises:
            OSError: where the kernel cannot be asked.
        """
        from tidegate.gate.identity import IMPOSSIBLE, belonging

        self.peers  # noqa: B018 - as above
        listener.identify = belonging(listener, belongs, IMPOSSIBLE if impossible is None else impossible)

    def remove_listener(self, listener: Door, *, cut: bool) -> None:
        """Close a listener. `cut` also closes its connections, and records that the gate did."""
        listener.close()
        if cut:
            self._cut(listener)

    def cut(self, task: GateTask, reason: Reason, wanted: Callable[[Entry], bool] | None = None) -> int:
        """Close the open connections of a task, those that `wanted` picks; return how many requests that ended.

        On the gate's thread. What it costs depends on the connections of this task only.
        """
        count = sum(self.cut(helper, reason, wanted) for helper in task.helpers)
        for handler in self.handlers(task):
            entry = getattr(handler, "entry", None) or getattr(handler, "opened", None)
            if wanted is None or (entry is not None and entry.decision is not None and wanted(entry)):
                self._cut_one(handler, reason)
                count += entry is not None
        return count

    def handlers(self, task: GateTask) -> list[object]:
        """Return what serves the clients of a task now. On the gate's thread.

        By the task's own sockets: what others have open costs nothing here.
        """
        table = self.reactor.table
        return [table[fd] for fd in task.clients if fd in table]

    def add_capture(self, sockets: CaptureSockets, task: GateTask) -> Capture:
        """Serve the resolver and the captured connections of `task`, and own all those descriptors from now on.

        Raises:
            OSError, ValueError: when one of them is not what it should be; all of them are closed then.
        """
        from tidegate.gate.capture import Capture

        return Capture(self, sockets, task)

    def remove_capture(self, capture: Capture, *, cut: bool) -> None:
        """Close a capture. `cut` also closes its connections, and records them as ended by the gate."""
        capture.close()
        if cut:
            for listener in capture.listeners:
                self._cut(listener)

    def protect(self, ports: frozenset[int]) -> None:
        """Let no task reach these ports of this machine, beside those it protects already (ADR-1)."""
        assert self._interfaces is not None, "whoever gives the surroundings protects ports there"
        self._interfaces.protect(ports)

    def register(self, fd: int, callback: Callable[[], None]) -> None:
        """Call back on each edge of `fd`: read until it would block, or ends. It stays the caller's to close."""
        self.reactor.watch(fd, _Watch(callback))

    def unregister(self, fd: int) -> None:
        """Stop that."""
        self.reactor.forget(fd)

    def post(self, callback: Callable[[], None]) -> None:
        """Run `callback` on the gate's thread, soon. From any thread."""
        self.reactor.post(callback)

    def later(self, seconds: float, callback: Callable[[], None]) -> None:
        """Run `callback` once, about `seconds` from now. On the gate's thread."""
        self.reactor.after(seconds, callback)

    def run(self) -> None:
        """Serve until `stop`. On return all connections and listeners are closed, and recorded."""
        try:
            if _signal.getsignal(_signal.SIGPIPE) is not _signal.SIG_IGN:
                _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
        except ValueError:
            pass  # not the main thread; CPython ignores SIGPIPE from its start anyway
        try:
            self.reactor.run()
        finally:
            self._cut_all()
            self._turned()

    def stop(self) -> None:
        """End `run`. From any thread or signal handler."""
        self.reactor.stop()

    def close(self) -> None:
        """Give all descriptors back."""
        self._cut_all()
        if self.around is not None:
            self.around.close()
        self._turned()
        if self._resolver is not None and self._own_resolver:
            self._resolver.close()
        if self._interfaces is not None:
            self._interfaces.close()
        if self._peers is not None:
            self._peers.close()
        if self._strangers is not None:
            self._strangers.close()
        self.pipes.close()
        self.marks.close()
        self.reactor.close()

    # For connections.

    @property
    def resolver(self) -> Resolver:
        """Made when the first name is looked up: it brings threads."""
        if self._resolver is None:
            from tidegate.gate.resolve import Resolver

            self._resolver = Resolver(self.reactor)
        return self._resolver

    def lookups(self) -> dict[str, int]:
        """Return how many names were looked up, by outcome. From any thread."""
        return self._resolver.outcomes.copy() if self._resolver is not None else {}

    @property
    def peers(self) -> Peers:
        """Made when the first connection's owner is to be found out.

        Raises:
            OSError: where the kernel cannot be asked.
        """
        if self._peers is None:
            from tidegate.gate.identity import Peers

            self._peers = Peers()
        return self._peers

    @property
    def strangers(self) -> Strangers:
        """Those who were refused for whose they are."""
        if self._strangers is None:
            from tidegate.gate.identity import Strangers

            self._strangers = Strangers(self, self._on_stranger)
        return self._strangers

    def ask(self, task: GateTask, decision: Decision, answer: Callable[[Decision], None]) -> Callable[[], None] | None:
        """Put a decision before a person, as Asker.ask does; one who asks no one hears what was answered before."""
        asker = self.asker
        if asker is None:
            return None
        if task.asks:
            return asker.ask(task.id, decision, answer)
        known = asker.known(task.id, decision)
        if known is None:
            return None
        answer(known)
        return _nothing

    def record(self, event: Event, recorder: Recorder | None = None) -> None:
        """Take an event for a task's own recorder, or the gate's; it is flushed at the end of the turn."""
        taker = recorder or self._recorder
        self._recorded.add(taker)
        taker.record(event)

    def linger(self, listener: Door, sock: socket, *, watched: bool) -> None:
        """Close a client's socket in a way that lets it read its last answer."""
        Linger(self, listener, sock, watched=watched)

    def fault(self, error: Exception) -> None:
        """Take note of a bug. Nothing of it is shown to a task."""
        self.faults += 1
        if self._on_fault is not None:
            self._on_fault(error)

    def _turned(self) -> None:
        if self.lookout is not None and self.connections:
            self.lookout()
        if self._recorded:
            recorded, self._recorded = self._recorded, set()
            for recorder in recorded:
                recorder.flush()

    def _round(self) -> None:
        # Setting three options on each tunnel is not worth it for those that last a second.
        self.reactor.after(ROUND, self._round)
        for handler in set(self.reactor.table.values()):
            if isinstance(handler, Tunnel) and not handler.kept_alive:
                handler.kept_alive = True
                keep_alive(handler.upstream)
            origin = getattr(handler, "origin", None)  # of an exchange of plain HTTP
            if origin is not None and not origin.kept_alive:
                origin.kept_alive = True
                keep_alive(origin.sock)

    def _cut_all(self) -> None:
        for one in list(self.listeners):
            one.close()
        for handler in set(self.reactor.table.values()):
            self._cut_one(handler, Reason.STOPPING)

    def _cut(self, listener: Door) -> None:
        for handler in self.handlers(listener.task):
            if getattr(handler, "listener", None) is listener:
                self._cut_one(handler, Reason.STOPPING)

    def _cut_one(self, handler: object, reason: Reason) -> None:
        cut = getattr(handler, "cut", None)
        if cut is not None:
            try:
                cut(reason)
            except Exception as error:  # noqa: BLE001 - the others are to be closed and recorded all the same
                self.fault(error)


def _nothing() -> None:
    """Withdraw a connection that was answered at once."""


__all__ = ["Gate", "GateTask", "Listener"]
