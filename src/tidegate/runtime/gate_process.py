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

from tidegate.model.errors import TidegateError, told_of_bug
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
    from tidegate.holds.inside import TaskSockets
    from tidegate.model.publish import Publish
    from tidegate.policy.policy import Policy
    from tidegate.runtime.asking import TerminalDesk
    from tidegate.runtime.early_key import EarlyKey
    from tidegate.runtime.inspection import Reading
    from tidegate.runtime.served import Served
else:
    import _signal  # signal itself makes enums at each start

_TICK = 1.0  # seconds between looks at folded refusals


def stranger_line(who: Stranger, count: int) -> str:
    """One line for a person about connections to the gate by somebody who is not the task (GAT-2)."""
    times = f" ×{count}" if count > 1 else ""
    if who.uid < 0:
        why = f"{who.reason.sentence}, as when a program connects and leaves at once"
        return f"a connection to this task's gate was refused: {why}{times}"
    return f"a connection of uid {who.uid} to this task's gate was refused: {who.reason.sentence}{times}"


def gate_main(channel: socket, open_fd: int) -> NoReturn:
    """Serve one task until the front is gone; never returns.

    `open_fd` is memory that the front shares (journal/open_lines.py). Called in a fresh child of the
    front. Exit status 0, or 1 after a failure that the front was told about.
    """
    status = 1
    try:
        os.setsid()
        _ignore_terminal_signals()
        _Serving(channel, open_fd).run()
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
    what, fix = (error.what, error.fix) if isinstance(error, TidegateError) else (told_of_bug(error), "")
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


class _Serving:
    """The gate of one task, from the order to the end of the channel."""

    def __init__(self, channel: socket, open_fd: int) -> None:
        # These imports run while the front still reads the policy: two cores share the start.
        from tidegate.gate.gate import Gate, GateTask
        from tidegate.gate.upstream import upstream_from_environment
        from tidegate.holds.inside import TaskSockets
        from tidegate.journal.tasklog import MAX_BYTES, UNBOUNDED, TaskLog
        from tidegate.runtime.alone import AloneBook
        from tidegate.runtime.books import LoneBooks
        from tidegate.runtime.open_table import OpenTable
        from tidegate.runtime.served import serve_sockets

        self._channel = channel
        self._sockets, self._serve_sockets = TaskSockets, serve_sockets
        order, policy, reading, read_for, key = _first_word(channel)
        self._order = order
        # A log that a person named lies where the task may see it, covered: a fresh one after rotation would not be.
        bound = MAX_BYTES if order["rotate"] else UNBOUNDED
        self._log = TaskLog(order["log"], order["task"], clock=time.time, warn=self._warn, max_bytes=bound)  # noqa: TID251  the clock comes in here
        self._alone = AloneBook(order, clock=time.time, warn=self._warn)  # noqa: TID251  likewise
        table = OpenTable(open_fd)
        self._books = LoneBooks(self._log, self._alone, table)
        self._desk: TerminalDesk | None = None
        if order.get("ask") == ASK:
            from tidegate.runtime.asking import TerminalDesk

            self._desk = TerminalDesk(
                order,
                self._alone,
                locked=policy.locked,
                say=self._say,
                wall=time.time,  # noqa: TID251  likewise
            )
        self._gate = gate = Gate(
            recorder=self._books,
            asker=self._desk.desk if self._desk is not None else None,
            wall=time.time,  # noqa: TID251  likewise
            upstream=upstream_from_environment(order["environment"]),
            protected_ports=frozenset(order["protected_ports"]),
            fault=self._fault,
            stranger=self._stranger,
        )
        self._doors: list[tuple[int, Publish]] = []
        if order["publish"]:
            from tidegate.gate.published import bind
            from tidegate.model.publish import Publish

            self._doors = bind(gate.marks, [Publish(*one) for one in order["publish"]])
        self._task = task = GateTask(order["task"], policy, Phase(order["phase"]))
        table.serve(gate, task)
        if self._desk is not None:
            self._desk.serve(gate, task)
        if reading is None:
            reading = self._read_with_secrets(read_for)
        key.close()
        if reading is not None:
            task.inspector = reading.inspector
        self._finishing = False

    def _read_with_secrets(self, read_for: Callable[[Sequence[str]], Reading | None]) -> Reading | None:
        # Get the values where some are wanted; the hosts they are for are read inside TLS.
        variables: dict[str, str] = {}
        hosts: tuple[str, ...] = ()
        if self._order.get("secrets") or self._order.get("keys"):
            hosts, variables = _give_secrets(self._task, self._order, self._channel.fileno())
            self._alone.hear_of(self._task)
        reading = read_for(hosts)
        authority = () if reading is None else reading.authority
        send(self._channel, ("ready", {"authority": authority, "variables": variables}))
        return reading

    def run(self) -> None:
        """Serve the sockets that come, and what the front says, until it has finished or is gone."""
        message, descriptors = receive(self._channel)
        if message[0] != "sockets" or len(message[1]) != len(descriptors):
            raise ChannelClosedError("the front sent no sockets")
        self._served = self._serve(self._order["phase"], self._sockets(message[1], descriptors))
        if self._served.warning:
            self._warn(f"note: {self._served.warning}")
        gate = self._gate
        gate.register(self._channel.fileno(), self._heard)
        gate.later(_TICK, self._tick)
        send(self._channel, ("serving",))
        # What is here now stays to the end; what comes may hold cycles.
        gc.freeze()
        gc.enable()
        gate.run()
        self._close()

    def _serve(self, phase: str, sockets: TaskSockets) -> Served:
        order = self._order
        served = self._serve_sockets(
            self._gate, self._task, sockets, order["own_names"], self._doors, order["met"][phase]
        )
        self._alone.hear_tools(served)
        return served

    # What the front says.

    def _heard(self) -> None:
        # Edge triggered: everything that has come is read before the loop waits again.
        while select.select((self._channel,), (), (), 0)[0]:
            try:
                message, descriptors = receive(self._channel)
            except ChannelClosedError:
                message, descriptors = ("gone",), ()
            if not self._goes_on(message, descriptors):
                self._finishing = message[0] == "finish"
                self._gate.stop()
                return

    def _goes_on(self, message: tuple[Any, ...], descriptors: tuple[int, ...]) -> bool:
        # Do what is said; False where it is the end.
        word = message[0]
        if word == "begin":
            self._books.begin(message[1])
        elif word == "note":
            self._alone.add(message[1])
        elif word == "answer" and self._desk is not None:
            self._desk.answer(message[1], message[2])
        elif word == "unattended" and self._desk is not None:
            self._desk.unattended()
        elif word == "next":
            try:
                self._next_phase(message[1], self._sockets(message[2], descriptors))
            except Exception as error:  # noqa: BLE001  the front waits for an answer, and says it
                _tell(self._channel, error)
                return False
        else:
            return False
        return True

    def _next_phase(self, phase: str, sockets: TaskSockets) -> None:
        self._served.close(cut=True)  # all who could hold a connection of the set-up command have ended
        self._books.pause()
        self._task.change(phase=Phase(phase))
        if self._desk is not None:
            self._desk.phase_changed(Phase(phase))
        self._served = self._serve(phase, sockets)
        send(self._channel, ("serving",))

    # What is told.

    def _say(self, message: tuple[Any, ...]) -> None:
        try:
            send(self._channel, message)
        except ChannelClosedError:
            return

    def _warn(self, line: str) -> None:
        self._say(("warn", line))

    def _fault(self, error: Exception) -> None:
        self._warn(f"a connection was closed by a bug of tidegate: {told_of_bug(error)}")

    def _stranger(self, who: Stranger, count: int) -> None:
        self._warn(stranger_line(who, count))
        self._alone.add("peer.refused", uid=who.uid, reason=who.reason.word, count=count)

    def _tick(self) -> None:
        self._log.tick()
        self._alone.tick()
        self._gate.later(_TICK, self._tick)

    def _close(self) -> None:
        self._served.close(cut=False)  # writes what was counted
        self._gate.close()
        self._books.close()
        if self._finishing:
            summary = self._books.summary
            send(self._channel, ("summary", summary.rows(), summary.more))
        self._alone.close()  # last: whatever becomes of the log, the front has its counts
        if self._desk is not None:
            self._desk.close()
