"""PID 1 of a task: forks the command, passes signals on, reaps everything, reports, and ends the task with itself.

Rules of the file:

* One thread, no import that the front has not paid for, no byte on the task's own descriptors.
* Init is as confined as the task (`enter` runs before the first fork), so nothing here needs a right that the task
  lacks.
* Init leads a session of its own; the command leads a process group in it. That keeps the command's group from being
  *orphaned* (POSIX 2.4.3), so that it stops on SIGTSTP, SIGTTIN and SIGTTOU as it would under a shell.
* The end of init is the end of the task: the kernel kills whatever is left in the PID namespace (pid_namespaces(7)).
  So init leaves when the command has ended and when the front is gone (end of file on the control socket).

The control socket is SOCK_SEQPACKET, one ASCII message a packet. To the front: `pty` (with the master's descriptor),
`probed`, `failed STAGE ERRNO TEXT`, `started PID`, `execfailed ERRNO KIND`, `stopped SIGNO`, `exited WAITSTATUS`.
From the front: `start [bg]`, `signal N`, `continue fg|bg`.

What it does not do: namespaces, mounts, capabilities, the self-test (holds/netns.py and its neighbours pass them in),
and deciding when to stop or continue (runtime/jobs.py).
"""

from __future__ import annotations

import errno
import os
import select

from tidegate.holds import control
from tidegate.holds.command import exec_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

    from tidegate.holds.stdio import StdioPlan
else:
    import _signal  # signal itself makes enums at each start

REAPS_A_TURN = 256  # under a storm of dying children the control socket still gets its turn
# Python ignores these two from its first instruction, so what they were on entry cannot be known; a command wants the
# default.
_PYTHON_IGNORES = frozenset({_signal.SIGPIPE, _signal.SIGXFSZ})


def fresh_signals() -> frozenset[int]:
    """Drop every handler inherited over a fork and return the signals that were ignored by whoever started us.

    For each child of the front, first of all: a handler of the front's would report the child's signals to the front.
    """
    _signal.set_wakeup_fd(-1)
    ignored = set()
    for number in range(1, _signal.NSIG):
        handler = _signal.getsignal(number)
        if handler == _signal.SIG_IGN:
            ignored.add(number)
        elif handler is not None and handler != _signal.SIG_DFL:
            _signal.signal(number, _signal.SIG_DFL)
    return frozenset(ignored - _PYTHON_IGNORES)


def run_init(
    control_fd: int,
    *,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    stdio: StdioPlan,
    enter: Callable[[], None] | None = None,
    selftest: Callable[[], None] | None = None,
    pass_on: Callable[[int], None] | None = None,
    ran: Callable[[int], bool] | None = None,
    become: Callable[[int], None] | None = None,
    last: Callable[[], None] | None = None,
) -> NoReturn:
    """Be PID 1 until the task is over. Never returns and never raises; every failure is a `failed` message.

    `enter` drops privileges for good and raises where it cannot; `selftest` raises where the fence leaks. `pass_on`
    takes signals for the command where that is not our child but a container's, and `ran` says by our child's wait
    status whether there was a command at all. A hold without a PID namespace gives `become`, what the command gives up
    besides (it is given the pty, or -1), and `last`, which ends all that is left.
    """
    stage = "session"
    try:
        init = _Init(control_fd, stdio, pass_on, ran, become, last)
        init.prepare()
        if stdio.wants_pty:
            stage = "pty"
            init.make_pty()
        stage = "cwd"
        os.chdir(cwd)
        stage = "enter"
        if enter is not None:
            enter()
        stage = "selftest"
        if selftest is not None:
            selftest()
        front = init.wait_for_start()
        stage = "fork"
        init.fork_command(argv, env, front=front)
        stage = "loop"
        init.loop()
    except BaseException as error:  # noqa: BLE001  # whatever it is: PID 1 must end and say why
        control.send_failed(control_fd, stage, error)
        if last is not None:
            last()
    os._exit(1)


class _Init:
    def __init__(
        self,
        control_fd: int,
        stdio: StdioPlan,
        pass_on: Callable[[int], None] | None = None,
        ran: Callable[[int], bool] | None = None,
        become: Callable[[int], None] | None = None,
        last: Callable[[], None] | None = None,
    ) -> None:
        self._become = become
        self._last = last
        self._control = control_fd
        self._pass_on = pass_on
        self._ran = ran
        self._stdio = stdio
        self._slave = -1
        self._command = 0
        self._report = -1  # says why exec failed, or ends when it has closed the other end
        self._ignored: frozenset[int] = frozenset()
        self._wake = -1

    def _leave(self) -> NoReturn:
        if self._last is not None:
            self._last()
        os._exit(0)

    def prepare(self) -> None:
        os.set_inheritable(self._control, False)
        self._ignored = fresh_signals()
        try:
            os.setsid()
        except PermissionError:
            if os.getsid(0) != os.getpid():
                raise  # leads a group but no session: the terminal outside would stay ours
        # tcsetpgrp from the background of a terminal would stop us otherwise; PID 1 has no default action to stop it.
        _signal.signal(_signal.SIGTTOU, _signal.SIG_IGN)
        _signal.signal(_signal.SIGHUP, _signal.SIG_IGN)
        self._wake, writing = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(writing, False)
        _signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        _signal.signal(_signal.SIGCHLD, _nothing)

    def make_pty(self) -> None:
        import termios
        from fcntl import ioctl

        terminal = self._stdio.terminal
        assert terminal is not None
        master, self._slave = os.openpty()
        # In the background the real modes are the shell's line editor's; the front copies them once we are in front.
        attributes = list(terminal.attributes) if terminal.foreground else termios.tcgetattr(self._slave)
        # In the background of the pty a write with TOSTOP would stop: right where the front is in the background too.
        stops = terminal.attributes[3] & termios.TOSTOP if not terminal.foreground or terminal.full else 0
        attributes[3] = (attributes[3] & ~termios.TOSTOP) | stops
        termios.tcsetattr(self._slave, termios.TCSANOW, attributes)
        ioctl(self._slave, termios.TIOCSWINSZ, terminal.size)
        ioctl(self._slave, termios.TIOCSCTTY, 0)
        control.send(self._control, "pty", [master])
        os.close(master)

    def wait_for_start(self) -> bool:
        """Return whether the command begins in the foreground of its pty."""
        self._send("probed")
        while not (message := self._receive()).startswith("start"):
            if message.startswith("signal "):
                self._leave()
        return self._stdio.starts_in_foreground and message != "start bg"

    def fork_command(self, argv: Sequence[str], env: Mapping[str, str], *, front: bool) -> None:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._become_command(writing, argv, env, front=front)
        self._command = pid
        os.close(writing)
        self._release_stdio()
        self._report = reading

    def _become_command(self, report: int, argv: Sequence[str], env: Mapping[str, str], *, front: bool) -> NoReturn:
        code, kind = errno.EINVAL, "cannot"
        try:
            os.setpgid(0, 0)
            if self._become is not None:
                self._become(self._slave)
            if front:
                os.tcsetpgrp(self._slave, os.getpid())
            for target, source in enumerate(self._stdio.task_fds):
                fd = source if source >= 0 else self._slave
                if fd != target:
                    os.dup2(fd, target)
                else:
                    os.set_inheritable(fd, True)
            os.dup2(report, 3, inheritable=False) if report != 3 else None
            os.closerange(4, os.sysconf("SC_OPEN_MAX"))
            _signal.set_wakeup_fd(-1)
            for number in range(1, _signal.NSIG):
                if _signal.getsignal(number) is not None:
                    _set_signal(number, _signal.SIG_IGN if number in self._ignored else _signal.SIG_DFL)
            code, kind = exec_command(argv, env)
        except BaseException as error:  # noqa: BLE001  # init's own way out is not this process's
            code = (isinstance(error, OSError) and error.errno) or errno.EINVAL
        os.write(3, f"{code} {kind}".encode("ascii"))
        os._exit(127)

    def _release_stdio(self) -> None:
        # The command has its own copies now; ours would keep a pipe open that the command has closed.
        null = os.open("/dev/null", os.O_RDWR)
        for target in range(3):
            os.dup2(null, target, inheritable=False)
        os.close(null)
        for fd in self._stdio.keep():
            if fd > 2:
                os.close(fd)

    def loop(self) -> NoReturn:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        # Watched like all else: the command can be stopped by Ctrl-Z before it is executed.
        poll.register(self._report, select.POLLIN)
        more = True  # a child may have died before the handler was watched
        while True:
            ready = dict(poll.poll(0 if more else None))
            if self._report in ready:
                poll.unregister(self._report)
                self._hear_command()
            if self._wake in ready:
                _drain(self._wake)
            if more or self._wake in ready:
                more = self._reap()
            if self._control in ready:
                self._obey(self._receive())

    def _hear_command(self) -> None:
        """Learn whether exec went well; the few bytes of a failure were written at once."""
        problem = os.read(self._report, 512)
        os.close(self._report)
        self._report = -1
        if problem:
            self._send("execfailed " + problem.decode("ascii"))
            self._leave()
        self._send(f"started {self._command}")

    def _reap(self) -> bool:
        """Collect what has ended or stopped; True when there may be more."""
        for _ in range(REAPS_A_TURN):
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return False
            if pid == 0:
                return False
            if pid != self._command:
                continue
            if os.WIFSTOPPED(status):
                self._send(f"stopped {os.WSTOPSIG(status)}")
                continue
            if self._report >= 0:
                self._hear_command()
            if self._ran is not None and not self._ran(status):
                self._send("failed container 0 the container could not be started")
            else:
                self._send(f"exited {status}")
            self._leave()
        return True

    def _obey(self, message: str) -> None:
        word, _, argument = message.partition(" ")
        if word == "signal":
            self._signal(int(argument))
        elif word == "continue":
            if self._slave >= 0:
                group = self._command if argument == "fg" else os.getpgrp()
                _quietly(os.tcsetpgrp, self._slave, group)
            self._signal(_signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._pass_on is not None and number != _signal.SIGCONT:
            self._pass_on(number)
            return
        _quietly(os.killpg, self._command, number)
        try:
            moved = os.getpgid(self._command) != self._command
        except OSError:
            return
        if moved:
            _quietly(os.kill, self._command, number)

    def _send(self, message: str) -> None:
        try:
            control.send(self._control, message)
        except OSError:
            self._leave()  # the front is gone, so the task ends

    def _receive(self) -> str:
        try:
            received = control.receive(self._control)
        except OSError:
            received = None
        if received is None:
            self._leave()
        return received[0]


def _nothing(_number: int, _frame: object) -> None:
    """Be a handler: only one that exists makes the wake-up pipe readable."""


def _set_signal(number: int, disposition: _signal.Handlers) -> None:
    try:
        _signal.signal(number, disposition)
    except OSError:
        return  # SIGKILL, SIGSTOP


def _drain(fd: int) -> None:
    try:
        while len(os.read(fd, 512)) == 512:
            pass
    except BlockingIOError:
        return


def _quietly(call: Callable[[int, int], None], target: int, number: int) -> None:
    try:
        call(target, number)
    except OSError:
        return  # it has just ended; waitpid tells
