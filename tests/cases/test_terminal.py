"""`./tidegate run` itself at a terminal, in a pipeline and without its gate (HLD-7, HLD-9, B95, B98)."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.runtime.pty_session import PATIENCE, Session, wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUN = f"{ROOT}/tidegate run --quiet --no-folder-policy --"
BASH = ("/bin/bash", "--norc", "--noprofile", "--noediting", "-i")
WAITS = f"{sys.executable} -S -c 'import os, time; os.write(2, bytes([114, 101, 97, 100, 121, 10])); time.sleep(1000)'"


def environment(tmp_path: Any) -> dict[str, str]:
    """A home and a state folder of the test's own."""
    os.makedirs(f"{tmp_path}/home", exist_ok=True)
    os.makedirs(f"{tmp_path}/work", exist_ok=True)
    return {"HOME": f"{tmp_path}/home", "XDG_STATE_HOME": f"{tmp_path}/home/state", "PWD": f"{tmp_path}/work"}


@pytest.fixture
def shell(tmp_path: object) -> Iterator[Session]:
    """A person at an interactive bash in an empty folder."""
    with Session(*BASH, env=environment(tmp_path)) as session:
        session.expect(r"\$ $")
        session.type(f"cd {tmp_path}/work\n")
        session.expect(r"\$ $")
        yield session


def start(tmp_path: object, command: str, **more: Any) -> subprocess.Popen[bytes]:
    """Start `tidegate run` away from any terminal; the command is a shell line."""
    env = {**os.environ, **environment(tmp_path)}
    more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
    argv = ["sh", "-c", f"exec {RUN} {command}"]
    return subprocess.Popen(argv, env=env, cwd=f"{tmp_path}/work", start_new_session=True, **more)


def children(pid: int) -> list[int]:
    """Return the processes whose parent this is."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def test_the_task_has_its_own_terminal_and_the_modes_come_back(shell: Session) -> None:
    """HLD-9, HLD-13: own devpts, real size, and stty as before after a command that broke its own."""
    before = shell.modes()
    shell.type(f"{RUN} sh -c 'tty; stty size; stty raw -echo; exit 4'; echo st=$?\n")
    shell.expect(r"/dev/pts/0\r\n24 80\r\n")
    shell.expect(r"st=4\r\n\$ $")
    assert shell.modes() == before


def test_ctrl_c_ends_a_scripts_loop(shell: Session) -> None:
    """HLD-9: as with the command alone, one Ctrl-C ends the script."""
    with open(f"{shell_folder(shell)}/script", "w") as file:
        file.write(f"for i in 1 2 3; do echo turn $i; {RUN} {WAITS}; done; echo not-reached\n")
    shell.type("bash script\n")
    shell.expect("\nready\r\n")
    shell.type("\x03")
    assert "turn" not in shell.expect(r"(.*)\$ $")
    shell.type("echo st=$?\n")
    shell.expect("st=130\r\n")


def shell_folder(session: Session) -> str:
    """Return the folder that the session's shell is in."""
    return os.readlink(f"/proc/{session.pid}/cwd")


def test_ctrl_z_fg_and_a_background_job(shell: Session) -> None:
    """HLD-9: stop, fg, and a background job that stops when it reads."""
    before = shell.modes()
    shell.type(f"{RUN} cat\n")
    shell.wait_for_raw()
    shell.type("one\n")
    shell.expect("one\r\none\r\n")
    shell.type("\x1a")
    shell.expect(r"Stopped .*\$ $")
    assert shell.modes() == before
    shell.type("bg\n")
    shell.expect(r"\$ $")
    wait_until(lambda: stopped(shell), "the job to stop again, reading")
    shell.type("fg\n")
    shell.expect("cat\r\n")
    shell.wait_for_raw()
    shell.type("two\n")
    shell.expect("two\r\ntwo\r\n")
    shell.type("\x04")
    shell.expect(r"\$ $")
    assert shell.modes() == before


def stopped(session: Session) -> bool:
    """Whether the shell's only job is stopped."""
    with open(f"/proc/{children(session.pid)[0]}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def test_in_pipelines_each_line_arrives_once(shell: Session) -> None:
    """HLD-9: at the head, in the middle and at the tail of a pipeline."""
    shell.type(f"clear; seq 3 | {RUN} sed s/^/a/ | {RUN} sed s/^/b/ | {RUN} cat; echo end\n")
    shell.expect(r"3Jba1\r\nba2\r\nba3\r\nend\r\n\$ $")


def test_a_pager_at_the_end_of_a_pipeline(shell: Session) -> None:
    """HLD-9: less takes keys from the terminal though its input is a pipe."""
    before = shell.modes()
    shell.type(f"clear; seq 1 500 | {RUN} less; echo st=$?\n")
    shell.expect("22\r+\n23")
    shell.type("G")
    shell.expect("499\r+\n500")
    shell.type("q")
    shell.expect(r"st=0\r\n\$ $")
    assert shell.modes() == before


def test_a_closed_window_ends_everything(shell: Session) -> None:
    """HLD-9: SIGHUP reaches the task; front, gate, watcher and init end."""
    shell.type(f"{RUN} {WAITS}\n")
    shell.expect("\nready\r\n")
    front = children(shell.pid)[0]
    family = [front, *children(front)]
    assert len(family) == 4, "front, gate, watcher and init"
    shell.hang_up()
    wait_until(lambda: not [pid for pid in family if os.path.exists(f"/proc/{pid}")], "all four to end")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_gate_that_is_killed_or_stopped_ends_the_task_with_70(tmp_path: object, number: signal.Signals) -> None:
    """HLD-7, B95: noticed at once, said in one line, exit 70, and nothing is left."""
    front = start(tmp_path, WAITS)
    with front:
        assert front.stderr is not None
        ready, _, _ = select.select([front.stderr], [], [], PATIENCE)
        assert ready
        assert front.stderr.readline() == b"ready\n"
        family = children(front.pid)
        gate = next(pid for pid in family if os.getsid(pid) == pid and not is_init(pid) and not is_watcher(pid))
        os.kill(gate, number)
        assert front.wait(PATIENCE) == 70
        assert front.stderr.read().startswith(b"tidegate: the gate is gone; the task's network is cut off")
        wait_until(lambda: not [pid for pid in family if os.path.exists(f"/proc/{pid}")], "all of it to end")


def is_init(pid: int) -> bool:
    """Whether the process is the first of a PID namespace of its own."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return next(line for line in file if line.startswith("NSpid")).split()[-1] == "1"
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended since


def is_watcher(pid: int) -> bool:
    """Whether the process is the one that answers for unix sockets."""
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read() == "tidegate-watch\n"
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended since


def test_a_watcher_that_is_killed_lets_nothing_through(tmp_path: object) -> None:
    """HLD-7, HLD-14: without it no connection is made; the task is told and ended with 70, and nothing is left."""
    connect = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(chr(0) + chr(97))'"
    script = f'trap "{connect}; exit 1" TERM; echo ready >&2; while :; do sleep 0.1; done'
    front = start(tmp_path, f"sh -c {shlex.quote(script)}")
    with front:
        assert front.stderr is not None
        assert front.stderr.readline() == b"ready\n"
        family = children(front.pid)
        os.kill(next(pid for pid in family if is_watcher(pid)), signal.SIGKILL)
        out, said = front.communicate(None, PATIENCE)
        assert out == b""
        assert b"connections is gone" in said
        assert b"Function not implemented" in said
        assert front.returncode == 70
        wait_until(lambda: not [pid for pid in family if os.path.exists(f"/proc/{pid}")], "all of it to end")


def test_nothing_survives_the_front(tmp_path: object) -> None:
    """HLD-9: kill -9 of the front ends gate, watcher, init and task."""
    front = start(tmp_path, WAITS)
    with front:
        assert front.stderr is not None
        assert front.stderr.readline() == b"ready\n"
        family = children(front.pid)
        assert len(family) == 3
        front.kill()
        front.wait(PATIENCE)
        wait_until(
            lambda: not [pid for pid in family if os.path.exists(f"/proc/{pid}")], "gate, watcher and init to end"
        )


@pytest.mark.parametrize(
    ("line", "status"), [("sh -c 'exit 9'", 9), ("sh -c 'kill -TERM $$'", 143), ("nosuch", 127), ("/etc/passwd", 126)]
)
def test_statuses_pass_through(tmp_path: object, line: str, status: int) -> None:
    """HLD-16: own code, 128+n, 127, 126."""
    with start(tmp_path, line) as front:
        assert front.wait(PATIENCE) == status


def test_sigterm_is_forwarded_and_its_answer_is_the_status(tmp_path: object) -> None:
    """B98: the command cleans up and its own status comes out."""
    script = 'trap "echo bye; exit 5" TERM; echo ready >&2; while :; do sleep 0.02; done'
    with start(tmp_path, f"bash -c '{script}'") as front:
        assert front.stderr is not None
        assert front.stdout is not None
        assert front.stderr.readline() == b"ready\n"
        time.sleep(0.05)
        front.terminate()
        assert front.wait(PATIENCE) == 5
        assert front.stdout.read() == b"bye\n"


def test_the_terminal_is_raw_only_while_it_leads_to_the_task(shell: Session) -> None:
    """HLD-9: a command that never reads, its output in a pipe, leaves the terminal's modes alone."""
    shell.type(f"{RUN} sh -c 'echo ready >&2; sleep 0.3; echo done' | cat\n")
    shell.expect("\nready\r\n")
    assert shell.modes()[3] & termios.ICANON  # type: ignore[operator]
    shell.expect(r"done\r\n\$ $")
