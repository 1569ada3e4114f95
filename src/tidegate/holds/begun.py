"""A hold that is being built: `complete` waits for its task, `end` leaves nothing of it.

What decides its view and network is known when it begins. What its files say of whom to trust, and the command's
variables, may come later: while they are found out the child takes its namespaces, makes the network and most of the
mounts. It goes no further without them, so nothing of the task runs before all is there, and the front's end of the
control socket, closed, ends it at any point.
"""

from __future__ import annotations

import marshal
import os

from tidegate.holds.construction import check_silence
from tidegate.holds.name_files import NameFile, own_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidegate.holds.canaries import Canaries
    from tidegate.holds.construction import Construction
    from tidegate.holds.hold import RunningTask
    from tidegate.holds.inside import TaskSockets
    from tidegate.holds.plan import Plan

    Trust = tuple[tuple[str, bytes], ...]


class Begun:
    """The front's half of a start, between its fork and its task."""

    def __init__(self, construction: Construction, canaries: Canaries | None, plan: Plan) -> None:
        self._construction: Construction | None = construction
        self._canaries = canaries
        self._plan = plan

    def look(self) -> None:
        """Do what the child waits for, if it does by now, and wait for nothing.

        Raises:
            StartError: where it has failed; `end` is still to be called.
        """
        if self._construction is not None:
            self._construction.look()

    def complete(
        self,
        deliver: Callable[[TaskSockets], None] | None,
        env: Mapping[str, str] | None = None,
        trust: Trust = (),
    ) -> RunningTask:
        """Wait for the task. `env` and `trust` are what a hold that was begun early still waits for (LaunchSpec).

        Raises:
            StartError: where it cannot be held; nothing is left then.
        """
        assert self._construction is not None, "once"
        try:
            self._construction.take_by(deliver)
            if env is not None:
                self._give(env, trust)
            task = self._construction.await_proof()
            if self._canaries:
                check_silence(self._canaries)
            self._construction = None
        finally:
            self.end()
        return task

    def end(self) -> None:
        """Kill and reap what was begun and has not become a task; later calls do nothing."""
        construction, self._construction = self._construction, None
        canaries, self._canaries = self._canaries, None
        try:
            if construction is not None:
                construction.tear_down()
        finally:
            if canaries:
                canaries.close()

    def _give(self, env: Mapping[str, str], trust: Trust) -> None:
        files = own_files(trust, self._plan.replaced, tuple(one.path for one in self._plan.bound))
        data = marshal.dumps((dict(env), tuple((one.path, one.text) for one in files)))
        memory = os.memfd_create("tidegate-rest", os.MFD_CLOEXEC)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(memory, left) :]
            assert self._construction is not None, "it is there"
            self._construction.give(memory)
        finally:
            os.close(memory)


def taken_in(memory: int) -> tuple[dict[str, str], tuple[NameFile, ...]]:
    """Read in the child what `complete` gave: the command's variables and files of ours. Closes the descriptor."""
    size = os.fstat(memory).st_size
    parts = []
    at = 0
    while at < size and (part := os.pread(memory, size - at, at)):
        parts.append(part)
        at += len(part)
    os.close(memory)
    env, files = marshal.loads(b"".join(parts))  # noqa: S302  from the front that forked us
    return env, tuple(NameFile(path, text) for path, text in files)
