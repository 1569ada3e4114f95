"""The front at real terminals: bash job control, full-screen programs, pipelines, closed windows (HLD-9)."""

from __future__ import annotations

import os
import signal
import sys
import termios
import time
from typing import TYPE_CHECKING

import pytest

from tests.unit.runtime.pty_session import RUN, Session, wait_until
from tidegate.runtime.terminal import one_newline, raw_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

BASH = ("/bin/bash", "--norc", "--noprofile", "--noediting", "-i")
COOKED = [
    termios.ICRNL | termios.IXON | termios.BRKINT,
    termios.OPOST | termios.ONLCR,
    termios.CS7 | termios.PARENB | termios.CREAD,
    termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN,
    termios.B38400,
    termios.B38400,
    [b"\x03", b"\x1c"] + [b"\0"] * 30,
]


@pytest.fixture
def shell() -> Iterator[Session]:
    """A person at an interactive bash, waiting at its prompt."""
    with Session(*BASH) as session:
        session.expect(r"\$ $")
        yield session


# What a task does in most tests: say that it is ready, and answer signals. A shell would not do: dash forks with
# vfork, so a signal that comes between fork and exec of its child leaves it waiting, alone as well as here.
PATIENT = """
import os, signal, sys, time
def caught(number, frame):
    global left
    left -= 1
    os.write(2, f"caught {number}\\n".encode())
    if not left:
        sys.exit(7)
left = int(sys.argv[2])
if left:
    signal.signal(getattr(signal, sys.argv[1]), caught)
else:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
os.write(2, b"ready\\n")
while True:
    time.sleep(0.02)
"""


@pytest.fixture
def patient(tmp_path: object) -> str:
    """A command line: `{patient} SIGNAL TIMES` catches it and exits with 7 at the last; 0 times: the default."""
    path = f"{tmp_path}/patient.py"
    with open(path, "w") as file:
        file.write(PATIENT)
    return f"{RUN} {sys.executable} -S {path}"


def children_of(pid: int) -> list[int]:
    """Return the processes whose parent this is."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def test_raw_is_what_cfmakeraw_makes_and_keeps_output_where_told() -> None:
    """Raw modes have no echo, lines, signals or flow control; output processing goes only with the whole terminal."""
    raw = raw_attributes(COOKED, keep_output=False)
    assert not raw[0] & (termios.ICRNL | termios.IXON | termios.BRKINT)
    assert not raw[1] & termios.OPOST
    assert raw[2] & termios.CSIZE == termios.CS8
    assert not raw[2] & termios.PARENB
    assert raw[2] & termios.CREAD
    assert not raw[3] & (termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
    assert (raw[6][termios.VMIN], raw[6][termios.VTIME]) == (1, 0)
    assert raw_attributes(COOKED, keep_output=True)[1] == COOKED[1]
    assert COOKED[6][termios.VMIN] == b"\0", "the original was changed"


@pytest.mark.parametrize(
    ("inner", "real", "expected"),
    [
        (termios.OPOST | termios.ONLCR, termios.OPOST | termios.ONLCR, b"a\nb\r"),  # both would add a return
        (termios.OPOST | termios.ONLCR, termios.ONLCR, b"a\r\nb\r"),  # the real one is raw
        (termios.OPOST | termios.ONLCR, termios.OPOST, b"a\r\nb\r"),
        (termios.ONLCR, termios.OPOST | termios.ONLCR, b"a\r\nb\r"),  # the program wrote the return itself
        (termios.OPOST, termios.OPOST | termios.ONLCR, b"a\r\nb\r"),
    ],
)
def test_a_return_is_added_once(inner: int, real: int, expected: bytes) -> None:
    """Output that both terminals would process loses the first one's returns; all other output is left alone."""
    assert one_newline(b"a\r\nb\r", inner, real) == expected


def test_the_task_has_a_terminal_of_its_own_with_the_windows_size() -> None:
    """HLD-9, HLD-13: inside is the first terminal of an own devpts, with the real size, which it follows."""
    script = "tty; stty size; trap 'stty size; exit 4' WINCH; echo ready; while :; do sleep 0.05; done"
    with Session(*RUN.split(), "sh", "-c", script, rows=33, columns=101) as session:
        assert session.expect(r"(/dev/pts/\d+)\r\n") == "/dev/pts/0"
        session.expect("33 101\r\n")
        session.expect("ready\r\n")
        session.resize(20, 66)
        session.expect("20 66\r\n")
        assert session.wait() == 4


def test_all_three_streams_are_terminals_inside_and_the_command_is_in_its_foreground() -> None:
    """HLD-9: isatty on 0, 1, 2 and /dev/tty; the command leads the foreground group of its terminal."""
    script = (
        "import os\nprint([os.isatty(fd) for fd in (0, 1, 2)], os.ttyname(0) == os.ttyname(2))\n"
        "fd = os.open('/dev/tty', os.O_RDWR)\nprint(os.tcgetpgrp(fd) == os.getpgrp() == os.getpid(), os.getsid(0))"
    )
    with Session(*RUN.split(), "python3", "-c", script) as session:
        session.expect(r"\[True, True, True\] True\r\nTrue 1\r\n")
        assert session.wait() == 0


@pytest.mark.parametrize(
    "command", ["true", "false", "nosuch-command", "sh -c 'stty -echo raw; kill -9 $$'", "stty -echo"]
)
def test_the_terminals_modes_are_the_same_afterwards(shell: Session, command: str) -> None:
    """HLD-9: whatever the command did to its own terminal, and however it ended, the real one is as it was."""
    before = shell.modes()
    shell.type(f"{RUN} {command}; echo end=$?\n")
    shell.expect(r"end=\d+\r\n\$ ")
    assert shell.modes() == before


def test_ctrl_c_reaches_the_command_once_each_time(shell: Session, patient: str) -> None:
    """HLD-9: Ctrl-C at a full terminal is one SIGINT for the command, and its own status comes back."""
    shell.type(f"{patient} SIGINT 3\n")
    shell.expect("\nready\r\n")
    for _ in range(2):
        shell.type("\x03")
        shell.expect("caught 2\r\n")
        time.sleep(0.1)
        assert b"caught" not in shell.seen
    shell.type("\x03")
    shell.expect(r"\$ $")
    shell.type("echo st=$?\n")
    shell.expect("st=7\r\n")


def test_ctrl_c_ends_the_command_and_the_status_is_130(shell: Session, patient: str) -> None:
    """HLD-9, HLD-16: the shell sees a death by SIGINT."""
    shell.type(f"{patient} SIGINT 0\n")
    shell.expect("\nready\r\n")
    shell.type("\x03")
    shell.expect(r"\$ $")
    shell.type("echo st=$?\n")
    shell.expect("st=130\r\n")


def test_ctrl_c_ends_a_script_that_runs_commands_one_after_another(shell: Session) -> None:
    """HLD-9: a bash script's loop stops at the first Ctrl-C, as it does when the command runs alone."""
    shell.type(f"bash -c 'for i in 1 2 3; do echo turn $i; {RUN} sleep 100; done; echo not-reached'\n")
    shell.expect("\nturn 1\r\n")
    wait_until(lambda: not shell.modes()[3] & termios.ICANON, "the keyboard to be led to the task")
    shell.type("\x03")
    assert "turn" not in shell.expect(r"(.*)\$ $")
    shell.type("echo st=$?\n")
    shell.expect("st=130\r\n")


def test_ctrl_c_that_the_command_survives_does_not_end_the_script(
    shell: Session, patient: str, tmp_path: object
) -> None:
    """HLD-9: bash goes on when the command handled Ctrl-C and exited by itself, as it does alone."""
    with open(f"{tmp_path}/script", "w") as file:
        file.write(f"{patient} SIGINT 1\necho reached $?\n")
    shell.type(f"bash {tmp_path}/script\n")
    shell.expect("\nready\r\n")
    shell.type("\x03")
    shell.expect("reached 7\r\n")


def test_ctrl_backslash_quits(shell: Session) -> None:
    """HLD-9: the quit key works through the pty."""
    shell.type(f"{RUN} sh -c 'ulimit -c 0; echo ready; exec sleep 100'\n")
    shell.expect("\nready\r\n")
    shell.type("\x1c")
    shell.expect(r"\$ ")
    shell.type("echo st=$?\n")
    shell.expect("st=131\r\n")


def test_ctrl_z_fg_bg_and_jobs(shell: Session, patient: str) -> None:
    """HLD-9: Ctrl-Z stops the job with the terminal as it was, bg continues it behind, fg brings it back."""
    before = shell.modes()
    shell.type(f"{patient} SIGINT 1\n")
    shell.expect("\nready\r\n")
    shell.type("\x1a")
    shell.expect(r"\[1\]\+  Stopped .*\$ $")
    assert shell.modes() == before
    front = front_under(shell.pid)
    assert state_of(front) == "T"
    shell.type("bg\n")
    shell.expect(r"\$ $")
    shell.type("jobs\n")
    shell.expect(r"\[1\]\+  Running ")
    shell.expect(r"\$ $")
    shell.type("fg\n")
    wait_until(lambda: shell_foreground(shell) == front, "the job to be in front")
    shell.type("\x03")
    shell.expect("caught 2\r\n")
    shell.expect(r"\$ $")
    shell.type("echo st=$?\n")
    shell.expect("st=7\r\n")
    assert shell.modes() == before


def shell_foreground(session: Session) -> int:
    """Return the foreground process group of the session's terminal."""
    return os.tcgetpgrp(session.master)


def test_stopping_and_continuing_many_times_keeps_the_keyboard(shell: Session) -> None:
    """HLD-9: after each fg the keyboard leads to the command again, and nothing typed is lost or doubled."""
    shell.type(f"{RUN} cat\n")
    shell.wait_for_raw()
    for turn in range(4):
        shell.type(f"line {turn}\n")
        shell.expect(f"line {turn}\r\nline {turn}\r\n")
        shell.type("\x1a")
        shell.expect(r"Stopped .*\$ $")
        shell.type("fg\n")
        shell.expect("cat\r\n")
        shell.wait_for_raw()
    shell.type("\x04")
    shell.expect(r"\$ $")


def test_in_the_background_it_stops_when_it_reads(shell: Session) -> None:
    """HLD-9: `run … &` stops by SIGTTIN when the command reads the terminal, and reads after fg."""
    shell.type(f"{RUN} cat &\n")
    shell.expect(r"\$ $")
    job = children_of(shell.pid)[0]
    wait_until(lambda: state_of(job) == "T", "the job to stop")
    shell.type("jobs\n")
    shell.expect(r"\[1\]\+  Stopped ")
    shell.expect(r"\$ $")
    shell.type("fg\n")
    shell.expect("cat\r\n")
    shell.wait_for_raw()
    shell.type("hello\n")
    shell.expect("hello\r\nhello\r\n")
    shell.type("\x04")
    shell.expect(r"\$ $")


def state_of(pid: int) -> str:
    """Return the process's state letter, as ps shows it."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_in_the_background_it_writes_without_stopping(shell: Session) -> None:
    """HLD-9: a background job writes to the terminal, and its end is announced with its status."""
    shell.type(f"{RUN} sh -c 'echo written; exit 6' &\n")
    shell.expect("written\r+\n")
    job = children_of(shell.pid)
    wait_until(lambda: not [pid for pid in job if os.path.exists(f"/proc/{pid}") and state_of(pid) != "Z"], "its end")
    shell.type("wait %1; echo st=$?\n")
    shell.expect("st=6\r\n")


def test_at_the_head_of_a_pipeline_it_reads_the_keyboard_only_when_it_wants_to(shell: Session) -> None:
    """HLD-9: `run | cat` leaves the terminal alone until the command reads; then the keyboard leads to it."""
    before = shell.modes()
    shell.type(f"{RUN} sh -c 'echo started >&2; sleep 0.3; exec cat' | cat\n")
    shell.expect("\nstarted\r\n")
    shell.wait_for_raw()
    shell.type("hello\n")
    shell.expect("hello\r\nhello\r\n")
    shell.type("\x04")
    shell.expect(r"\$ $")
    assert shell.modes() == before


def test_at_the_tail_of_a_pipeline_its_lines_end_once(shell: Session) -> None:
    """HLD-9: `echo x | run cat` writes its line with one carriage return and never makes the terminal raw."""
    shell.type(f"clear; printf 'a\\nb\\n' | {RUN} sh -c 'stty -a </dev/tty >/dev/null; cat'\n")
    shell.expect(r"3Ja\r\nb\r\n\$ $")


def test_ctrl_c_in_a_pipeline_reaches_the_command_once(shell: Session, patient: str) -> None:
    """HLD-9: while the terminal is not raw, Ctrl-C comes to the front and is passed on, once each time."""
    shell.type(f"{patient} SIGINT 3 | cat\n")
    shell.expect("\nready\r\n")
    for _ in range(3):
        shell.type("\x03")
        shell.expect("caught 2\r\n")
        time.sleep(0.1)
        assert b"caught" not in shell.seen
    shell.expect(r"\$ $")


def front_under(shell_pid: int) -> int:
    """Return the front among the shell's children."""
    for pid in children_of(shell_pid):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if b"bare_run" in file.read():
                return pid
    raise AssertionError("no front is running")


def test_ctrl_z_in_a_pipeline_stops_the_whole_job(shell: Session, patient: str) -> None:
    """HLD-9: the command stops too, the shell gets its prompt, and fg goes on where it was."""
    shell.type(f"{patient} SIGINT 1 | cat\n")
    shell.expect("\nready\r\n")
    for _ in range(2):
        shell.type("\x1a")
        shell.expect(r"Stopped .*\$ $")
        shell.type("fg\n")
        shell.expect("cat\r\n")
        wait_until(lambda: state_of(front_under(shell.pid)) == "S", "the front to go on")
    shell.type("\x03")
    shell.expect(r"\$ $")


def test_a_program_that_sets_modes_from_the_pipelines_end_gets_the_keyboard() -> None:
    """HLD-9: `something | run less` shows its page and takes keys from the terminal."""
    with Session("/bin/sh", "-c", f"seq 1 500 | {RUN} less; echo st=$?") as session:
        before = session.modes()
        session.expect("22\r+\n23")
        session.type("G")
        session.expect("499\r+\n500")
        session.type("q")
        session.expect("st=0\r\n")
        session.wait()
        assert session.modes() == before


def test_vi_edits_and_saves(tmp_path: object) -> None:
    """HLD-9: a full-screen editor runs as it does alone."""
    path = f"{tmp_path}/note"
    with Session("/bin/sh", "-c", f"{RUN} vi -u NONE {path}; echo st=$?") as session:
        session.expect(r"note")
        session.type("ihello\x1b:wq\r")
        session.expect("st=0\r\n")
    with open(path) as file:
        assert file.read() == "hello\n"


def test_top_shows_the_tasks_processes_and_quits() -> None:
    """HLD-9: top draws, sees only the task, and q ends it."""
    with Session("/bin/sh", "-c", f"{RUN} top -d 1; echo st=$?") as session:
        session.expect("PID USER")
        session.expect("bare_run|python|top")
        session.type("q")
        session.expect("st=0\r\n")


def test_a_python_prompt_survives_ctrl_c_and_ends_at_ctrl_d() -> None:
    """HLD-9: an interactive interpreter gets KeyboardInterrupt and goes on; Ctrl-D ends it."""
    # Since 3.13 its prompt draws each line anew as it is typed, but not by this variable.
    with Session(*RUN.split(), "env", "PYTHON_BASIC_REPL=1", "python3", "-q", "-i", "-S") as session:
        session.expect(">>> ")
        session.type("print(6*7)\r")
        session.expect("\n42\r\n.*>>> ")
        session.type_until("\x03", "KeyboardInterrupt.*>>> ")
        session.type("print(2+1)\r")
        session.expect("\n3\r\n.*>>> ")
        session.type("\x04")
        assert session.wait() == 0


def test_a_shell_inside_has_job_control_of_its_own() -> None:
    """HLD-9: an interactive bash inside stops and continues its own jobs; nothing of that reaches the outer shell."""
    with Session(*RUN.split(), *BASH) as session:
        session.expect(r"\$ $")
        session.type("sh -c 'echo up; exec sleep 100'\n")
        session.expect("\nup\r\n")  # before that, the stop key would discard the line that was typed
        session.type_until("\x1a", r"\[1\]\+  Stopped .*\$ $")
        session.type("kill -KILL %1; wait; echo all-$((1+1))\n")
        session.expect("all-2\r\n")
        session.type("exit 9\nexit 9\n")  # once more where bash has not yet seen the job's end
        assert session.wait() == 9


def test_a_closed_window_ends_the_task() -> None:
    """HLD-9: when the terminal goes away the command gets SIGHUP, and front and task end."""
    session = Session(*RUN.split(), "sh", "-c", "echo $$; exec sleep 1000")
    with session:
        session.expect(r"\d+\r\n")
        session.hang_up()
        assert session.wait() == 128 + signal.SIGHUP


def test_a_closed_window_leaves_nothing_of_a_shells_job(tmp_path: object) -> None:
    """HLD-9: under a shell too: the job behind a closed window ends, and so does what it had started."""
    path = f"{tmp_path}/beat"
    session = Session(*BASH)
    with session:
        session.expect(r"\$ $")
        session.type(
            f"{RUN} sh -c '(setsid sh -c \"while :; do echo >>{path}; sleep 0.02; done\") & echo up; exec cat'\n"
        )
        session.expect("\nup\r\n")
        wait_until(lambda: os.path.exists(path), "the task's background process")
        front = front_under(session.pid)
        session.hang_up()
        wait_until(lambda: not os.path.exists(f"/proc/{front}"), "the front to end")
        size = os.path.getsize(path)
        time.sleep(0.2)
        assert os.path.getsize(path) == size, "something of the task still runs"


def test_the_last_line_is_never_lost() -> None:
    """HLD-9: what the command writes before it ends reaches the terminal whole and once."""
    with Session(*RUN.split(), "python3", "-c", "print('x' * 60000 + '|end')") as session:
        text = session.rest()
        assert text.count("x") == 60000
        assert text.endswith("|end\r\n")
        assert session.wait() == 0


def test_a_terminated_front_puts_the_modes_back() -> None:
    """HLD-9: SIGTERM to the front while the terminal is raw ends the command, and the modes are as before."""
    with Session("/bin/sh", "-c", f"{RUN} sh -c 'echo ready; exec sleep 100'; echo st=$?; read line") as session:
        before = session.modes()
        session.expect("ready\r\n")
        session.wait_for_raw()
        os.kill(children_of(session.pid)[0], signal.SIGTERM)
        session.expect("st=143\r\n")
        assert session.modes() == before
        session.type("\n")


def test_keys_typed_early_are_read_by_the_command() -> None:
    """HLD-9: what is typed before the terminal is raw waits for the command, in order."""
    with Session(*RUN.split(), "sh", "-c", "sleep 0.3; read a; read b; echo got-$a-$b") as session:
        session.type("one\ntwo\n")
        session.expect("got-one-two\r\n")


def test_output_faster_than_the_terminal_is_read_is_held_back() -> None:
    """HLD-9: a terminal that is not read stops the command's writes; no memory grows, nothing is lost."""
    with Session(*RUN.split(), "python3", "-c", "for i in range(200000): print(i)\nprint('done')") as session:
        session.wait_for_raw()
        time.sleep(0.5)
        with open(f"/proc/{session.pid}/statm") as file:
            assert int(file.read().split()[1]) * 4096 < 64 << 20
        text = session.rest()
        assert text.endswith("199999\r\ndone\r\n")
        assert text.count("\r\n") == 200001


def test_as_a_session_leader_ctrl_z_changes_nothing() -> None:
    """HLD-9: where no shell could say fg (ssh host command), Ctrl-Z leaves command and keyboard as they are."""
    with Session(*RUN.split(), "cat") as session:
        session.wait_for_raw()
        for word in ("one", "two"):
            session.type("\x1a")
            session.type(f"{word}\n")
            session.expect(f"{word}\r\n(.*){word}\r\n")
        session.type("\x04")
        assert session.wait() == 0


def test_tostop_stops_a_background_job_that_writes(shell: Session) -> None:
    """HLD-9: after `stty tostop` a background command stops at its first output, and not in the foreground."""
    shell.type(f"stty tostop; {RUN} sh -c 'echo written' &\n")
    shell.expect(r"\$ $")
    job = children_of(shell.pid)[0]
    wait_until(lambda: state_of(job) == "T", "the job to stop")
    assert b"written\r" not in shell.seen
    shell.type("fg\n")
    shell.expect("\nwritten\r+\n.*\\$ $")
    shell.type(f"{RUN} sh -c 'echo middle; echo written >&2' | cat\n")
    shell.expect("\nwritten\r+\n")


def test_a_terminal_without_a_name_is_led_through_dev_tty(shell: Session) -> None:
    """HLD-9: where the terminal cannot be opened by its name (after su, in a container) all works as with one."""
    shell.type(
        f"unshare -rm sh -c 'mount -t tmpfs none /dev/pts; tty; exec {RUN} sh -c \"tty; exec cat\"'; echo st=$?\n"
    )
    shell.expect("not a tty\r\n/dev/pts/0\r\n")
    shell.type("hello\n")
    shell.expect("hello\r\nhello\r\n")
    shell.type("\x1a")
    shell.expect(r"Stopped .*\$ $")
    shell.type("fg\n")
    shell.expect("\r\n")
    shell.wait_for_raw()
    shell.type("again\n")
    shell.expect("again\r\nagain\r\n")
    shell.type("\x04")
    shell.expect(r"\$ $")


def test_only_the_terminals_owner_of_the_moment_is_followed(shell: Session) -> None:
    """HLD-9: with output to a file and input from the keyboard, what is typed arrives and is echoed."""
    shell.type(f"{RUN} cat >/dev/null 2>&1; echo st=$?\n")
    shell.wait_for_raw()
    shell.type("hello\n")
    shell.expect("hello\r\n")
    shell.type("\x04")
    shell.expect(r"st=0\r\n\$ $")
