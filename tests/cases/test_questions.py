"""Cases about questions: what other programs got wrong when a person was asked (B07, B142 to B146)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.state.conformance import task as task_record
from tests.unit.questions.kit import FOLDER, task, wanted
from tidegate.model.destination import parse_authority
from tidegate.model.question import FolderKey
from tidegate.model.rule import Origin
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.layers import command_line, join, remembered_layer
from tidegate.questions.shell import Desk
from tidegate.state.sqlite import SqliteStore, open_store

if TYPE_CHECKING:
    from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# A server's part in an answer, which kills itself at one step of it.
PROGRAM = """
import os, signal, sys
root, folder, step, answer = sys.argv[1:]
sys.path[:0] = [root, os.path.join(root, "src")]
from tests.unit.questions.kit import task, wanted
from tidegate.model.question import Answer
from tidegate.questions.shell import Desk
from tidegate.state.sqlite import open_store

def die(at):
    if at == step:
        os.kill(os.getpid(), signal.SIGKILL)

store = open_store(folder)

def trace(statement):
    if statement.startswith("INSERT INTO answers"):
        die("writing")
    if statement == "COMMIT":
        die("committing")

def save(record):
    die("taken")
    store._database._connection.set_trace_callback(trace)
    store.save_answer(record)
    die("saved")

def release(callback):
    die("releasing")
    callback()

def told(event):
    if event.kind == "answered":
        die("telling")

def let_through(decision):
    print("let through" if decision.allowed else "refused", flush=True)
    die("let through")

desk = Desk(clock=lambda: 0.0, wall=lambda: 1000.0, save=save, release=release, cut=lambda *_: None, tell=told,
            present=lambda _: True, new_id=store.next_question_id)
desk.open_task(task())
desk.ask("t1", wanted("a.test:443"), let_through)
desk.answer(desk.questions()[0].id, Answer(answer), by="alice")
print("done", flush=True)
"""
BEFORE = ("taken", "writing", "committing")  # the COMMIT is traced before it runs
AFTER = ("saved", "releasing", "let through", "telling", "never")


def restarted(store: SqliteStore) -> Desk:
    """Return the desk of the server that comes after, with the task that lives on."""
    desk = Desk(
        clock=lambda: 0.0,
        wall=lambda: 2000.0,
        save=store.save_answer,
        release=lambda callback: callback(),
        cut=lambda *_: None,
        tell=lambda _: None,
        present=lambda _: True,
        new_id=store.next_question_id,
    )
    desk.open_task(task(), store.grants("t1"))
    return desk


@pytest.mark.parametrize("answer", ["task", "remember", "deny-task", "allow", "deny"])
@pytest.mark.parametrize("step", [*BEFORE, *AFTER])
def test_kill_9_at_any_step_of_an_answer_loses_and_invents_none(tmp_path: Path, step: str, answer: str) -> None:
    """B145, JRN-5: before the commit there is no answer and nothing was let through; after it, it is there for good."""
    folder = str(tmp_path / "state")
    store = open_store(folder)
    store.create_task(task_record("t1"))
    store.close()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ROOT, folder, step, answer],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == (0 if step == "never" else -signal.SIGKILL), done.stderr
    store = open_store(folder)
    answers = store.answers("t1")
    assert [record.answer.value for record in answers] == ([answer] if step in AFTER else [])
    if done.stdout:
        assert answers, "a connection was let through or refused for an answer that is not on the disk"
    desk = restarted(store)
    known = desk.known("t1", wanted("a.test:443"))
    if step in AFTER and answer in {"task", "remember", "deny-task"}:
        assert known is not None
        assert known.verdict is (Verdict.DENY if answer == "deny-task" else Verdict.ALLOW)
    else:
        assert known is None
    assert len(store.rules(FOLDER)) == (step in AFTER and answer == "remember")
    # The next question is another one, whatever happened to the first.
    desk.ask("t1", wanted("b.test:443"), lambda _: None)
    assert desk.questions()[0].id > 1
    store.close()


def test_a_remembered_host_is_not_asked_again_in_its_folder(tmp_path: Path) -> None:
    """B145, ASK-2, ASK-8: a task that starts later has it as a rule; forgetting makes it ask again."""
    store = open_store(str(tmp_path / "state"))
    desk = restarted(store)
    desk.ask("t1", wanted("A.Test.:443"), lambda _: None)
    (question,) = desk.questions()
    from tidegate.model.question import Answer

    desk.answer(question.id, Answer.REMEMBER, by="alice")

    def verdict(authority: str, folder: FolderKey = FOLDER) -> Verdict:
        rules = [(rule.host, rule.port, rule.phase, f"rule {rule.id}") for rule in store.rules(folder)]
        return decide(join(remembered_layer(rules)), parse_authority(authority), Phase.RUNTIME).verdict

    assert verdict("a.test:443") is Verdict.ALLOW
    for other in ("a.test:80", "b.a.test:443", "b.test:443"):
        assert verdict(other) is Verdict.ASK
    assert verdict("a.test:443", FolderKey("/w", 1, 99)) is Verdict.ASK
    (rule,) = store.rules()
    store.forget(rule.id)
    assert verdict("a.test:443") is Verdict.ASK
    store.close()


def test_what_people_are_shown_of_a_look_alike() -> None:
    """B07: the A-label with a mark; the answer is stored under it; raw bytes never become a question."""
    from tidegate.model.host import HostError

    desk = restarted_without_store()
    desk.ask("t1", wanted("xn--pple-43d.test:443"), lambda _: None)
    (question,) = desk.questions()
    assert (question.host, question.label) == ("xn--pple-43d.test", "")
    assert "mixes scripts" in question.warnings[0]
    for raw in (b"a\x1b[2J.test:443", "a\u202e.test:443", "аpple.test:443"):  # noqa: RUF001 - that is the case
        with pytest.raises(HostError):
            parse_authority(raw)


def restarted_without_store() -> Desk:
    """Return a desk that saves nothing."""
    desk = Desk(
        clock=lambda: 0.0,
        wall=lambda: 0.0,
        save=lambda _: None,
        release=lambda callback: callback(),
        cut=lambda *_: None,
        tell=lambda _: None,
        present=lambda _: True,
        new_id=lambda: 1,
    )
    desk.open_task(task())
    return desk


@pytest.mark.parametrize("host", ["10.0.0.1", "127.0.0.1"])
def test_remembering_admits_no_address_that_needs_a_written_rule(host: str) -> None:
    """B146, ADR-2: a remembered rule is of an origin that admits neither private addresses nor this machine's."""
    policy = join(remembered_layer([(host, 443, Phase.RUNTIME, "rule 1")]), command_line())
    decision = decide(policy, parse_authority(f"{host}:443"), Phase.RUNTIME)
    assert decision.rule is not None
    assert decision.rule.origin is Origin.REMEMBERED
    from tidegate.addresses.admission import admit
    from tidegate.addresses.surroundings import Surroundings

    packed = decision.destination.host.packed
    assert packed is not None
    own = frozenset({b"\x7f\x00\x00\x01"})
    refused = admit(decision, (packed,), Surroundings(own, frozenset()), policy.modes)
    assert refused.verdict is Verdict.DENY
    written = join(command_line(allow=[f"{host}:443"]))
    decision = decide(written, parse_authority(f"{host}:443"), Phase.RUNTIME)
    assert admit(decision, (packed,), Surroundings(own, frozenset()), written.modes).allowed
