"""tidegate.cli.events."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.journal.events import event, refused
from tidegate.cli.main import main
from tidegate.journal.line import line_of, lost_line
from tidegate.runtime.state import LOG_NAME, make_task_folder


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder with two tasks on record."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for task, lines in (
        ("20261129-230000-aaaa", [line_of(event())]),
        (
            "20261129-230100-bbbb",
            [line_of(event(bytes_up=7)), line_of(refused(count=3)), lost_line(0, "t", 2, "ENOSPC")],
        ),
    ):
        Path(make_task_folder(str(tmp_path / "tidegate"), task), LOG_NAME).write_bytes(b"".join(lines))
    return tmp_path


@pytest.mark.usefixtures("state")
def test_the_newest_task_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """JRN-1: what the task tried and what became of it, a line each."""
    assert main(["events"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2026-11-29T00:00:00.125Z a.test:443 tunneled (policy) up 7 down 0 0.0 s"
    assert lines[1] == "2026-11-29T00:00:00.125Z b.test:443 refused (no-rule) no-rule ×3"
    assert "journal.lost 2 ENOSPC" in lines[2]


@pytest.mark.usefixtures("state")
def test_a_task_is_named_by_the_beginning_of_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    """An id is not typed whole; an ambiguous or unknown beginning is an error that says where to look."""
    assert main(["events", "--task", "20261129-2300"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert main(["events", "--task", "2026"]) == 1
    assert main(["events", "--task", "zzz"]) == 1
    err = capsys.readouterr().err
    assert "2 tasks on record begin with '2026': tidegate events --list" in err
    assert "no task on record begins with 'zzz'" in err


def test_an_empty_record_is_said(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JRN-1: a task that tried nothing, one that never began, and a filter that nothing matches each say so; exit 0."""
    folder = Path(make_task_folder(str(state / "tidegate"), "20261129-230200-cccc"))
    assert main(["events"]) == 0
    assert "20261129-230200-cccc has no record here: it did not begin" in capsys.readouterr().err
    (folder / LOG_NAME).touch()
    assert main(["events"]) == 0
    assert capsys.readouterr().err == "tidegate: nothing on the record of the task 20261129-230200-cccc\n"
    assert main(["events", "--task", "20261129-2301", "--host", "none.test"]) == 0
    assert capsys.readouterr().err == "tidegate: nothing on the record of the task 20261129-230100-bbbb matches\n"
    assert main(["events", "--task", "20261129-2301", "--host", "a.test"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("state")
def test_json_gives_the_lines_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """For machines: the file's own lines, chosen by the same options."""
    assert main(["events", "--json", "--refused"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["count"] == 3


def test_a_torn_line_is_passed_over_and_counted(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A crash in the middle of a line hides nothing else."""
    path = state / "torn.jsonl"
    path.write_bytes(line_of(event()) + b'{"at": "2026')
    assert main(["events", "--log", str(path)]) == 0
    out = capsys.readouterr()
    assert len(out.out.splitlines()) == 1
    assert "passed over: 1" in out.err


@pytest.mark.parametrize("argv", [["--bogus"], ["--task"]])
def test_mistakes_are_exit_2_in_one_line(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """HLD-16: click's errors look like every other."""
    assert main(["events", *argv]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_nothing_on_record_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A first look before the first run is not a traceback."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "none"))
    assert main(["events"]) == 1
    assert "no task on record" in capsys.readouterr().err
    assert main(["events", "--list"]) == 0
    assert main(["events", "--log", str(tmp_path / "no")]) == 1


def test_a_reader_that_leaves_is_no_traceback(state: Path) -> None:
    """`tidegate events | head -1` ends quietly."""
    path = state / "big.jsonl"
    path.write_bytes(line_of(event()) * 20_000)
    code = f"import sys; sys.path[:0] = {sys.path!r}; from tidegate.cli.main import console; console()"
    script = f"'{sys.executable}' -c \"$0\" events --log '{path}' | head -1"
    done = subprocess.run(["sh", "-c", script, code], capture_output=True, text=True, check=True, timeout=60)
    assert "a.test:443" in done.stdout
    assert done.stderr == ""


def test_follow_shows_what_is_added(state: Path) -> None:
    """--follow stays: a line written later is shown, whole."""
    path = state / "live.jsonl"
    path.write_bytes(line_of(event(host="one.test")))
    code = f"import sys; sys.path[:0] = {sys.path!r}; from tidegate.cli.main import console; console()"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code, "events", "--follow", "--log", str(path)], stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        try:
            assert "one.test" in reader.stdout.readline()
            added = line_of(event(host="two.test"))
            with path.open("ab") as file:
                file.write(added[:30])
                file.flush()
                file.write(added[30:])
            assert "two.test" in reader.stdout.readline()
        finally:
            reader.kill()
