"""Where fronts come in: `run`, `exec` and `task` speak to the server here (front.sock).

The frames are those of runtime/channel.py with JSON in them; the conversation is that of runtime/gate_process.py, so
that a front speaks with a gate of its own and with the server alike:

    front -> server  ["run", {"version", "task", "phase", "policy", "log", ...}]       a task of its own
                     ["exec", {"version", "task", "command", "hold", ...}]             a command of a created task
                     ["task", verb, {"version", ...}]                                  see task_desk.py
    server -> front  ["ready", {...}], or ["failed", what, fix, code] and the end; for a task ["done", result]
    with --ask       server: ["asked", question] when one of its task opens or changes, ["closed", question];
                     front: ["answer", number, answer], ["unattended"] when its terminal is gone
    front -> server  ["cover", environment], for a task with secrets: ["covered", {variables that are another in it}]
    front -> server  ["sockets", roles] and ["next", phase, roles] with descriptors, ["begin", Unix time]
    front -> server  ["note", type of an event] for the action log; ["finish"]
    server -> front  ["serving"], and at the end ["summary", rows, more]
                     ["warn", line] and ["end", why, whether it may come to the next server] at any time
    end of file      the front is gone: its command has ended, and with it the task of a run

Rules of the file: only this user's processes outside of every task are heard (peers.py). A frame that is none ends
the conversation; descriptors that nobody asked for are closed.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections import deque
from typing import TYPE_CHECKING

from tidegate import __version__
from tidegate.holds.inside import TaskSockets
from tidegate.model.errors import StartError, TidegateError, UsageError, told_of_bug
from tidegate.model.publish import Publish
from tidegate.model.verdict import Phase
from tidegate.policy.policy import make_policy
from tidegate.policy.snapshot import from_json
from tidegate.runtime.channel import ASK, LENGTH, MAX_FRAME, descriptors_of, frame
from tidegate.server.background import start
from tidegate.server.peers import refusal
from tidegate.server.task_desk import BY, do

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from typing import Any

    from tidegate.server.living import Exec, Living
    from tidegate.server.tasks import Registry
    from tidegate.server.terminals import Terminals

_PIECE = 1 << 18
_MOST_UNSENT = 1 << 20  # bytes a front may leave unread before it is let go
_MOST_FDS = 253  # SCM_MAX_FD: what the kernel lets through in one message
_MOST_FRONTS = 20_000
_LAST_WORDS = 5.0  # seconds for the ends of commands to be kept when the server ends
_TOO_MANY = StartError("as many commands run behind this server as it takes", fix="--no-server", code="too-many")


class FrontDoor:
    """Accepts fronts on a listening unix socket, which it owns; everything on the loop's thread."""

    def __init__(self, registry: Registry, terminals: Terminals, listener: socket.socket) -> None:
        self._registry = registry
        self._terminals = terminals
        self._listener = listener
        self._fronts: set[_Front] = set()
        self._talks: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Accept from now on."""
        asyncio.get_running_loop().add_reader(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(64):
            try:
                sock, _address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:
                # No descriptor left: the queue waits, and the loop does not spin on it.
                loop = asyncio.get_running_loop()
                loop.remove_reader(self._listener.fileno())
                loop.call_later(0.2, self._open_again)
                return
            sock.setblocking(False)
            front = _Front(sock, self._registry, self._terminals, self._fronts.discard)
            self._fronts.add(front)
            why = refusal(sock)
            if why:
                front.fail(StartError(why, code="peer"))
            elif len(self._fronts) > _MOST_FRONTS:
                front.fail(_TOO_MANY)
            else:
                talk = front.listen()
                self._talks.add(talk)
                talk.add_done_callback(self._talks.discard)

    def _open_again(self) -> None:
        if self._listener.fileno() >= 0:
            self.open()

    def close(self) -> None:
        """Accept nobody any more; those that are here stay."""
        if self._listener.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            self._listener.close()

    async def part(self) -> None:
        """Let go of all fronts, once what they were told is on its way; how their commands ended is on record then."""
        late = time.monotonic() + _LAST_WORDS
        while any(front.busy for front in self._fronts) and time.monotonic() < late:  # noqa: ASYNC110 - once, at the end
            await asyncio.sleep(0.005)  # the counts of a command that ends just now are on their way
        for front in list(self._fronts):
            front.close()
        if self._talks:
            await asyncio.wait(self._talks, timeout=_LAST_WORDS)


class _Front:
    """One conversation. Messages are handled one after the other."""

    def __init__(
        self, sock: socket.socket, registry: Registry, terminals: Terminals, gone: Callable[[_Front], object]
    ) -> None:
        self._sock = sock
        self._registry = registry
        self._terminals = terminals
        self._asking: Exec | None = None
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._fds: deque[int] = deque()
        self._messages: asyncio.Queue[list[Any] | None] = asyncio.Queue()
        self._unsent = bytearray()
        self._ended = False
        self._closing = False
        self._hearing = False
        self._exec: Exec | None = None
        self._own_names: tuple[str, ...] = ()

    @property
    def busy(self) -> bool:
        """Whether something that it said is not answered yet."""
        return not self._closing and (self._hearing or not self._messages.empty())

    def listen(self) -> asyncio.Task[None]:
        """Hear what it says; returns the conversation."""
        self._loop.add_reader(self._sock.fileno(), self._readable)
        return start(self._converse(), "a front")

    # Bytes.

    def _readable(self) -> None:
        try:
            data, ancillary, _flags, _address = self._sock.recvmsg(
                _PIECE, socket.CMSG_SPACE(_MOST_FDS * 4), socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        self._fds.extend(descriptors_of(ancillary))
        if not data or len(self._fds) > _MOST_FDS:  # no message has more: they would pile up here
            self._end_of_file()
            return
        self._buffer += data
        while len(self._buffer) >= LENGTH:
            length = int.from_bytes(self._buffer[:LENGTH], "big")
            if length > MAX_FRAME:
                self._end_of_file()
                return
            if len(self._buffer) < LENGTH + length:
                return
            try:
                message = json.loads(self._buffer[LENGTH : LENGTH + length])
            except (ValueError, RecursionError):
                self._end_of_file()
                return
            del self._buffer[: LENGTH + length]
            if not isinstance(message, list) or not message or not isinstance(message[0], str):
                self._end_of_file()
                return
            self._messages.put_nowait(message)

    def _end_of_file(self) -> None:
        if not self._ended:
            self._ended = True
            self._loop.remove_reader(self._sock.fileno())
            self._messages.put_nowait(None)

    def say(self, message: list[Any]) -> None:
        """Send a message; a front that reads nothing is let go."""
        if self._closing:
            return
        waiting = bool(self._unsent)
        self._unsent += frame(message, _dumps)
        if len(self._unsent) > _MOST_UNSENT:
            self._end_of_file()
        elif not waiting:
            self._send()
        if message[0] == "summary":  # the last word of every command
            self._exec = None
            self.close()

    def _send(self) -> None:
        try:
            while self._unsent:
                sent = self._sock.send(self._unsent)
                del self._unsent[:sent]
        except BlockingIOError:
            self._loop.add_writer(self._sock.fileno(), self._send)
            return
        except OSError:
            self._unsent.clear()
            self._end_of_file()
        self._loop.remove_writer(self._sock.fileno())
        if self._closing:
            self._shut()

    def fail(self, error: TidegateError) -> None:
        """Say why it goes no further, and end it."""
        self.say(["failed", error.what, error.fix, error.code])
        self.close()

    def close(self) -> None:
        """End it, once what was said is sent."""
        if self._closing:
            return
        self._closing = True
        if not self._unsent:
            self._shut()

    def _shut(self) -> None:
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock.fileno())
            self._loop.remove_writer(self._sock.fileno())
            self._sock.close()
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
        self._messages.put_nowait(None)
        self._gone(self)

    # Messages.

    async def _converse(self) -> None:
        try:
            while (message := await self._messages.get()) is not None:
                self._hearing = True
                await self._heard(message)
                self._hearing = False
        except TidegateError as error:
            self.fail(error)
        except Exception as error:  # noqa: BLE001 - what no front of this version says, or the machine has nothing left
            self.fail(StartError(f"the server cannot do that: {told_of_bug(error)}", code="front"))
        finally:
            exec_, self._exec = self._exec, None
            await self._unattended()
            if exec_ is not None:
                await self._registry.end_exec(exec_)
            self.close()

    async def _heard(self, message: list[Any]) -> None:
        handlers: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
            "run": self._run,
            "exec": self._run_in,
            "task": self._task,
            "cover": self._cover,
            "sockets": self._sockets,
            "begin": self._begin,
            "next": self._next,
            "answer": self._answer,
            "unattended": self._unattended,
            "note": self._note,
            "finish": self._finish,
        }
        handler = handlers.get(message[0])
        if handler is None:
            raise UsageError(f"a front cannot say {ascii(message[0])[:40]}", code="front")
        await handler(*message[1:])

    async def _run(self, order: dict[str, Any]) -> None:
        _check_version(order)
        self._check_free()
        if order.get("again"):
            task = await self._registry.come_back(order)
            met: Any = task.met((task.phase,), [int(one[1]) for one in order.get("publish", ())])
        else:
            policy = from_json(order["policy"]) if order["policy"] is not None else make_policy()  # none: no gate
            task, met = await self._registry.begin_run(order, policy, by=BY), order.get("met", {})
        try:
            await self._start_exec(task, order, met, agent=True)
        finally:
            if self._exec is None:  # it has no command with which it could end
                await self._registry.end(task, by=BY)

    async def _run_in(self, order: dict[str, Any]) -> None:
        _check_version(order)
        self._check_free()
        task = self._registry.get(order["task"])
        task.roots = task.roots or str(order.get("roots", ""))
        setup = () if order.get("again") else self._registry.set_up_of(task, order["hold"])
        phases = (Phase.INSTALL, task.phase) if setup else (task.phase,)
        await self._start_exec(task, order, task.met(phases), setup)

    def _check_free(self) -> None:
        if self._exec is not None:
            raise UsageError("a front has one command", code="front")

    async def _start_exec(
        self,
        task: Living,
        order: dict[str, Any],
        met: Mapping[str, Sequence[tuple[str, int]]],
        setup: tuple[str, ...] = (),
        *,
        agent: bool = False,
    ) -> None:
        phase = task.phase  # a set-up command changes it
        self._own_names = tuple(str(name) for name in order.get("own_names", ()))
        self._exec = self._registry.begin_exec(
            task, command=tuple(order["command"]), hold=order["hold"], ask=order.get("ask", "no"), say=self.say
        )
        self._exec.agent = agent
        self._exec.met = {name: tuple((host, port) for host, port in places) for name, places in met.items()}
        if setup:
            await self._registry.begin_set_up(self._exec)
        await self._registry.publish(
            self._exec, tuple(Publish(tuple(at), *rest) for at, *rest in order.get("publish", ()))
        )
        self.say(["ready", task.told(phase, setup, met, agent=agent)])
        if self._exec is not None and self._exec.ask == ASK:
            self._asking = self._exec
            self._terminals.join(self._exec)

    async def _task(self, verb: str, order: dict[str, Any]) -> None:
        _check_version(order)
        self.say(["done", await do(self._registry, verb, order)])

    def _own(self) -> Exec:
        if self._exec is None:
            raise UsageError("a front says first what it runs", code="front")
        return self._exec

    def _take(self, roles: list[str]) -> TaskSockets:
        if len(roles) != len(self._fds):
            raise UsageError("as many descriptors as roles, please", code="front")
        descriptors = tuple(self._fds)
        self._fds.clear()
        return TaskSockets(tuple(roles), descriptors)

    async def _cover(self, environ: dict[str, str]) -> None:
        exec_ = self._own()
        variables = await self._registry.give_secrets(exec_, environ)
        self.say(["covered", {"variables": variables, "own": exec_.task.secrets.variables_of(agent=exec_.agent)}])

    async def _sockets(self, roles: list[str]) -> None:
        exec_ = self._own()
        await self._registry.serve(exec_, self._take(roles), self._own_names)
        self.say(["serving"])

    async def _next(self, phase: str, roles: list[str]) -> None:
        exec_ = self._own()
        await self._registry.serve_next(exec_, Phase(phase), self._take(roles), self._own_names)
        self.say(["serving"])

    async def _begin(self, at: float) -> None:
        await self._registry.begin(self._own(), at)

    async def _answer(self, number: int, answer: str) -> None:
        await self._terminals.answer(self._own(), number, answer)

    async def _note(self, event: str) -> None:
        self._registry.note(self._own(), event)

    async def _unattended(self) -> None:
        asking, self._asking = self._asking, None
        if asking is not None:
            self._terminals.leave(asking)

    async def _finish(self) -> None:
        exec_ = self._own()
        rows, more = await self._registry.end_exec(exec_)
        self.say(["summary", rows, more])


def _dumps(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _check_version(order: dict[str, Any]) -> None:
    if order.get("version") != __version__:
        raise StartError(
            f"the server is tidegate {__version__}, and this is {ascii(order.get('version'))[:20]}",
            fix="end the server and start it anew, or run without it: --no-server",
            code="version",
        )
