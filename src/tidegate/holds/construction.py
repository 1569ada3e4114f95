"""The front's half of a hold's start: it hears what the child has done, and does what only the front can (launch.py).

Rules of the file: each message of the child's is answered by one thing done here; a message that is not known is let
pass, its descriptors closed. It ends with a task, or `tear_down` kills, reaps and closes all that was made.
"""

from __future__ import annotations

import os
import select

from tidegate.holds import control, messages, userns, watcher
from tidegate.holds.hold import RunningTask
from tidegate.holds.inside import SSH_AGENT, TaskSockets
from tidegate.holds.namespaces import close_namespaces, open_network

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Sequence

    from tidegate.holds.canaries import Canaries
    from tidegate.holds.namespaces import Namespaces
    from tidegate.holds.uid import Tenant
    from tidegate.model.errors import StartError
else:
    import _signal  # signal itself makes enums at each start


class Construction:
    """The front's half."""

    def __init__(
        self,
        wire: int,
        outer: int,
        deliver: Callable[[TaskSockets], None] | None,
        shares: Sequence[str] | None,
        met: dict[bytes, bytes],
        tenant: Tenant | None,
        pausing: int = 0,
    ) -> None:
        """`pausing` is the port of a gate in a network of the task's own, 0 where there is no such network or gate."""
        self._tenant = tenant
        self._pausing = pausing
        self._network: Namespaces = []
        self._wire = wire
        self._outer = outer
        self._init = 0
        self._pty: int | None = None
        self._deliver = deliver
        self._shares = shares  # None: nobody watches
        self._met = met
        self._watcher = 0
        self._to_watcher = -1
        self._own: list[int] = []  # listening unix sockets that the task may connect to from the start
        self._heard: list[tuple[str, list[int]] | None] = []  # by `look`, and not done yet

    def take_by(self, deliver: Callable[[TaskSockets], None] | None) -> None:
        """Say who takes the gate's sockets, where that was not known at first."""
        self._deliver = deliver

    def look(self) -> None:
        """Map the child's ids if it waits for that by now. What else it says is kept: nobody takes it yet."""
        while select.select((self._wire,), (), (), 0)[0]:
            received = control.receive(self._wire)
            if received is not None and received[0].startswith("unshared "):
                self._map(int(received[0].split()[1]))
                continue
            self._heard.append(received)
            if received is None:
                return

    def give(self, memory: int) -> None:
        """Send init what was not known when it was forked, once it has been told that its ids are mapped."""
        while not self._init:
            self._hear()
        try:
            control.send(self._wire, "rest", (memory,))
        except OSError as error:
            raise self._said() or messages.ended_early() from error

    def await_proof(self) -> RunningTask:
        """Do our part until init says `probed`."""
        while not self._hear():
            pass
        return self._proved()

    def _hear(self) -> bool:
        """Take the next message; True where it says that the fence is tried."""
        received = self._heard.pop(0) if self._heard else control.receive(self._wire)
        if received is None:
            raise messages.ended_early()
        message, descriptors = received
        word, _, rest = message.partition(" ")
        if word == "failed":
            raise messages.explain(*control.parse_failed(message))
        if word != "probed":
            self._take(word, rest, descriptors)
        return word == "probed"

    def _proved(self) -> RunningTask:
        """Return the task that is held."""
        task = RunningTask(self._init, self._wire, self._pty, self._watcher)
        if self._network:
            made, ports = self._network, (self._pausing,)

            def shut(*, shut: bool) -> bool:
                from tidegate.holds import pause

                return pause.refuse(made, ports) if shut else pause.admit(made)

            task.shut = shut
            task.after.append(lambda: close_namespaces(made))
        return task

    def _take(self, word: str, rest: str, descriptors: list[int]) -> None:
        """Do what a message of the child's wants. Its descriptors are ours."""
        if word == "unshared":
            self._map(int(rest))
        elif word == "sockets":
            made = TaskSockets(tuple(rest.split()), tuple(descriptors))
            try:
                if self._shares is not None:
                    self._own += [os.dup(descriptor) for descriptor in made.of(SSH_AGENT)]
                if self._deliver is not None:
                    self._deliver(made)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
        elif word == "watch":
            self._hand_over(descriptors[0])
        elif word == "pty":
            self._pty = descriptors[0]
        else:
            for descriptor in descriptors:
                os.close(descriptor)

    def _hand_over(self, listener: int) -> None:
        """Give the watcher what it answers at. It then has the only one: when it ends, every call fails."""
        try:
            control.send(self._to_watcher, "watch", (listener, *self._own))
        except OSError:
            return  # it has ended; the self-test says so
        finally:
            os.close(self._to_watcher)
            self._to_watcher = -1
            for descriptor in (listener, *self._own):
                os.close(descriptor)
            self._own.clear()

    def tear_down(self) -> None:
        """Kill and reap whatever there is. A ends by itself and first, because init is its child until then."""
        if self._outer:
            os.waitpid(self._outer, 0)
        if not self._init:
            self._init = self._announced()
        if self._init:
            _kill_and_reap(self._init)
        if self._watcher:
            _kill_and_reap(self._watcher)
        if self._to_watcher >= 0:
            os.close(self._to_watcher)
        for descriptor in (*self._own, *(one for said in self._heard if said is not None for one in said[1])):
            os.close(descriptor)
        self._heard.clear()
        close_namespaces(self._network)
        os.close(self._wire)
        if self._pty is not None:
            os.close(self._pty)

    def _announced(self) -> int:
        """The pid of init where A has named it and we have not come to read it; 0 where there is none."""
        message = self._waiting("unshared ")
        return int(message.split()[1]) if message else 0

    def _waiting(self, begins: str) -> str:
        """The first message that begins so of those that were sent by now, '' where there is none; others are lost."""
        os.set_blocking(self._wire, False)
        try:
            while received := self._heard.pop(0) if self._heard else control.receive(self._wire):
                message, descriptors = received
                for descriptor in descriptors:
                    os.close(descriptor)
                if message.startswith(begins):
                    return message
        except BlockingIOError:
            pass  # everything that was said has been read
        return ""

    def _map(self, init: int) -> None:
        self._init = init
        found: tuple[int, ...] = ()
        try:
            if self._tenant is None:
                userns.write_maps(init)
                if self._pausing:  # before init closes itself to others
                    self._network = open_network(init, through_user=True)
                found = userns.find(init) if self._shares is not None else ()
            else:
                self._watcher, self._to_watcher = self._tenant.post.start(init)
        except OSError as error:
            raise self._said() or messages.explain("map", error.errno or 0, str(error.filename)) from error
        os.waitpid(self._outer, 0)
        self._outer = 0
        try:
            control.send(self._wire, "mapped")
        except OSError as error:
            for descriptor in found:
                os.close(descriptor)
            raise self._said() or messages.ended_early() from error
        if found and self._shares is not None:
            self._watcher, self._to_watcher = watcher.start(
                found, self._shares, self._met
            )  # while init is busy with mounts

    def _said(self) -> StartError | None:
        """Why init ended, where it has: it says so first, and we may come to its end before we come to its word."""
        message = self._waiting("failed ")
        return messages.explain(*control.parse_failed(message)) if message else None


def check_silence(canaries: Canaries) -> None:
    """See that no canary has heard this run's word.

    Raises:
        StartError: where one has.
    """
    heard = canaries.heard()
    if heard:
        raise messages.canary_heard(heard)


def _kill_and_reap(pid: int) -> None:
    try:
        os.kill(pid, _signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        return  # it is gone, and somebody else has reaped it
