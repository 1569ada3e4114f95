"""tidegate.tools.program: real programs, their bounds and their ends."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.product import PATIENCE, PYTHON
from tests.served import until
from tidegate.tools.program import MOST_ERRORS, PATH, Ran, environment, run

if TYPE_CHECKING:
    from pathlib import Path


def python(code: str, data: bytes = b"", **options: Any) -> Ran:
    """Run a program of Python."""
    defaults: dict[str, Any] = {"seconds": PATIENCE, "most": 1 << 20, "base": tempfile.gettempdir()}
    return run([PYTHON, "-I", "-c", code], PYTHON, data, {}, **(defaults | options))


def test_input_comes_by_a_pipe_and_output_goes_back() -> None:
    """SRV-6: more than a pipe holds, both ways at once; standard error is apart."""
    data = os.urandom(1 << 20)
    code = "import sys\nd=sys.stdin.buffer.read()\nsys.stdout.buffer.write(d)\nsys.stderr.write('e'*100000)"
    ran = python(code, data, most=1 << 21)
    assert (ran.why, ran.status, ran.output == data) == ("ok", 0, True)
    assert ran.errors == b"e" * MOST_ERRORS


def test_a_program_has_what_it_was_declared_with_and_nothing_else() -> None:
    """SRV-6: its variables, descriptors, session, folder and mask; what the caller has open and set is not there."""
    secret = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(secret, True)
    code = (
        "import os,json,stat\nmask=os.umask(0)\nprint(json.dumps({'env':dict(os.environ),'cwd':os.getcwd(),'mask':mask,"
        "'fds':sorted(int(x) for x in os.listdir('/proc/self/fd')),'leads':os.getsid(0)==os.getpid()==os.getpgid(0)}))"
    )
    try:
        ran = run(
            [PYTHON, "-I", "-c", code],
            PYTHON,
            b"",
            {"KEPT": "1", "LEFT": "2", "PATH": "/evil"},
            names=("KEPT", "MISSING"),
            more={"TOKEN": "t"},
            seconds=PATIENCE,
            base=tempfile.gettempdir(),
            most=1 << 16,
        )
    finally:
        os.close(secret)
    found = json.loads(ran.output)
    folder = found["cwd"]
    expected = {"PATH": PATH, "LANG": "C.UTF-8", "KEPT": "1", "TOKEN": "t", "HOME": folder, "TMPDIR": folder}
    assert {key: value for key, value in found["env"].items() if key != "LC_CTYPE"} == expected
    assert found["leads"]
    assert found["mask"] == 0o077
    assert set(found["fds"]) <= {0, 1, 2, 3}  # the last is of the look itself
    assert not os.path.exists(folder)


def test_its_time_ends_it_and_all_of_its_group(tmp_path: Path) -> None:
    """SRV-6: a program that does not end is killed, and so is what it started in its group."""
    pid_file = tmp_path / "pid"
    code = (
        "import subprocess,sys,time\np=subprocess.Popen(['sleep','1000'])\n"
        f"open({str(pid_file)!r},'w').write(str(p.pid))\nprint('x',flush=True)\ntime.sleep(1000)"
    )
    for seconds in (2.0, 10.0, 60.0):  # a machine with much to do may not have got there in two
        ran = python(code, seconds=seconds)
        assert (ran.why, ran.status) == ("timeout", -9)
        if ran.output:
            break
    assert ran.output == b"x\n"
    until(lambda: not os.path.exists(f"/proc/{pid_file.read_text()}/exe") or _is_dead(pid_file.read_text()))


def _is_dead(pid: str) -> bool:
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0] in "ZX"


def test_too_much_output_ends_it() -> None:
    """SRV-6: one byte more than the bound ends it, and no more is kept; what fills the bound exactly is fine."""
    ran = python("import sys\nwhile True: sys.stdout.write('x'*65536)", most=1000)
    assert (ran.why, len(ran.output)) == ("too-much-output", 1000)
    assert python("print('x'*999)", most=1000).why == "ok"


@pytest.mark.parametrize(("code", "status"), [("raise SystemExit(3)", 3), ("import os\nos.kill(os.getpid(), 15)", -15)])
def test_a_failure_has_its_status(code: str, status: int) -> None:
    """SRV-6: exit status or signal."""
    ran = python(code)
    assert (ran.why, ran.status) == ("failed", status)


def test_what_reads_nothing_is_no_failure() -> None:
    """SRV-6: a program that closes its input goes its way."""
    assert python("import os\nos.close(0)\nprint('done')", b"x" * (4 << 20)).output == b"done\n"


def test_what_holds_its_output_open_does_not_hold_us() -> None:
    """SRV-6: a child that keeps the pipe is not waited for, and is killed with the group."""
    began = time.monotonic()
    ran = python("import subprocess\nsubprocess.Popen(['sleep','1000'])\nprint('done')")
    assert (ran.why, ran.output) == ("ok", b"done\n")
    assert time.monotonic() - began < PATIENCE / 2


def test_what_cannot_start_is_said() -> None:
    """SRV-6: no such file, no permission: `not-started`, and the reason for the person."""
    ran = run(["/nowhere/x"], "/nowhere/x", b"", {}, seconds=1, most=1, base=tempfile.gettempdir())
    assert (ran.why, ran.errors) == ("not-started", b"No such file or directory")


def test_without_a_folder_of_its_own_nothing_starts(tmp_path: Path) -> None:
    """SRV-6: its folder is made where it is told, and never elsewhere; where that cannot be, it does not run."""
    ran = python("import os\nprint(os.getcwd())", base=str(tmp_path))
    assert ran.output.decode().startswith(f"{tmp_path}/tool-")
    ran = python("print(1)", base=str(tmp_path / "none"))
    assert (ran.why, ran.output, ran.errors) == (
        "not-started", b"", f"{tmp_path}/none: No such file or directory".encode(),
    )  # fmt: skip


def test_it_ends_with_whoever_waits() -> None:
    """SRV-6: the end of `life` ends it at once."""
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs:
        assert python("import time\ntime.sleep(1000)", life=theirs.fileno()).why == "cancelled"


def test_it_ends_where_we_are_killed(tmp_path: Path) -> None:
    """SRV-6: SIGKILL of what waits for it kills it too: no orphan."""
    pid_file = tmp_path / "pid"
    inner = f"import os,time\nopen({str(pid_file)!r},'w').write(str(os.getpid()))\ntime.sleep(1000)"
    outer = (
        "import sys\nsys.path[:0]=sys.argv[1:2]\nfrom tidegate.tools.program import run\n"
        f"run([{PYTHON!r},'-I','-c',{inner!r}], {PYTHON!r}, b'', {{}}, seconds=1000, most=1, base=sys.argv[2])"
    )
    source = os.path.join(os.path.dirname(__file__), "..", "..", "..", "src")
    with subprocess.Popen([sys.executable, "-c", outer, source, str(tmp_path)]) as process:
        until(lambda: pid_file.exists() and pid_file.read_text())
        process.kill()
        process.wait()
        until(lambda: not os.path.exists(f"/proc/{pid_file.read_text()}") or _is_dead(pid_file.read_text()))


def test_a_name_that_is_not_set_is_left_out() -> None:
    """SRV-6: the environment is what was named, where it is there; HOME is never the person's."""
    made = environment(("A", "B"), {"A": "1", "HOME": "/root"}, "/f", {"C": "3"})
    assert made == {"PATH": PATH, "LANG": "C.UTF-8", "A": "1", "C": "3", "HOME": "/f", "TMPDIR": "/f"}
