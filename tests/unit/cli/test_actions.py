"""`tidegate events --type`: the action log, from its files."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.product import PATIENCE
from tidegate.cli.actions import text_of
from tidegate.cli.main import main
from tidegate.journal.actions import ActionLog
from tidegate.runtime.state import make_private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ActionLog]:
    """An action log with lines of two tasks."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    state = tmp_path / "tidegate"
    make_private_folder(str(state / "log"))
    make_private_folder(str(state / "keys"))
    found = ActionLog(str(state / "log"), str(state / "keys"), clock=lambda: 0.0, warn=pytest.fail)
    found.append("task.created", "t1", name="one")
    found.append("egress.refused", "t1", host="a.test", port=443, phase="runtime", reason="no-rule")
    found.append("net.blocked", "t1", host="a.test:443", reason="no-rule")
    found.append("egress.refused", "t2", host="b.test", port=80, phase="runtime", reason="deny-rule")
    yield found
    found.close()


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("words", "seqs"),
    [
        (["--type", "egress.refused"], [2, 4]),
        (["--type", "egress.refused", "--type", "net.blocked"], [2, 3, 4]),
        (["--type", "egress.refused", "--task", "t2"], [4]),
        (["--type", "net.blocked", "--host", "a.test"], [3]),
        (["--type", "net.blocked", "--host", "a"], []),
        (["--type", "none"], []),
    ],
)
def test_lines_are_chosen(words: list[str], seqs: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    """JRN-4: by type, task and host; as JSON they are the log's own, with their place in the chain."""
    assert main(["events", *words, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["seq"] for line in lines] == seqs
    assert all({"at", "type", "task", "prev"} <= set(line) for line in lines)


@pytest.mark.usefixtures("log")
def test_a_person_reads_when_what_and_where(capsys: pytest.CaptureFixture[str]) -> None:
    """JRN-4: one line each, without the chain's own fields."""
    assert main(["events", "--type", "egress.refused", "--task", "t1"]) == 0
    said = capsys.readouterr().out
    assert said == "1970-01-01T00:00:00.000Z egress.refused t1 host=a.test port=443 phase=runtime reason=no-rule\n"


def test_nothing_reaches_the_screen_raw() -> None:
    """ASK-6: what a task wrote is escaped."""
    assert text_of({"seq": 1, "type": "x", "task": "", "name": "a\x1b[2J\u202e"}) == "x name=a\\x1b[2J\\u202e"


@pytest.mark.parametrize("words", [["--refused"], ["--log", "x"], ["--list"]])
def test_options_of_the_other_record_are_not_mixed_in(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """HLD-16: what means nothing together is exit 2 and says so."""
    assert main(["events", "--type", "net.blocked", *words]) == 2
    assert "--type" in capsys.readouterr().err


def test_following_shows_what_is_added(log: ActionLog, tmp_path: Path) -> None:
    """JRN-4: --follow prints each new line once, in order, over a new file of the log too."""
    program = "import sys\nfrom tidegate.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    argv = [sys.executable, "-u", "-c", program, "events", "--type", "net.blocked", "--follow", "--json"]
    source = str(next(path for path in sys.path if path.endswith("src")))
    environment = {"XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": source}
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["seq"] == 3
        for number in range(3):
            log.append("net.blocked", "t1", host=f"{number}.test:443")
            log.append("task.changed", "t1")
        found = [json.loads(process.stdout.readline())["host"] for _ in range(3)]
        assert found == ["0.test:443", "1.test:443", "2.test:443"]
        process.terminate()
        assert process.wait(PATIENCE) != 0
