"""The life of a task without a PID namespace: all that came from init ends, whatever ends first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from tests.holds import held
from tests.holds.test_conformance import Held, gone, processes
from tidegate.holds import landlock_init


def test_the_guard_ends_a_task_whose_front_and_init_are_killed_at_once() -> None:
    """Kill -9 of both leaves no process: the guard is a third that neither can take along (HLD-7, HLD-9)."""
    task = Held("landlock", held.USERS[-1])
    try:
        sleepers = task.sleepers()
        assert sleepers
        os.kill(task.init, signal.SIGSTOP)
        os.kill(task.front, signal.SIGKILL)
        os.kill(task.init, signal.SIGKILL)
        assert gone([task.init, *sleepers])
    finally:
        task.close()


def test_a_storm_of_forks_ends_with_its_command() -> None:
    """Processes that fork for ever and ignore every signal end in one step (HLD-9, B98)."""
    mark = f"88{os.getpid()}"
    program = (
        "import os, signal, sys, time\n"
        "for number in range(1, 65):\n"
        "    if number not in (9, 19, 32, 33): signal.signal(number, signal.SIG_IGN)\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        until = time.monotonic() + 30\n"
        "        while time.monotonic() < until:\n"
        "            if os.fork(): os._exit(0)\n"
        f"            sys.argv = ['{mark}']\n"
        "time.sleep(0.3)\n"
    )
    answer = held.hold("landlock", [held.PYTHON, "-I", "-c", program, mark])
    assert answer["status"] == 0, answer
    assert gone(processes(mark))


def test_a_signal_to_all_is_never_sent_where_it_would_reach_others() -> None:
    """Outside a Landlock domain nothing is sent: it would be everybody's end (HLD-9)."""
    code = (
        "import os, sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from tidegate.holds import landlock_init\n"
        "sent = []\n"
        "landlock_init._kill_everybody = lambda: sent.append(1)\n"
        "print(landlock_init.is_scoped(os.getppid()))\n"
        "init = landlock_init.Init(os.getppid(), -1, None, None, None, None)\n"
        "init.end_all(); print(sent)\n"
    )
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(landlock_init.__file__))))
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, source], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False\n[]\n"


def test_others_of_the_same_user_are_out_of_reach() -> None:
    """Signals, /proc, tracing and priorities of a process outside: each is refused (HLD-13)."""
    other = subprocess.Popen(["/bin/sleep", "60"])
    program = (
        "import ctypes, os, sys\n"
        "pid = int(sys.argv[1]); libc = ctypes.CDLL(None, use_errno=True)\n"
        "def attempt(call, *a):\n"
        "    try: call(*a)\n"
        "    except OSError as error: return error.errno\n"
        "    return 0\n"
        "print(attempt(os.kill, pid, 0), attempt(os.kill, pid, 9), attempt(os.setpriority, 0, pid, 5),"
        " attempt(os.sched_setaffinity, pid, [0]), libc.ptrace(16, pid, 0, 0),"
        " *[attempt(open, f'/proc/{pid}/{name}') for name in ('environ', 'mem', 'maps', 'fd/0', 'root/etc/passwd')])\n"
    )
    try:
        answer = held.hold("landlock", [held.PYTHON, "-I", "-c", program, str(other.pid)])
        assert answer["out"] == "1 1 1 1 -1 13 13 13 13 13\n", answer
        time.sleep(0.05)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
