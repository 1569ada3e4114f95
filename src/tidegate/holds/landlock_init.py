"""The task's half of the hold `landlock`: its first process, its guard, and what the command gives up.

Init stands in one Landlock domain with the guard; the command, and the self-test before it, in another inside that
one. A signal to *all* (kill(2) with -1) reaches what a sender's domain lets it reach: everything that came from init.
It is never sent before it was tried, by this very process, that a signal to somebody outside is refused.
"""

from __future__ import annotations

import os

from tidegate.holds import capabilities, control, landlock, linux, selftest
from tidegate.holds.inside import SSH_AGENT
from tidegate.holds.own_folder import remove_own_folder
from tidegate.holds.seccomp import LANDLOCK, install, program
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
    from typing import NoReturn

    from tidegate.holds.canaries import Canaries
    from tidegate.holds.hold import LaunchSpec
    from tidegate.holds.landlock_view import View
else:
    import _signal  # signal itself makes enums at each start


class Init:
    """The child's half: the first process of the task, and what its children become."""

    def __init__(
        self,
        front: int,
        wire: int,
        spec: LaunchSpec,
        view: View,
        canaries: Canaries | None,
        finish: Callable[[Init], NoReturn],
    ) -> None:
        self.wire = wire
        self.spec = spec
        self._front = front
        self._view = view
        self._canaries = canaries
        self._finish = finish
        self._scoped = False
        self._own: list[int] = []

    def run(self) -> NoReturn:
        """Be the first process of the task; never returns."""
        stage = "enter"
        try:
            from tidegate.holds.init import fresh_signals

            fresh_signals()
            linux.prctl(linux.PR_SET_NAME, linux.path("tidegate-init"))
            linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
            control.close_all_but((self.wire, *(self.spec.stdio.keep() if self.spec.stdio else ())))
            if self.spec.ssh_agent:
                stage = "agent"
                self._offer_agent()
            self._finish(self)
        except BaseException as error:  # noqa: BLE001 (whatever it is, the front is told and this process ends)
            control.send_failed(self.wire, stage, error)
        os._exit(1)

    def _offer_agent(self) -> None:
        from tidegate.holds import unix_socket

        path, listener = unix_socket.listen((f"{self._view.folder}/run",))
        control.send(self.wire, f"sockets {SSH_AGENT}", (listener,))
        os.close(listener)
        self._own.append(os.open(path, os.O_PATH | os.O_CLOEXEC))
        self.spec.env["SSH_AUTH_SOCK"] = path

    def enter(self) -> None:
        """Give up what init gives up: rights, signals to others, calls of the filter. The command gives up the rest."""
        capabilities.drop_what_there_is()
        capabilities.no_new_privileges()
        landlock.scope()
        self._scoped = is_scoped(self._front)
        if not self._scoped:
            selftest.leak("a signal would reach processes of this machine")
        guard = self._set_guard()
        listener = install(program(LANDLOCK), listener=True)
        control.send(self.wire, f"watch {guard}", (listener, *self._own))
        for descriptor in (listener, *self._own):
            os.close(descriptor)  # who may look into init is Landlock's affair here, and the watcher must

    def _set_guard(self) -> int:
        reading, writing = os.pipe()
        guard = os.fork()
        if guard == 0:
            try:
                for number in range(1, _signal.NSIG):
                    if number not in (_signal.SIGKILL, _signal.SIGSTOP, 32, 33):
                        _signal.signal(number, _signal.SIG_IGN)
                control.close_all_but((reading,))
                null = os.open("/dev/null", os.O_RDONLY)
                for standard in range(3):
                    os.dup2(null, standard)
                os.read(reading, 1)
                self.end_all()
                remove_own_folder(self._view.folder)
            finally:
                os._exit(0)
        os.close(reading)
        self._guarding = writing  # open for as long as we live
        return guard

    def leave(self) -> None:
        """What init does last. When the front is gone the guard does it, who can also remove the task's folder."""
        if os.getppid() == self._front:
            self.end_all()

    def end_all(self) -> None:
        """Kill everything that came from init, but for this process."""
        if self._scoped and is_scoped(1):
            _kill_everybody()
        try:
            while True:
                os.waitpid(-1, 0)
        except ChildProcessError:
            return

    def confine(self, pty: int = -1) -> None:
        """Give up the rest, as the command: files, and every port but the gate's."""
        rules = list(self._view.rules)
        if pty >= 0:
            rules.append((os.ttyname(pty), landlock.DEVICE))
        landlock.confine(rules, self.spec.port)

    def test(self) -> None:
        """Try the fence in a process that is as confined as the command.

        Raises:
            StartError: where it leaks.
        """
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                self.confine()
                self._try_all()
            except BaseException as error:  # noqa: BLE001 (it is the answer)
                os.write(writing, str(error).encode()[:4000])
                os._exit(1)
            os._exit(0)
        os.close(writing)
        said = b""
        while part := os.read(reading, 4096):
            said += part
        os.close(reading)
        status = os.waitpid(child, 0)[1]
        if status:
            raise StartError(said.decode(errors="replace") or "the self-test of the hold was ended", code="self-test")

    def _try_all(self) -> None:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            selftest.check_confinement(file.read(), bounding=os.geteuid() == 0)
        selftest.check_watcher(f"{self._view.folder}/run/tidegate-selftest")
        if self._canaries is None:
            return
        selftest.check_sockets(LANDLOCK)
        selftest.check_canaries(self._canaries.targets, self._canaries.word, apart=False)
        self._try_files()
        if not is_scoped(self._front):
            selftest.leak("a signal would reach the front")
        selftest.ask_gate(self.spec.port)

    def _try_files(self) -> None:
        for path in self._view.hidden:
            try:
                os.listdir(path)
            except OSError:
                continue
            if os.path.isdir(path):
                selftest.leak(f"{path} can be listed inside")
        for path in ("environ", "mem", "root/etc/passwd"):
            try:
                os.close(os.open(f"/proc/{self._front}/{path}", os.O_RDONLY))
            except OSError:
                continue
            selftest.leak(f"/proc/PID/{path} of a process outside can be opened")


def _kill_everybody() -> None:
    """Kill all that a signal of ours reaches but this process. Only ever called where that is the task: see above."""
    try:
        os.kill(-1, _signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # there is nobody


def is_scoped(pid: int) -> bool:
    """Whether a signal to this process, which is none of the task's, is refused."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return False


def run_command(init: Init) -> NoReturn:
    """What init does but for a probe: see init.py."""
    from tidegate.holds.init import run_init

    spec = init.spec
    run_init(
        init.wire,
        argv=spec.argv,
        env=spec.env,
        cwd=spec.cwd,
        stdio=spec.stdio,
        enter=init.enter,
        selftest=init.test,
        become=init.confine,
        last=init.leave,
    )


def end(init: Init) -> NoReturn:
    """What init does in a probe: all but a command."""
    init.enter()
    init.test()
    control.send(init.wire, "probed")
    control.receive(init.wire)
    init.leave()
    os._exit(0)
