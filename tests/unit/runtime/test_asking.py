"""tidegate.runtime.asking: the desk of a run that has a gate of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tidegate.model.decision import Decision
from tidegate.model.destination import parse_authority
from tidegate.model.errors import StartError
from tidegate.model.reason import Reason
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.layers import command_line, join
from tidegate.runtime.alone import AloneBook
from tidegate.runtime.asking import TerminalDesk
from tidegate.state.folders import folder_key
from tidegate.state.sqlite import open_store

POLICY = join(command_line(ask=("*.test",), profile="closed"))


class _Loop:
    """As much of a gate as a desk uses: what it posts is run by the test."""

    def __init__(self) -> None:
        self.posted: list[Callable[[], None]] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.cuts: list[Reason] = []

    def post(self, callback: Callable[[], None]) -> None:
        self.posted.append(callback)

    def later(self, seconds: float, callback: Callable[[], None]) -> None:
        self.timers.append((seconds, callback))

    def cut(self, _task: Any, reason: Reason, _wanted: Any) -> int:
        self.cuts.append(reason)
        return 0

    def turn(self) -> None:
        posted, self.posted = self.posted, []
        for callback in posted:
            callback()


class World:
    """A desk with a real store."""

    def __init__(self, folder: Path, *, locked: bool = False, home: str = "/nowhere") -> None:
        self.state = folder / "state"
        self.state.mkdir(mode=0o700, exist_ok=True)
        self.folder = folder
        self.said: list[Any] = []
        self.loop = _Loop()
        order = {
            "task": "t1", "state": str(self.state), "folder": str(folder), "home": home, "command": ("true",),
            "phase": "runtime", "hold": "netns",
        }  # fmt: skip
        alone = AloneBook(order, clock=lambda: 1000.0, warn=lambda line: self.said.append(("warn", line)))
        self.desk = TerminalDesk(order, alone, locked=locked, say=self.said.append, wall=lambda: 1000.0)
        self.desk.serve(self.loop, object())  # type: ignore[arg-type]

    def ask(self, where: str = "a.test:443") -> list[Decision]:
        """A connection asks; its answer comes into the list."""
        answers: list[Decision] = []
        decision = decide(POLICY, parse_authority(where, 443), Phase.RUNTIME)
        assert self.desk.desk.ask("t1", decision, answers.append) is not None
        return answers

    def last(self) -> tuple[str, dict[str, Any]]:
        word, shape = self.said[-1]
        return word, shape


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A desk."""
    made = World(tmp_path)
    yield made
    made.desk.close()


def test_a_question_is_told_answered_saved_and_released(world: World) -> None:
    """ASK-5, JRN-5: asked, then the answer on the disk, then the connection goes on, and the question is closed."""
    answers = world.ask()
    word, shape = world.last()
    assert (word, shape["host"], shape["waiting"], shape["deadline_at"]) == ("asked", "a.test", 1, 1900.0)
    world.desk.answer(shape["id"], "remember")
    assert answers == []
    with closing(open_store(str(world.state))) as store:
        rules = store.rules(folder_key(str(world.folder)))
    assert [(rule.host, rule.port, rule.by) for rule in rules] == [("a.test", 443, "terminal")]
    world.loop.turn()
    assert [one.verdict for one in answers] == [Verdict.ALLOW]
    assert world.last()[0] == "closed"


def test_a_refusal_for_the_task_cuts_what_is_open(world: World) -> None:
    """ASK-2: and the next connection is refused without a question."""
    answers = world.ask()
    world.desk.answer(world.last()[1]["id"], "deny-task")
    world.loop.turn()
    assert [one.reason for one in answers] == [Reason.DENIED_BY_PERSON]
    assert world.loop.cuts == [Reason.DENIED_BY_PERSON]
    assert [one.reason for one in world.ask()] == [Reason.DENIED_BY_PERSON]


def test_a_second_answer_and_one_for_nothing(world: World) -> None:
    """ASK-5: the first counts; what is no question or no answer is a line, never an end of the gate."""
    world.ask()
    number = world.last()[1]["id"]
    world.desk.answer(number, "deny")
    count = len(world.said)
    world.desk.answer(number, "allow")
    assert len(world.said) == count
    world.desk.answer(999, "allow")
    assert world.said[-1][0] == "warn"


def test_without_a_terminal_nobody_waits(world: World) -> None:
    """ASK-4: who waits is refused, who comes is told at once; what was allowed for the task still passes."""
    world.ask("b.test:443")
    world.desk.answer(world.last()[1]["id"], "task")
    waiting = world.ask()
    world.desk.unattended()
    world.loop.turn()
    assert [one.verdict for one in waiting] == [Verdict.DENY]
    assert [one.reason for one in world.ask()] == [Reason.NOBODY_THERE]
    assert [one.verdict for one in world.ask("b.test:443")] == [Verdict.ALLOW]


def test_the_clock_is_set_while_there_is_a_question(world: World) -> None:
    """ASK-2: one timer, at most a second away."""
    assert world.loop.timers == []
    world.ask()
    world.ask("b.test:443")
    assert len(world.loop.timers) == 1
    seconds, tick = world.loop.timers.pop()
    assert seconds <= 1.0
    tick()
    assert len(world.loop.timers) == 1


def test_questions_of_the_set_up_end_with_it(world: World) -> None:
    """POL-7: a new phase judges anew."""
    waiting = world.ask()
    world.desk.phase_changed(Phase.INSTALL)
    world.loop.turn()
    assert [one.reason for one in waiting] == [Reason.PHASE_CHANGED]


@pytest.mark.parametrize("why", ["locked", "home", ""])
def test_what_cannot_be_remembered_is_said(tmp_path: Path, why: str) -> None:
    """ASK-8, POL-8: under a locked policy and in the home folder; elsewhere it is offered."""
    made = World(tmp_path, locked=why == "locked", home=str(tmp_path) if why == "home" else "/nowhere")
    made.ask()
    said = made.last()[1]["no_remember"]
    assert (why in said) if why else said == ""
    made.desk.close()


def test_without_a_place_for_answers_it_does_not_start(tmp_path: Path) -> None:
    """JRN-5: an answer that cannot be kept would not count, so nothing is begun."""
    (tmp_path / "state").mkdir()
    os.symlink("/dev/null", tmp_path / "state" / "tidegate.db")
    with pytest.raises(StartError):
        World(tmp_path)
