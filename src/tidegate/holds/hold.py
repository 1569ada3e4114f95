"""What every hold is, and what it is told: the values of this room.

Control messages between the front and init, one packet each: `unshared PID` and `mapped` while the hold is built,
then `sockets ROLE...`+fds (of the network, and of the view), `pty`+fd, `probed`, `failed STAGE ERRNO TEXT`,
`started PID`, `stopped SIGNO`, `execfailed ...`, `exited WAITSTATUS` from init, and `start`, `signal N`,
`continue fg|bg` to it. End of file: the other side is gone.

Fails closed: launch returns a task whose fence is up and proven, or raises StartError and leaves nothing.
"""

from __future__ import annotations

import os

from tidegate.holds import control
from tidegate.holds.inside import OFF
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
    from typing import Any, Protocol

    from tidegate.holds.container.life import Life
    from tidegate.holds.inside import TaskSockets
    from tidegate.model.errors import StartError

    class ServeAgain(Protocol):
        """Makes the sockets of a task's gate anew, where those before are gone with who served them."""

        def __call__(
            self,
            deliver: Callable[[TaskSockets], None],
            met: tuple[tuple[str, int], ...],
            capture_ports: tuple[int, ...],
            /,
        ) -> None:
            """As `deliver` of Hold.launch; `met` and the ports as in LaunchSpec, as the policy has them now.

            Raises:
                StartError: when they cannot be made, or the fence leaks.
            """
else:
    import _signal  # signal itself makes enums at each start

    Protocol = object

GATE_PORT = 3128
WITHOUT_GATE = ("open", "offline")
"""Holds under which a task has every way out, or none: there is nothing for a gate to do."""


class Share(Value):
    """Something of the machine that the task sees although it would not: `--share PATH[:ro]`."""

    path: str
    readonly: bool = False


class Container(Value):
    """What a hold of containers is told beside the rest. `options` are of those that worker.py lets through."""

    image: str
    transport: str = ""  # '' for the one that this engine has
    relay_image: str = ""  # '' for our own
    state: str = ""  # tidegate's state folder
    options: tuple[str, ...] = ()


class LaunchSpec(Value):
    """One task to be run. Paths are absolute; `workspace` is a real path.

    `readonly`, `guarded`, `closed`, `writable` and `strict` are what layers.py says of them; `readonly` is firm.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    workspace: str | None = None
    shares: tuple[Share, ...] = ()
    hidden: tuple[str, ...] = ()
    readonly: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    strict: bool = False
    port: int = GATE_PORT
    selftest: bool = True
    run_id: str = ""
    stdio: Any = None
    capture: str = OFF
    capture_ports: tuple[int, ...] = ()
    met: tuple[tuple[str, int], ...] = ()  # services of this machine, met inside (inside.py)
    published: tuple[int, ...] = ()  # ports of the task that the gate is to reach
    ssh_agent: bool = False
    trust: tuple[tuple[str, bytes], ...] = ()  # files that say whom to trust: where they are bound, and what is in them
    claim: Any = None  # a uid that was claimed for the hold `uid` (uid_claims.py)
    container: Container | None = None


class RunningTask:
    """A task that is held. It waits for `start`; all its processes end with `pid`, the init of its namespace."""

    def __init__(self, pid: int, control_fd: int, pty_master: int | None, watcher: int = 0) -> None:
        self.pid = pid
        self.control = control_fd
        self.pty_master = pty_master
        self.way = -1  # readable once the way to the gate is broken, where more than the gate can break it
        self.watcher = watcher  # our child that makes the task's connections, 0 for none
        self.after: list[Callable[[], None]] = []  # what is given back when nothing of it is left
        self.said: dict[int | None, str] = {}  # what its watcher means by an exit status
        self.last_words = ""
        self.serve_again: ServeAgain | None = None  # makes the gate's sockets anew: a task that outlives its gate
        self.kept: tuple[int, ...] = ()  # descriptors that this needs
        self.life: Life | None = None  # where `way` gives signs of life
        self.shut: Callable[..., bool] | None = None  # `shut=True`: connections are reset, the gate does not answer
        self.mounted: dict[str, str] = {}  # files that say whom to trust, where they are mounted: from place to source
        self._status: int | None = None

    def send(self, message: str) -> None:
        """Send one control message to init."""
        control.send(self.control, message)

    def start(self) -> None:
        """Let the command run."""
        self.send("start")

    def kill(self) -> None:
        """End everything of this task now."""
        if self._status is None:
            try:
                os.kill(self.pid, _signal.SIGKILL)
            except ProcessLookupError:
                return  # it has ended, and is still to be waited for

    def wait(self) -> int:
        """Wait for the end of init; its wait status. The control descriptor is closed."""
        if self._status is None:
            _pid, self._status = os.waitpid(self.pid, 0)
            os.close(self.control)
            if self.watcher:
                os.kill(self.watcher, _signal.SIGKILL)
                _pid, ended = os.waitpid(self.watcher, 0)
                self.last_words = self.said.get(os.waitstatus_to_exitcode(ended), "")
            for give_back in self.after:
                give_back()
        return self._status


class Hold(Protocol):
    """A mechanism that leaves the gate as the only way out, or none at all, or (by name) every way."""

    name: str
    has_gate: bool

    def probe(self) -> StartError | None:
        """Try it in a child that ends at once; why it cannot work here, or None."""

    def launch(self, spec: LaunchSpec, deliver: Callable[[TaskSockets], None] | None) -> RunningTask:
        """Build the hold and prove it; the task waits for `start`.

        `deliver` is called once with the sockets where the hold has a gate, and once with that of the ssh agent where
        the spec asks for one. Their descriptors are closed after the call.

        Raises:
            StartError: when anything is missing or does not work; nothing is left then.
        """

    def sweep(self) -> None:
        """Remove what a crash left."""


def gate_port(hold: Hold) -> int:
    """The port of 127.0.0.1, as the task sees it, at which this hold's gate will be.

    Raises:
        OSError: where the hold needs a port of this machine, and there is none.
    """
    own = getattr(hold, "own_port", None)
    return int(own()) if own is not None else GATE_PORT


def find_hold(name: str) -> Hold:
    """The hold of this name.

    Raises:
        KeyError: when there is none.
    """
    if name == "netns":
        from tidegate.holds.netns import NETNS

        return NETNS
    if name == "uid":
        from tidegate.holds.uid import UID

        return UID
    if name in ("docker", "podman"):
        from tidegate.holds.container.container_hold import ContainerHold

        return ContainerHold(name)
    if name == "landlock":
        from tidegate.holds.landlock_hold import LandlockHold

        return LandlockHold()
    if name == "offline":
        from tidegate.holds.offline import OFFLINE

        return OFFLINE
    if name == "open":
        from tidegate.holds.open import OPEN

        return OPEN
    raise KeyError(name)
