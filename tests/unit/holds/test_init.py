"""Init by itself, spoken to over its control socket (HLD-9, B98). Its PID namespace is the front's tests' business."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tidegate.holds import control
from tidegate.holds import init as init_module
from tidegate.holds.command import exec_command
from tidegate.holds.init import fresh_signals, run_init
from tidegate.holds.stdio import StdioPlan, Treatment

PATIENCE = 180.0
PLAIN = (Treatment.INHERIT,) * 3


class Init:
    """One init in a child of the test, and the front's end of its socket."""

    def __init__(self, argv: list[str], **more: Any) -> None:
        self.control, there = control.pair()
        self._input, theirs = os.pipe()
        null = os.open("/dev/null", os.O_RDWR)
        plan = StdioPlan(PLAIN, (null, theirs, theirs))
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.control)
            options: dict[str, Any] = {"env": dict(os.environ), "cwd": "/", "stdio": plan} | more
            run_init(there, argv=argv, **options)
        for fd in (there, theirs, null):
            os.close(fd)

    def hear(self) -> str | None:
        """Return the next message, None at the end."""
        ready, _, _ = select.select([self.control], [], [], PATIENCE)
        assert ready, "init says nothing"
        received = control.receive(self.control)
        return None if received is None else received[0]

    def say(self, message: str) -> None:
        """Send one message."""
        control.send(self.control, message)

    def begin(self) -> int:
        """See the command started and return its pid."""
        assert self.hear() == "probed"
        self.say("start")
        word, _, pid = (self.hear() or "").partition(" ")
        assert word == "started"
        return int(pid)

    def read(self) -> bytes:
        """Return what the command has written, at least a byte of it."""
        ready, _, _ = select.select([self._input], [], [], PATIENCE)
        assert ready, "the command writes nothing"
        return os.read(self._input, 65536)

    def end(self) -> int:
        """Hang up and return how init ended."""
        if self.control >= 0:
            os.close(self.control)
            os.close(self._input)
            self.control = -1
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status


@pytest.fixture
def start() -> Iterator[Callable[..., Init]]:
    """Start inits, and end them all."""
    inits: list[Init] = []

    def start(*argv: str, **more: Any) -> Init:
        inits.append(Init(list(argv), **more))
        return inits[-1]

    yield start
    for init in inits:
        init.end()


Start = Callable[..., Init]


def python(script: str) -> tuple[str, ...]:
    """Return the command line of a Python script."""
    return (sys.executable, "-S", "-c", script)


def test_it_reports_start_and_end_and_ends(start: Start) -> None:
    """The raw wait status comes back, then the end of file, then init's own end."""
    init = start("sh", "-c", "exit 3")
    init.begin()
    assert init.hear() == f"exited {3 << 8}"
    assert init.hear() is None
    assert init.end() == 0


def test_a_death_by_signal_is_reported_raw(start: Start) -> None:
    """The signal's number is the low byte of the status."""
    init = start("sh", "-c", "kill -KILL $$")
    init.begin()
    assert init.hear() == "exited 9"


def test_the_command_waits_for_the_start(start: Start, tmp_path: object) -> None:
    """HLD-11: nothing of the command runs before the front has said `start`; end of file means never."""
    init = start("touch", f"{tmp_path}/ran")
    assert init.hear() == "probed"
    assert init.end() == 0
    assert os.listdir(str(tmp_path)) == []


def test_a_signal_before_the_start_means_never(start: Start, tmp_path: object) -> None:
    """B98: asked to end before the command began, init ends and the command never runs."""
    init = start("touch", f"{tmp_path}/ran")
    assert init.hear() == "probed"
    init.say("signal 15")
    assert init.hear() is None
    assert init.end() == 0
    assert os.listdir(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("no-such-command",), "execfailed 2 not-found"),
        (("/etc/passwd",), "execfailed 13 not-executable"),
        (("/",), "execfailed 13 not-executable"),
    ],
)
def test_a_command_that_cannot_be_executed_is_reported(start: Start, argv: tuple[str, ...], message: str) -> None:
    """HLD-16: instead of `started`, why not; then init ends."""
    init = start(*argv)
    assert init.hear() == "probed"
    init.say("start")
    assert init.hear() == message
    assert init.hear() is None


def fail(error: BaseException) -> Callable[[], None]:
    """Return a step that fails like this."""

    def step() -> None:
        raise error

    return step


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"cwd": "/no/such/folder"}, "failed cwd 2 "),
        ({"enter": fail(OSError(1, "no seccomp here"))}, "failed enter 1 "),
        ({"selftest": fail(RuntimeError("a byte\narrived"))}, "failed selftest 0 a byte arrived"),
        ({"enter": fail(KeyboardInterrupt())}, "failed enter 0"),
    ],
)
def test_a_step_that_fails_ends_it_before_anything_runs(
    start: Start, tmp_path: object, more: dict[str, Any], message: str
) -> None:
    """HLD-7, HLD-11: a fence that cannot be put up, or that leaks, means no command, and says which step it was."""
    init = start("touch", f"{tmp_path}/ran", **more)
    assert (init.hear() or "").startswith(message)
    assert init.hear() is None
    assert init.end() == 1
    assert os.listdir(str(tmp_path)) == []


def test_confinement_comes_before_the_self_test_and_both_before_the_command(start: Start) -> None:
    """HLD-11, HLD-13: init itself enters the fence, then probes it, then forks."""
    steps: list[str] = []

    def selftest() -> None:
        if steps != ["enter"]:
            raise RuntimeError("out of order")

    init = start("true", enter=lambda: steps.append("enter"), selftest=selftest)
    init.begin()
    assert init.hear() == "exited 0"


def test_signals_reach_the_commands_group(start: Start) -> None:
    """B98: the command's children in its group get the signal too."""
    child = "signal.signal(15, lambda n, f: (os.write(1, b'child\\n'), os._exit(0)))"
    script = (
        "import os, signal, sys, time\n"
        f"if os.fork() == 0:\n    {child}\n    os.write(1, b'up\\n')\n    while True: time.sleep(0.02)\n"
        "signal.signal(15, lambda n, f: (os.wait(), os.write(1, b'parent\\n'), os._exit(4)))\n"
        "os.write(1, b'up\\n')\nwhile True: time.sleep(0.02)"
    )
    init = start(*python(script))
    init.begin()
    seen = b""
    while seen.count(b"up\n") < 2:
        seen += init.read()
    init.say("signal 15")
    assert init.hear() == f"exited {4 << 8}"
    assert init.read() == b"child\nparent\n"


def test_a_stop_is_reported_and_continued(start: Start) -> None:
    """HLD-9: `stopped` with the signal; `continue` sets it going, also where there is no terminal."""
    init = start(*python("import os, signal\nfor n in (19, 20, 21):\n    os.kill(os.getpid(), n)\nos._exit(5)"))
    init.begin()
    for number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN):
        assert init.hear() == f"stopped {int(number)}"
        init.say("continue bg")
    assert init.hear() == f"exited {5 << 8}"


def test_a_stop_before_the_command_is_executed_is_a_stop_like_any_other(start: Start) -> None:
    """HLD-9: Ctrl-Z between fork and exec is reported and continued; init does not wait for the exec meanwhile."""

    def stop_before_exec() -> None:
        def stopping(argv: Any, env: Any) -> tuple[int, str]:
            os.kill(os.getpid(), signal.SIGSTOP)
            return exec_command(argv, env)

        init_module.exec_command = stopping  # in init's own process only

    init = start("sh", "-c", "exit 8", enter=stop_before_exec)
    assert init.hear() == "probed"
    init.say("start")
    assert init.hear() == f"stopped {int(signal.SIGSTOP)}"
    init.say("continue bg")
    assert (init.hear() or "").startswith("started ")
    assert init.hear() == f"exited {8 << 8}"


def test_the_command_leads_a_group_in_inits_session(start: Start) -> None:
    """HLD-9: so it is not orphaned and can stop; the session is init's, not the one outside."""
    init = start(
        *python("import os\nos.write(1, b'%d %d' % (os.getpgrp() == os.getpid(), os.getsid(0) == os.getppid()))")
    )
    init.begin()
    assert init.read() == b"1 1"
    assert init.hear() == "exited 0"


def test_a_storm_of_children_does_not_drown_the_front(start: Start) -> None:
    """B98: while hundreds of orphans end a second, a signal still gets through at once."""
    script = (
        "import os, signal\nos.write(1, b'up\\n')\n"
        "while True:\n"
        "    if os.fork() == 0:\n"
        "        if os.fork() == 0: os._exit(0)\n"
        "        os._exit(0)\n"
        "    os.wait()"
    )
    init = start(*python(script))
    init.begin()
    init.read()
    init.say("signal 9")
    assert init.hear() == "exited 9"


def test_an_end_of_file_ends_init_while_the_command_runs(start: Start) -> None:
    """HLD-9: the front is gone, so init ends; in its namespace the kernel then ends the rest."""
    init = start("cat", "/dev/zero")
    pid = init.begin()
    assert init.end() == 0
    os.kill(pid, signal.SIGKILL)


def test_odd_messages_change_nothing(start: Start) -> None:
    """An unknown word is ignored; the command goes on."""
    init = start("sh", "-c", "sleep 0.2; exit 6")
    init.begin()
    init.say("nonsense here")
    init.say("continued fg")
    assert init.hear() == f"exited {6 << 8}"


def test_fresh_signals_drops_handlers_and_remembers_what_was_ignored() -> None:
    """A child of the front reports no signal to it, and knows what the user's shell had ignored."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGUSR1, lambda _n, _f: None)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        ignored = fresh_signals()
        handlers = [signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)]
        fine = ignored >= {1} and signal.SIGPIPE not in ignored and handlers == [0, 0, 1]
        os.write(writing, b"fine" if fine else b"odd")
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reading, 10) == b"fine"
    os.close(reading)
    os.close(writing)
