"""The front without a terminal: status, streams, signals, the watchdog (HLD-7, HLD-9, HLD-13, HLD-16, B95, B98)."""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.runtime.pty_session import BARE_RUN, PATIENCE, wait_until

RUN = [sys.executable, "-I", "-S", BARE_RUN]
GONE = "tidegate: the gate is gone; the task's network is cut off and it is being ended\n"


def run(*command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command under the front, away from any terminal."""
    options = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": PATIENCE} | options
    return subprocess.run([*RUN, *command], check=False, start_new_session=True, **options)


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start commands under fronts, and see them all off."""
    fronts: list[subprocess.Popen[str]] = []

    def start(*command: str, options: tuple[str, ...] = (), **more: Any) -> subprocess.Popen[str]:
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, "text": True} | more
        fronts.append(subprocess.Popen([*RUN, *options, *command], start_new_session=True, **more))
        return fronts[-1]

    yield start
    for front in fronts:
        front.kill()
        front.wait(PATIENCE)
        for stream in (front.stdout, front.stderr):
            if stream is not None:
                stream.close()


def python(script: str) -> tuple[str, ...]:
    """Return the command line of a Python script."""
    return (sys.executable, "-S", "-c", script)


Start = Callable[..., "subprocess.Popen[str]"]

WAITS = python("import os, time\nos.write(1, b'ready\\n')\ntime.sleep(1000)")
STUBBORN = python(
    "import os, signal, time\n"
    "for name in ('TERM', 'INT', 'HUP'):\n"
    "    signal.signal(getattr(signal, 'SIG' + name), lambda n, f: os.write(1, b'caught %d\\n' % n))\n"
    "os.write(1, b'ready\\n')\n"
    "while True:\n    time.sleep(0.02)"
)


def line(front: subprocess.Popen[str]) -> str:
    """Read one line of the task."""
    assert front.stdout is not None
    ready, _, _ = select.select([front.stdout], [], [], PATIENCE)
    assert ready, "no line came"
    return front.stdout.readline()


@pytest.mark.parametrize("status", [0, 1, 2, 70, 78, 125, 255])
def test_the_commands_own_status_passes_through(status: int) -> None:
    """HLD-16: whatever number the command ends with, run ends with."""
    assert run("sh", "-c", f"exit {status}").returncode == status


@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV", "PIPE", "HUP", "USR1", "ALRM"])
def test_a_death_by_signal_is_128_and_its_number(name: str) -> None:
    """HLD-16: 128+n, as a shell says it, and the front does not die of that signal itself."""
    number = getattr(signal, f"SIG{name}")
    assert run("sh", "-c", f"ulimit -c 0; kill -{name} $$").returncode == 128 + number


def test_a_death_by_sigint_is_passed_on_as_one() -> None:
    """HLD-9: the front dies of SIGINT too, which is what makes a shell's script stop."""
    assert run("sh", "-c", "kill -INT $$").returncode == -signal.SIGINT


def test_a_command_that_does_not_exist_is_127() -> None:
    """HLD-16: 127 and one line, for a name that PATH does not have and for a path that is not there."""
    done = run("no-such-command")
    assert (done.returncode, done.stderr) == (127, "tidegate: no-such-command: command not found\n")
    done = run("/no/such/file")
    assert (done.returncode, done.stderr) == (127, "tidegate: /no/such/file: no such file\n")


def test_a_file_that_is_not_executable_is_126() -> None:
    """HLD-16: 126 and one line that says why."""
    done = run("/etc/passwd")
    assert (done.returncode, done.stderr) == (126, "tidegate: /etc/passwd: permission denied\n")


def test_bytes_pass_through_pipes_untouched() -> None:
    """HLD-9, HLD-13: pipes are the task's own: a megabyte of every byte value comes out as it went in."""
    data = bytes(range(256)) * 4096
    done = run("cat", input=data, text=False, stdin=None)
    assert done.stdout == data
    assert done.stderr == b""


def test_a_regular_file_is_written_at_its_place(tmp_path: object) -> None:
    """HLD-13: files are inherited with their position, for reading and for appending."""
    path = f"{tmp_path}/out"
    with open(path, "w+") as file:
        file.write("first\n")
        file.flush()
        assert run("sh", "-c", "echo second", stdout=file, capture_output=False).returncode == 0
        file.seek(6)
        assert file.read() == "second\n"


def test_closed_streams_are_dev_null() -> None:
    """HLD-9: with 0, 1 and 2 closed the command finds /dev/null there, and nothing of ours."""
    script = (
        "import os, sys\nfor fd in (0, 1, 2): assert os.readlink(f'/proc/self/fd/{fd}') == '/dev/null'\nsys.exit(7)"
    )
    argv = [*RUN, *python(script)]
    done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *argv], check=False, timeout=PATIENCE)
    assert done.returncode == 7


def test_the_command_has_no_descriptor_but_its_three() -> None:
    """HLD-13: descriptors inherited by run, and run's own, are closed in the command."""
    reading, writing = os.pipe()
    script = "import os; print(sorted(int(name) for name in os.listdir('/proc/self/fd')))"
    done = run(*python(script), pass_fds=(reading, writing))
    assert done.stdout == "[0, 1, 2, 3]\n"  # 3 is the listing itself
    os.close(reading)
    os.close(writing)


def test_a_socket_is_replaced_by_a_pipe_and_relayed(start: Start) -> None:
    """HLD-13: with a socket as all three streams the command sees pipes; bytes and both ends of file come through."""
    ours, theirs = socket.socketpair()
    script = (
        "import os, stat, sys\n"
        "print([stat.S_ISFIFO(os.fstat(fd).st_mode) for fd in (0, 1, 2)], flush=True)\n"
        "data = sys.stdin.buffer.read()\nprint(len(data), flush=True)\nprint('to error', file=sys.stderr)"
    )
    with ours:
        front = start(*python(script), stdin=theirs, stdout=theirs, stderr=theirs)
        theirs.close()
        ours.settimeout(PATIENCE)
        ours.sendall(b"x" * 300000)
        ours.shutdown(socket.SHUT_WR)
        text = b""
        while part := ours.recv(65536):
            text += part
        assert text == b"[True, True, True]\n300000\nto error\n"
        assert front.wait(PATIENCE) == 0


def test_a_reader_that_leaves_gives_the_command_its_sigpipe_through_a_socket(start: Start) -> None:
    """HLD-13: when the peer of a relayed socket is gone, the command's next write ends it, as it would alone."""
    ours, theirs = socket.socketpair()
    front = start("sh", "-c", "exec yes", stdout=theirs)
    theirs.close()
    ours.settimeout(PATIENCE)
    assert ours.recv(2) == b"y\n"
    ours.close()
    assert front.wait(PATIENCE) == 128 + signal.SIGPIPE


def test_a_slow_reader_gets_the_last_output_whole(start: Start) -> None:
    """HLD-9: after the command has ended, what its relayed output still holds is delivered, once."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with ours:
        front = start("sh", "-c", "seq 1 9000; echo end", stdout=theirs)
        theirs.close()
        time.sleep(0.5)
        ours.settimeout(PATIENCE)
        text = b""
        while part := ours.recv(4096):
            text += part
        assert text == b"".join(b"%d\n" % number for number in range(1, 9001)) + b"end\n"
        assert front.wait(PATIENCE) == 0


def test_a_stream_the_command_closes_ends_for_its_reader(start: Start) -> None:
    """HLD-9: neither front nor init holds a pipe open: a pipeline goes on when the command closes its output."""
    front = start(
        *python("import os, time\nos.write(1, b'all\\n')\nos.close(1)\nos.close(2)\ntime.sleep(1000)"), stderr=None
    )
    assert front.stdout is not None
    assert line(front) == "all\n"
    ready, _, _ = select.select([front.stdout], [], [], PATIENCE)
    assert ready
    assert front.stdout.read() == ""
    assert front.poll() is None
    front.terminate()
    assert front.wait(PATIENCE) == 128 + signal.SIGTERM


def test_the_commands_sigpipe_is_the_default(start: Start) -> None:
    """HLD-9: `run -- yes | head` ends: yes dies of SIGPIPE instead of complaining."""
    front = start("yes")
    assert line(front) == "y\n"
    assert front.stdout is not None
    front.stdout.close()
    assert front.wait(PATIENCE) == 128 + signal.SIGPIPE
    assert front.stderr is not None
    assert front.stderr.read() == ""


def test_signal_dispositions_and_mask_are_the_defaults() -> None:
    """HLD-9: nothing of Python's or the front's own set-up reaches the command."""
    script = "grep -E 'Sig(Blk|Ign)' /proc/self/status"
    assert run("sh", "-c", script).stdout == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"


def test_what_the_user_ignored_stays_ignored(start: Start) -> None:
    """HLD-9: under nohup, and behind a script's `&`, the command ignores what run was started to ignore."""

    def ignore() -> None:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)

    done = run("sh", "-c", "grep SigIgn /proc/self/status", preexec_fn=ignore)
    assert int(done.stdout.split()[1], 16) == 0b111
    front = start(*WAITS, preexec_fn=ignore)
    assert line(front) == "ready\n"
    front.send_signal(signal.SIGHUP)
    front.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert front.poll() is None
    front.terminate()
    assert front.wait(PATIENCE) == 143


def test_umask_priority_limits_folder_and_affinity_are_kept(tmp_path: object) -> None:
    """HLD-9: what a process inherits from the user's shell arrives at the command."""

    def prepare() -> None:
        os.umask(0o027)
        os.nice(3)
        resource.setrlimit(resource.RLIMIT_NOFILE, (222, 333))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    before = os.nice(0)
    script = "umask; nice; ulimit -Sn; ulimit -Hn; pwd -P; nproc"
    done = run("sh", "-c", script, preexec_fn=prepare, cwd=str(tmp_path))
    expected = ["0027", str(min(19, before + 3)), "222", "333", os.path.realpath(str(tmp_path)), "1"]
    assert done.stdout.split() == expected


@pytest.mark.parametrize("name", ["TERM", "HUP", "INT", "QUIT", "USR1", "USR2", "ALRM"])
def test_signals_to_the_front_are_the_commands(start: Start, name: str) -> None:
    """B98: each signal a supervisor sends is forwarded once, and the command's own answer to it is the status."""
    number = getattr(signal, f"SIG{name}")
    script = (
        "import os, signal, sys, time\n"
        f"signal.signal({int(number)}, lambda n, f: (os.write(1, b'got\\n'), sys.exit(9)))\n"
        "os.write(1, b'ready\\n')\nwhile True: time.sleep(0.02)"
    )
    front = start(*python(script))
    assert line(front) == "ready\n"
    front.send_signal(number)
    assert front.wait(PATIENCE) == 9
    assert front.stdout is not None
    assert front.stdout.read() == "got\n"


def test_sigterm_ends_the_commands_whole_group(start: Start) -> None:
    """B98: children of the command get the signal too, as a terminal or a supervisor of the group would give it."""
    child = "(trap 'echo child; exit' TERM; while :; do sleep 0.02; done)"
    script = f"trap 'echo parent; exit 3' TERM; {child} & echo ready; wait"
    front = start("bash", "-c", script)
    assert line(front) == "ready\n"
    time.sleep(0.1)
    front.terminate()
    assert front.wait(PATIENCE) == 3
    assert front.stdout is not None
    assert "parent\n" in front.stdout.read()


def test_a_second_signal_a_second_later_kills(start: Start) -> None:
    """B98: a command that survives SIGTERM is killed when asked again, and the status says by what."""
    front = start(*STUBBORN)
    assert line(front) == "ready\n"
    front.terminate()
    assert line(front) == "caught 15\n"
    time.sleep(1.1)
    front.terminate()
    assert front.wait(PATIENCE) == 128 + signal.SIGKILL


def test_timeouts_double_signal_is_one_ask() -> None:
    """timeout(1) signals the front and then its own group: the command keeps its grace to clean up.

    Its time is over when SIGALRM comes, whoever sends it: here once the command is ready.
    """
    script = python(
        "import os, signal, sys, time\ndef f(n, _): time.sleep(0.6); os.write(1, b'clean\\n'); sys.exit(4)\n"
        "signal.signal(15, f)\nos.write(1, b'ready\\n')\nwhile True: time.sleep(0.02)"
    )
    with subprocess.Popen(["timeout", "600", *RUN, *script], stdout=subprocess.PIPE, text=True) as timeout:
        try:
            assert line(timeout) == "ready\n"
            timeout.send_signal(signal.SIGALRM)
            assert timeout.communicate(timeout=PATIENCE)[0] == "clean\n"
        finally:
            timeout.terminate()
    assert timeout.returncode == 124


def test_asked_to_end_before_it_began_nothing_runs(start: Start, tmp_path: object) -> None:
    """B98: a SIGTERM while the task is still being built means that the command never runs."""
    path = f"{tmp_path}/ran"
    for delay in (0.0, 0.01, 0.02, 0.03, 0.05):
        front = start("sh", "-c", f"trap '' TERM; touch {path}; exit 5")
        time.sleep(delay)
        front.terminate()
        assert front.wait(PATIENCE) in {-15, 143, 5}
        if os.path.exists(path):
            break  # by now the command had begun


def test_nothing_survives_the_command() -> None:
    """B98: a detached child (setsid, own group, signals ignored) is gone when run has returned."""
    detached = f"sleep 9{os.getpid()}"  # no other run of this test on this machine has it
    script = f"setsid sh -c 'trap \"\" HUP TERM; exec {detached}' & sleep 0.1; exit 3"
    assert run("sh", "-c", script).returncode == 3
    done = subprocess.run(["pgrep", "-xf", detached], check=False, capture_output=True)
    assert done.stdout == b""


def test_nothing_survives_the_front(start: Start) -> None:
    """HLD-9: when the front is killed by SIGKILL its task ends, init first."""
    left = f"sleep 8{os.getpid()}"
    front = start("sh", "-c", f"echo ready; {left}")
    assert line(front) == "ready\n"
    front.kill()
    front.wait(PATIENCE)
    wait_until(lambda: subprocess.run(["pgrep", "-xf", left], check=False, capture_output=True).stdout == b"", "it")


def test_orphans_are_reaped() -> None:
    """B98: a hundred double forks leave no zombie behind, while the command still runs."""
    script = (
        "import os, time\n"
        "for _ in range(100):\n"
        "    if os.fork() == 0:\n"
        "        if os.fork() == 0:\n            os._exit(0)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "def zombies():\n"
        "    found = 0\n"
        "    for name in os.listdir('/proc'):\n"
        "        if name.isdigit():\n"
        "            try: found += open(f'/proc/{name}/stat').read().rpartition(')')[2].split()[0] == 'Z'\n"
        "            except OSError: pass\n"
        "    return found\n"
        "end = time.monotonic() + 20\n"
        "while zombies() and time.monotonic() < end: time.sleep(0.02)\n"
        "print(zombies())"
    )
    assert run(*python(script)).stdout == "0\n"


def test_a_command_that_stops_itself_stops_the_front_and_goes_on_with_it(start: Start) -> None:
    """HLD-9: without a terminal too: a supervisor sees the job stop and continues it."""
    front = start("sh", "-c", "echo ready; kill -STOP $$; echo on; exit 6")
    assert line(front) == "ready\n"
    assert os.WIFSTOPPED(os.waitpid(front.pid, os.WUNTRACED)[1])
    front.send_signal(signal.SIGCONT)
    assert line(front) == "on\n"
    assert front.wait(PATIENCE) == 6


def test_sigtstp_to_an_orphaned_front_does_not_hang_the_command(start: Start) -> None:
    """HLD-9: where no shell could continue it, SIGTSTP changes nothing, as for a lone command."""
    front = start(*python("import os, time\nos.write(1, b'ready\\n')\ntime.sleep(0.5)\nos.write(1, b'on\\n')"))
    assert line(front) == "ready\n"
    front.send_signal(signal.SIGTSTP)
    assert line(front) == "on\n"
    assert front.wait(PATIENCE) == 0


def gate_of_our_own() -> tuple[int, int]:
    """Return the front's and the gate's end of a channel."""
    front_end, gate_end = socket.socketpair()
    return front_end.detach(), gate_end.detach()


def test_a_lost_gate_ends_the_task_with_70(start: Start, tmp_path: object) -> None:
    """HLD-7, B95: end of file from the gate: one line, SIGTERM, exit 70, and the status file says whose."""
    ours, gate = gate_of_our_own()
    path = f"{tmp_path}/status"
    front = start(*WAITS, options=("--gate", str(ours), "--status", path), pass_fds=(ours,))
    os.close(ours)
    assert line(front) == "ready\n"
    os.close(gate)
    assert front.wait(PATIENCE) == 70
    assert front.stderr is not None
    assert front.stderr.read() == GONE
    with open(path) as file:
        assert file.read() == "tidegate 70 15"


def test_a_task_that_does_not_end_without_its_gate_is_killed(start: Start) -> None:
    """HLD-7: two seconds of grace, then SIGKILL."""
    ours, gate = gate_of_our_own()
    front = start(*STUBBORN, options=("--gate", str(ours)), pass_fds=(ours,))
    os.close(ours)
    assert line(front) == "ready\n"
    os.close(gate)
    assert line(front) == "caught 15\n"
    assert front.wait(PATIENCE) == 70


def test_a_stopped_task_without_its_gate_ends_too(start: Start) -> None:
    """HLD-7: a task that was stopped from inside the machine is not left behind, stopped."""
    ours, gate = gate_of_our_own()
    front = start("sh", "-c", "echo ready; sleep 1000", options=("--gate", str(ours)), pass_fds=(ours,))
    os.close(ours)
    assert line(front) == "ready\n"
    os.close(gate)
    assert front.wait(PATIENCE) == 70


def test_a_broken_way_to_the_gate_ends_the_task_with_70(start: Start) -> None:
    """HLD-7: a relay that is gone is told as a gate that is gone, while the gate itself is well."""
    ours, gate = gate_of_our_own()
    way, relay = gate_of_our_own()
    front = start(*WAITS, options=("--gate", str(ours), "--way", str(way)), pass_fds=(ours, way))
    os.close(ours)
    os.close(way)
    assert line(front) == "ready\n"
    os.close(relay)
    assert front.wait(PATIENCE) == 70
    os.close(gate)
    assert front.stderr is not None
    said = front.stderr.read()
    assert said.count("\n") == 1
    assert "relay" in said


def test_a_way_that_ends_after_the_command_is_no_loss() -> None:
    """HLD-7: only one that breaks while the task runs is lost."""
    way, relay = gate_of_our_own()
    done = run("--way", str(way), "true", pass_fds=(way,))
    os.close(way)
    os.close(relay)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_gate_that_ends_after_the_command_is_no_loss() -> None:
    """HLD-7: only a gate that goes while the task runs is lost."""
    ours, gate = gate_of_our_own()
    done = run("--gate", str(ours), "true", pass_fds=(ours,))
    os.close(ours)
    os.close(gate)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_standard_error_does_not_stop_the_watchdog(start: Start) -> None:
    """HLD-7: with nobody to read the line, the task is ended all the same."""
    ours, gate = gate_of_our_own()
    reading, writing = os.pipe()
    front = start(*WAITS, options=("--gate", str(ours)), pass_fds=(ours,), stderr=writing)
    os.close(ours)
    os.close(writing)
    os.close(reading)
    assert line(front) == "ready\n"
    os.close(gate)
    assert front.wait(PATIENCE) == 70


def test_no_terminal_code_is_loaded_without_a_terminal() -> None:
    """The lean start: neither termios nor the relay comes along for plain streams."""
    script = (
        f"import sys; sys.path.insert(0, {os.path.dirname(BARE_RUN)!r}); sys.argv = ['x']\nimport bare_run, os\n"
        "def look(outcome):\n"
        "    heavy = {'termios', 'tidegate.runtime.terminal', 'tidegate.runtime.relay', 'signal'}\n"
        "    print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
        "    os._exit(outcome.exit_status)\n"
        "bare_run.die_like = look\nbare_run.main(['true'])"
    )
    argv = [sys.executable, "-I", "-S", "-c", script]
    with open("/dev/null") as null:
        done = subprocess.run(argv, stdin=null, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_init_killed_from_outside_is_said_to_be_tidegates(start: Start, tmp_path: object) -> None:
    """HLD-7: when init is killed the whole task is, and the status is not mistaken for the command's."""
    path = f"{tmp_path}/status"
    front = start(*WAITS, options=("--status", path))
    assert line(front) == "ready\n"
    with open(f"/proc/{front.pid}/task/{front.pid}/children") as file:
        os.kill(int(file.read().split()[0]), signal.SIGKILL)
    assert front.wait(PATIENCE) == 128 + signal.SIGKILL
    with open(path) as file:
        assert file.read() == "tidegate 137 9"


def test_the_status_file_tells_the_commands_70_from_ours(tmp_path: object) -> None:
    """HLD-7: a command that ends with 70 itself is its own source."""
    path = f"{tmp_path}/status"
    assert run("--status", path, "sh", "-c", "exit 70").returncode == 70
    with open(path) as file:
        assert file.read() == "command 70 0"
