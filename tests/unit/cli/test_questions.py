"""`tidegate questions` and `tidegate answer` against a whole server."""

from __future__ import annotations

import json
import re
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.product import PATIENCE
from tests.unit.server.api.running import Whole
from tidegate.cli.main import main
from tidegate.cli.questions import text_of

if TYPE_CHECKING:
    from pathlib import Path


def _number(whole: Whole) -> int:
    return int(whole.get("/api/questions")["questions"][0]["id"])


def test_open_questions_are_listed(whole: Whole, capsys: pytest.CaptureFixture[str]) -> None:
    """ASK-1, ASK-5: number, place, task, rule, how many wait and how long; closed ones with --all only."""
    whole.open_question(whole.task(name="build")["id"])
    number = _number(whole)
    assert main(["questions"]) == 0
    line = capsys.readouterr().out
    left, between, time_left = line.partition(" waiting, ")
    assert left == f"{number}  ask.test:443 · task build in {whole.folder} · no rule (no-rule) · 1"
    assert between
    assert re.match(r"1[0-4]:\d\d", time_left), line  # of fifteen minutes, less what it took to get here
    assert main(["questions", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["host"] == "ask.test"
    assert main(["answer", str(number), "deny"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("deny by the command line")
    assert main(["questions"]) == 0
    said = "tidegate: nothing waits for an answer: --all shows what has been answered\n"
    assert capsys.readouterr() == ("", said)
    assert main(["questions", "--json"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["questions", "--all"]) == 0
    assert "deny by the command line" in capsys.readouterr().out


def test_an_answer_has_its_terms(whole: Whole, capsys: pytest.CaptureFixture[str]) -> None:
    """ASK-7: --until, --connections and --bytes reach the question; a wrong one is exit 2 and answers nothing."""
    whole.open_question(whole.task()["id"])
    number = str(_number(whole))
    for wrong in (["--bytes", "x"], ["--until", "yesterday"], ["--connections", "0"]):
        assert main(["answer", number, "task", *wrong]) == 2
    assert whole.get(f"/api/questions/{number}")["state"] == "open"
    assert main(["answer", number, "task", "--until", "2h", "--connections", "3", "--bytes", "10M"]) == 0
    terms = whole.server.desk.question(int(number)).terms
    assert (terms.connections, terms.bytes) == (3, 10 << 20)
    assert terms.until == pytest.approx(whole.server.wall() + 7200, abs=60)
    capsys.readouterr()
    assert main(["answer", number, "allow"]) == 1
    assert "already" in capsys.readouterr().err


def test_a_question_that_a_rule_settled_says_so(whole: Whole, capsys: pytest.CaptureFixture[str]) -> None:
    """POL-8: `tidegate allow` lets go on who waits for that host, and the question is not left open."""
    task = whole.task()["id"]
    released = whole.open_question(task)
    assert main(["allow", "ask.test:443", "--task", task]) == 0
    capsys.readouterr()
    assert main(["questions"]) == 0
    said = "tidegate: nothing waits for an answer: --all shows what has been answered\n"
    assert capsys.readouterr() == ("", said)
    assert main(["questions", "--json"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["questions", "--all"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("settled by a rule from the command line")
    end = time.monotonic() + PATIENCE
    while not released and time.monotonic() < end:
        time.sleep(0.01)
    assert [(decision.allowed, decision.name) for decision in released] == [(True, "operator")]


@pytest.mark.parametrize("words", [["answer"], ["answer", "1"], ["answer", "x", "allow"], ["answer", "1", "maybe"]])
def test_a_mistake_is_exit_2(whole: Whole, words: list[str]) -> None:
    """HLD-16: a command line that is none asks the server nothing."""
    assert main(words) == 2
    assert whole.get("/api/questions") == {"questions": []}


def test_no_question_and_no_server(
    whole: Whole, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """HLD-16: a question that is not there is exit 1, no server is exit 78; one line each."""
    assert main(["answer", "99", "allow"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert main(["questions"]) == 78
    assert capsys.readouterr().err == "tidegate: no server runs here: tidegate serve starts one\n"
    assert whole.port


def test_following_shows_what_comes_and_is_somebody_there(whole: Whole, capsys: pytest.CaptureFixture[str]) -> None:
    """ASK-4, ASK-5: --follow shows open ones and new ones as they come, counts as present, and ends with the server."""
    task = whole.task()["id"]
    status: list[int] = []
    thread = threading.Thread(target=lambda: status.append(main(["questions", "--follow", "--json"])))
    assert not whole.server.presence.present(task)
    thread.start()
    until = time.monotonic() + PATIENCE
    while not whole.server.presence.present(task) and time.monotonic() < until:
        time.sleep(0.01)
    assert whole.server.presence.present(task)
    whole.open_question(task, "one.test")
    out = ""
    while "one.test" not in out and time.monotonic() < until:
        out += capsys.readouterr().out
        time.sleep(0.01)
    assert json.loads(out.splitlines()[0])["host"] == "one.test"
    whole.on_loop(whole.api.stop())
    thread.join(20)
    assert status == [70]


def test_nothing_of_a_task_reaches_the_screen_raw() -> None:
    """ASK-6: control and direction characters in names, folders and warnings are escaped; the A-label stands first."""
    found = text_of(
        {
            "id": 1, "host": "xn--pple-43d.test", "port": 443, "label": "\u202eevil", "task": "t",
            "task_name": "a\x1b[2Jb", "folder": "/\x07x\u202e", "rule": "", "rule_name": "no-rule",
            "state": "expired", "answer": None, "by": "", "warnings": ["mixes\x1b scripts"],
        }
    )  # fmt: skip
    assert found.startswith("1  xn--pple-43d.test:443 · ")
    assert found.isprintable()
    assert "\u202e" not in found
    assert "WARNING: mixes\\x1b scripts" in found
