"""The gate's own process: forked from the front before any policy is read, so that it stays small.

Conversation on the channel (runtime/channel.py), the front speaks first:

    front -> gate   {"task": id, "phase": p, "policy": plain, "log": path, "rotate": bool,
                     "environment": {proxies}, "protected_ports": (...), "own_names": (host names of the task),
                     "met": {phase: services of this machine that are met inside},
                     "publish": (--publish as plain tuples),
                     "roots": the roots for what is read inside TLS, as PEM; "" where nothing is,
                     "secrets": names of secrets, whose values this process gets itself (secret_sources.py),
                     "keys": those of an agent's model services (model_keys.py), likewise,
                     "ask": "ask" where questions are asked at the front's terminal; then "home" too,
                     "folder", "command", "hold", "state" (the state folder): for the action log}
    gate  -> front  ("ready", {"authority": (certificates that the task trusts, as PEM),
                     "variables": those of the task that stand for secrets}) or ("failed", what, fix)
    front -> gate   ("sockets", roles) with the descriptors made inside the task's network, one for each role
    gate  -> front  ("serving",)
    front -> gate   ("begin", Unix time): the fence is proven and the command starts
    front -> gate   ("next", phase, roles) with descriptors: the set-up command has ended, and this is the hold of the
                    task's first command; the answer is ("serving",), and ("begin", Unix time) follows again
    front -> gate   ("note", type of an event) for the action log; ("finish",)
    gate  -> front  ("summary", rows, more)
    gate  -> front  ("warn", line) at any time while it serves
    gate  -> front  ("asked", question) when one opens or changes, ("closed", question) when it is over
    front -> gate   ("answer", number, answer), and ("unattended",) when nobody can be asked any more
    end of file     the front is gone: everything is closed and the process ends

The gate ignores the terminal: it has a session of its own, so neither Ctrl-C nor Ctrl-Z nor a closed window reaches
it; it lives exactly as long as the other end of its channel.
"""

from __future__ import annotations

import gc
import os
import select
import time

from tidegate.model.errors import TidegateError
from tidegate.model.verdict import Phase
from tidegate.runtime.channel import ASK, ChannelClosedError, receive, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from _socket import socket
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from tidegate.gate.gate import GateTask
    from tidegate.gate.identity import Stranger
    from tidegate.journal.tasklog import TaskLog
    from tidegate.model.event import Event
    from tidegate.model.publish import Publish
    from tidegate.policy.policy import Policy
    from tidegate.runtime.alone import AloneBook
    from tidegate.runtime.asking import TerminalDesk
    from tidegate.runtime.early_key import EarlyKey
    from tidegate.runtime.inspection import Reading
    from tidegate.runtime.open_table import OpenTable
else:
    import _signal  # signal itself makes enums at each start

_TICK = 1.0  # seconds between looks at folded refusals


class Books:
    """The Recorder of one task: its log, and the counts for the lines after the command.

    What began before the task did is the self-test's and is not the task's record. It is held back until the front
    has said when the task began, so that nothing of the task is ever taken for it.
    """

    def __init__(self, log: TaskLog, alone: AloneBook | None = None) -> None:
        from tidegate.journal.summary import Summary

        self._log = log
        self._alone = alone
        self._early: list[Event] | None = []
        self.summary = Summary()

    def record(self, event: Event) -> None:
        """Take one event into both."""
        if self._early is not None:
            self._early.append(event)
        else:
            self.take(event)

    def take(self, event: Event) -> None:
        """Take an event that is the task's own, not the self-test's."""
        self._log.record(event)
        self.summary.add(event)
        if self._alone is not None:
            self._alone.take(event)

    def begin(self, at: float) -> None:
        """Drop what began before `at`, and take the rest."""
        early, self._early = self._early or [], None
        for event in early:
            if event.at >= at:
                self.record(event)

    def pause(self) -> None:
        """Hold back what comes from now on, until the next `begin`: another self-test."""
        self._early = []

    def flush(self) -> None:
        """Write what was recorded."""
        self._log.flush()

    def close(self) -> None:
        """Write what is folded and close the log."""
        self._log.close()


def stranger_line(who: Stranger, count: int) -> str:
    """One line for a person about connections to the gate by somebody who is not the task (GAT-2)."""
    times = f" ×{count}" if count > 1 else ""
    if who.uid < 0:
        why = f"{who.reason.sentence}, as when a program connects and leaves at once"
        return f"a connection to this task's gate was refused: {why}{times}"
    return f"a connection of uid {who.uid} to this task's gate was refused: {who.reason.sentence}{times}"


class _LoneBooks(Books):
    """Those of a gate in a process of its own, which may be killed: `table` has what is open by then."""

    def __init__(self, log: TaskLog, alone: AloneBook, table: OpenTable) -> None:
        super().__init__(log, alone)
        self._table = table

    def record(self, event: Event) -> None:
        """Take one event, and note that what was open has ended."""
        if event.seen:
            self._table.ended(event.seen)
            event = event.replace(seen=0)  # one that is held back comes here again
        super().record(event)

    def flush(self) -> None:
        """Write what was recorded; only then it is no more what is open."""
        super().flush()
        self._table.flushed()


def gate_main(channel: socket, open_fd: int) -> NoReturn:
    """Serve one task until the front is gone; never returns.

    `open_fd` is memory that the front shares (journal/open_lines.py). Called in a fresh child of the
    front. Exit status 0, or 1 after a failure that the front was told about.
    """
    status = 1
    try:
        os.setsid()
        _ignore_terminal_signals()
        _serve(channel, open_fd)
        status = 0
    except ChannelClosedError:
        status = 0
    except BaseException as error:  # noqa: BLE001  the last place that can tell the front what went wrong
        _tell(channel, error)
    finally:
        os._exit(status)


def _ignore_terminal_signals() -> None:
    for name in ("SIGHUP", "SIGINT", "SIGPIPE", "SIGQUIT", "SIGTERM", "SIGTSTP", "SIGXFSZ"):
        _signal.signal(getattr(_signal, name), _signal.SIG_IGN)


def _tell(channel: socket, error: BaseException) -> None:
    what, fix = (
        (error.what, error.fix) if isinstance(error, TidegateError) else (f"{type(error).__name__}: {error}", "")
    )
    try:
        send(channel, ("failed", what, fix))
    except ChannelClosedError:
        return


def _give_secrets(task: GateTask, order: dict[str, Any], asker: int) -> tuple[tuple[str, ...], dict[str, str]]:
    """Get the values, and return the hosts they are for and the task's variables. No core of this process is written.

    Raises:
        StartError: where one cannot be had.
    """
    from tidegate.runtime.inspection import keep_no_core
    from tidegate.runtime.model_keys import from_plain
    from tidegate.runtime.secret_sources import open_secrets

    keep_no_core()
    vault, variables = open_secrets(
        order["state"], order["secrets"], os.environ, keys=from_plain(order.get("keys", ())), asker=asker
    )
    task.secrets = vault
    return vault.hosts, variables


def _first_word(
    channel: socket,
) -> tuple[dict[str, Any], Policy, Reading | None, Callable[[Sequence[str]], Reading | None], EarlyKey]:
    """Take the order, and answer at once where the front waits: it builds the hold only when it knows the authority.

    What that needs is made while the order does not come: this process is idle then. Returns the order, its policy,
    what reads inside TLS, and what makes that for hosts of secrets: these come first, where there are some. Last the
    key, whose child is to be waited for once the front need not wait for it.
    """
    from tidegate.policy.snapshot import from_plain
    from tidegate.runtime.early_key import EarlyKey
    from tidegate.runtime.inspection import keep_no_core, make_reading

    keep_no_core()
    key = EarlyKey(channel)
    order: dict[str, Any] = receive(channel)[0]
    policy = from_plain(order["policy"])

    def read_for(hosts: Sequence[str]) -> Reading | None:
        try:
            if not order.get("roots"):
                return None
            return make_reading(policy, order["task"], order["roots"], time.time, hosts, key)  # noqa: TID251  the clock comes in here
        finally:
            key.let_go()

    reading = None if order.get("secrets") or order.get("keys") else read_for(())
    if reading is not None:
        send(channel, ("ready", {"authority": reading.authority, "variables": {}}))
    return order, policy, reading, read_for, key


def _serve(channel: socket, open_fd: int) -> None:
    # These imports run while the front still reads the policy: two cores share the start.
    from tidegate.gate.gate import Gate, GateTask
    from tidegate.gate.upstream import upstream_from_environment
    from tidegate.holds.inside import TaskSockets
    from tidegate.journal.tasklog import MAX_BYTES, UNBOUNDED, TaskLog
    from tidegate.runtime.alone import AloneBook
    from tidegate.runtime.open_table import OpenTable
    from tidegate.runtime.served import serve_sockets

    order, policy, reading, read_for, key = _first_word(channel)

    def tell(message: tuple[Any, ...]) -> None:
        try:
            send(channel, message)
        except ChannelClosedError:
            return

    def warn(line: str) -> None:
        tell(("warn", line))

    def refused(who: Stranger, count: int) -> None:
        warn(stranger_line(who, count))
        alone.add("peer.refused", uid=who.uid, reason=who.reason.word, count=count)

    # A log that a person named lies where the task may see it, covered: a fresh one after rotation would not be.
    bound = MAX_BYTES if order["rotate"] else UNBOUNDED
    log = TaskLog(order["log"], order["task"], clock=time.time, warn=warn, max_bytes=bound)  # noqa: TID251  the clock comes in here
    alone = AloneBook(order, clock=time.time, warn=warn)  # noqa: TID251  likewise
    table = OpenTable(open_fd)
    books = _LoneBooks(log, alone, table)
    desk: TerminalDesk | None = None
    if order.get("ask") == ASK:
        from tidegate.runtime.asking import TerminalDesk

        desk = TerminalDesk(
            order,
            alone,
            locked=policy.locked,
            say=tell,
            wall=time.time,  # noqa: TID251  likewise
        )
    gate = Gate(
        recorder=books,
        asker=desk.desk if desk is not None else None,
        wall=time.time,  # noqa: TID251  likewise
        upstream=upstream_from_environment(order["environment"]),
        protected_ports=frozenset(order["protected_ports"]),
        fault=lambda error: warn(f"a connection was closed by a bug of tidegate: {type(error).__name__}: {error}"),
        stranger=refused,
    )
    doors: list[tuple[int, Publish]] = []
    if order["publish"]:
        from tidegate.gate.published import bind
        from tidegate.model.publish import Publish

        doors = bind(gate.marks, [Publish(*one) for one in order["publish"]])
    task = GateTask(order["task"], policy, Phase(order["phase"]))
    table.serve(gate, task)
    if desk is not None:
        desk.serve(gate, task)
    if reading is None:
        variables: dict[str, str] = {}
        hosts: tuple[str, ...] = ()
        if order.get("secrets") or order.get("keys"):
            hosts, variables = _give_secrets(task, order, channel.fileno())
            alone.hear_of(task)
        reading = read_for(hosts)
        send(channel, ("ready", {"authority": () if reading is None else reading.authority, "variables": variables}))
    key.close()
    if reading is not None:
        task.inspector = reading.inspector
    message, descriptors = receive(channel)
    if message[0] != "sockets" or len(message[1]) != len(descriptors):
        raise ChannelClosedError("the front sent no sockets")
    served = serve_sockets(
        gate, task, TaskSockets(message[1], descriptors), order["own_names"], doors, order["met"][order["phase"]]
    )
    if served.warning:
        warn(f"note: {served.warning}")
    finishing = [False]

    def next_phase(phase: str, sockets: TaskSockets) -> None:
        nonlocal served
        served.close(cut=True)  # all who could hold a connection of the set-up command have ended
        books.pause()
        task.change(phase=Phase(phase))
        if desk is not None:
            desk.phase_changed(Phase(phase))
        served = serve_sockets(gate, task, sockets, order["own_names"], doors, order["met"][phase])
        send(channel, ("serving",))

    def heard() -> None:
        # Edge triggered: everything that has come is read before the loop waits again.
        while select.select((channel,), (), (), 0)[0]:
            try:
                message, descriptors = receive(channel)
            except ChannelClosedError:
                message, descriptors = ("gone",), ()
            if message[0] == "begin":
                books.begin(message[1])
                continue
            if message[0] == "note":
                alone.add(message[1])
                continue
            if desk is not None and message[0] == "answer":
                desk.answer(message[1], message[2])
                continue
            if desk is not None and message[0] == "unattended":
                desk.unattended()
                continue
            if message[0] == "next":
                try:
                    next_phase(message[1], TaskSockets(message[2], descriptors))
                    continue
                except Exception as error:  # noqa: BLE001  the front waits for an answer, and says it
                    _tell(channel, error)
            finishing[0] = message[0] == "finish"
            gate.stop()
            return

    def tick() -> None:
        log.tick()
        alone.tick()
        gate.later(_TICK, tick)

    gate.register(channel.fileno(), heard)
    gate.later(_TICK, tick)
    send(channel, ("serving",))
    # What is here now stays to the end; what comes may hold cycles.
    gc.freeze()
    gc.enable()
    gate.run()
    served.close(cut=False)  # writes what was counted
    gate.close()
    books.close()
    if finishing[0]:
        send(channel, ("summary", books.summary.rows(), books.summary.more))
    alone.close()  # last: whatever becomes of the log, the front has its counts
    if desk is not None:
        desk.close()
