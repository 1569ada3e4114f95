"""The process beside a task that answers for its tools (SRV-6): a child of its front, never of its gate.

    gate ── a connection of the task ──► keeper ── fork ──► worker of this connection ── fork ──► the tool's program
         ◄── what was called ──────────         ◄── may I? ──

The gate only makes a pair of sockets and hands one end over; it parses nothing of what is said here and runs nothing.
On the channel (a pair of SOCK_SEQPACKET, so a message is whole) come `connect` with one descriptor, and the keeper
sends back JSON: what was called, for the records (gate/tool_door.py).

Rules of the file:

* One connection is one process of one thread, so that a fault, a leak or an end of one is of no other.
* What was called is with the gate before the caller has its answer, also where the task ends meanwhile.
* Reading and looking at inputs is bounded too: by the kernel, in time of a processor.
* The keeper alone counts: connections, runs at once, calls a minute. A worker asks, and runs nothing without a yes.
* When the front is gone (`life` ends), or says so, everything ends: workers, programs, and what these left behind.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from socket import AF_UNIX, SOCK_SEQPACKET, recv_fds, socket, socketpair

from tidegate.holds.linux import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, prctl
from tidegate.tools.calls import Called, ended, refused
from tidegate.tools.http import Conversation
from tidegate.tools.rate import Rate
from tidegate.tools.refusing import Refusals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

    from tidegate.tools.declaration import Tool
    from tidegate.tools.program import Ran

    Start = Callable[[Tool, bytes, int], Ran]

MOST_CONNECTIONS = 32
MOST_RUNS = 4
CONNECTIONS_A_MINUTE = 1200  # each is a process: so many cost a tenth of a processor
LOOK_SECONDS = 20.0  # of a processor, in which a worker reads and looks at inputs until it runs one
_MESSAGE = 1 << 16
_NOTED = "noted"
_ROUNDS = 200  # of looks for what a program left behind: one that forks faster than it is killed is left to the kernel


class Keeper:
    """Takes connections from `channel` until it or `life` ends. `start` runs a program, in a worker."""

    def __init__(self, channel: socket, life: int, tools: Mapping[str, Tool], start: Start) -> None:
        self._channel = channel
        self._life = life
        self._tools = tools
        self._start = start
        self._connections = Rate(CONNECTIONS_A_MINUTE)
        self._rates = {name: Rate(tool.calls_per_minute) for name, tool in tools.items()}
        self.counts: dict[str, dict[str, int]] = {}  # how the calls of each tool ended
        self._workers: dict[int, _Worker] = {}  # by the descriptor they speak on
        self._poll = select.poll()
        self._refusals = Refusals(self._poll)

    def serve(self) -> None:
        """Serve until the task is over; everything it began has ended then."""
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        poll = self._poll
        poll.register(self._channel, select.POLLIN)
        poll.register(self._life, select.POLLRDHUP)
        try:
            while True:
                for fd, _ in poll.poll(self._refusals.wait(time.monotonic())):
                    if fd == self._life:
                        return
                    if fd == self._channel.fileno():
                        if not self._take():
                            return
                    elif fd in self._workers:
                        self._hear(fd)
                    elif fd in self._refusals:  # not one that made room for another in this very turn
                        self._refusals.hear(fd)
        finally:
            for worker in self._workers.values():
                worker.kill()
                if worker.running:
                    self._report({"tool": worker.running, "result": "cancelled"})
            end_children()

    def _take(self) -> bool:
        """Take a connection; False where there will be none any more."""
        data, fds, _flags, _address = recv_fds(self._channel, _MESSAGE, 4)
        if not data:
            return False
        if data != b"connect" or len(fds) != 1:
            for fd in fds:
                os.close(fd)
            return True
        sock, now = socket(fileno=fds[0]), time.monotonic()
        if len(self._workers) >= MOST_CONNECTIONS or not self._connections.allows(now):
            self._refusals.add(sock, now)
            return True
        with sock:
            ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
            pid = os.fork()
            if pid == 0:
                ours.close()
                self._be_worker(sock, theirs)
            theirs.close()
        self._workers[ours.fileno()] = _Worker(pid, ours)
        self._poll.register(ours, select.POLLIN)
        return True

    def _hear(self, fd: int) -> None:
        worker = self._workers[fd]
        try:
            data = worker.wire.recv(_MESSAGE)
        except OSError:
            data = b""
        if not data:
            self._poll.unregister(fd)
            del self._workers[fd]
            worker.wire.close()
            os.waitpid(worker.pid, 0)
            if worker.running:  # it was killed: what it ran ended with it
                self._report({"tool": worker.running, "result": "lost"})
            return
        message: dict[str, Any] = json.loads(data)
        if "ask" in message:
            self._ask(worker, message)
        else:
            worker.running = ""
            self._report(message)
            worker.say(_NOTED)

    def _ask(self, worker: _Worker, message: dict[str, Any]) -> None:
        name: str = message["ask"]
        if sum(bool(one.running) for one in self._workers.values()) >= MOST_RUNS:
            word = "busy"
        elif not self._rates[name].allows(time.monotonic()):
            word = "rate"
        else:
            word, worker.running = "go", name
        worker.say(word)
        if word != "go":
            self._report({"tool": name, "result": word, "in": message["in"]})

    def _report(self, message: dict[str, Any]) -> None:
        of = self.counts.setdefault(message["tool"], {})
        of[message["result"]] = of.get(message["result"], 0) + 1
        try:
            self._channel.send(json.dumps(message).encode("ascii"))
        except OSError:
            return  # the gate is gone, and so will we be

    # In a worker.

    def _be_worker(self, sock: socket, wire: socket) -> NoReturn:
        try:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            prctl(PR_SET_CHILD_SUBREAPER, 1)
            for worker in self._workers.values():
                worker.wire.close()
            self._refusals.close()
            _bound(LOOK_SECONDS)
            Conversation(sock, self._tools, lambda tool, data: self._run(tool, data, wire), self._life).serve()
        finally:
            os._exit(0)

    def _run(self, tool: Tool, data: bytes, wire: socket) -> Called:
        wire.send(json.dumps({"ask": tool.name, "in": len(data)}).encode("ascii"))
        word = wire.recv(64).decode("ascii")
        if word != "go":
            return refused(word or "cancelled")
        _bound(0)  # a run has a time of its own
        ran = self._start(tool, data, self._life)
        end_children()
        _bound(LOOK_SECONDS)
        done = {"tool": tool.name, "result": ran.why, "status": ran.status, "in": len(data), "out": len(ran.output)}
        wire.send(json.dumps(done | {"seconds": round(ran.seconds, 3)}).encode("ascii"))
        wire.recv(64)  # whoever has the answer may end the task: what was called is said before
        return ended(ran)


class _Worker:
    """One connection's process, as the keeper knows it; `running` is the tool that it runs now, or ''."""

    def __init__(self, pid: int, wire: socket) -> None:
        self.pid = pid
        self.wire = wire
        self.running = ""

    def say(self, word: str) -> None:
        """Answer it; one that is gone is found out by its end."""
        try:
            self.wire.send(word.encode("ascii"))
        except OSError:
            return

    def kill(self) -> None:
        """End it; what it runs ends with it (PR_SET_PDEATHSIG)."""
        os.kill(self.pid, signal.SIGKILL)


def _bound(seconds: float) -> None:
    """Give this process so many seconds of a processor, then the kernel ends it; with 0 it has all.

    The pattern of a schema may take hours to look at what a task made for that, and nothing in Python stops one that
    looks. Timers are no child's (fork(2)), so no program is under one.
    """
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def end_children() -> None:
    """End every process below this one: those that a program left behind come to us (PR_SET_CHILD_SUBREAPER)."""
    for _ in range(_ROUNDS):
        try:
            with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
                pids = [int(word) for word in file.read().split()]
        except OSError:
            return
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            except PermissionError:
                return  # it became another user's
        for pid in pids:
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                continue
