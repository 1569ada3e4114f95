"""tidegate.server.tasks: what the operator does to living tasks, in a whole server with a real gate."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.server.kit import Front, actions, policy, served, until
from tidegate.model.errors import NotSavedError, UsageError
from tidegate.model.question import NO_TERMS, Answer
from tidegate.model.verdict import Phase
from tidegate.questions.errors import BadAnswerError

if TYPE_CHECKING:
    from tests.lab.api import Lab
    from tidegate.server.serve import Server

A, B = "1.2.3.4:443", "1.2.3.5:443"


@pytest.fixture
def origins(lab: Lab) -> Lab:
    """Two servers that send back what they get."""
    for address in ("1.2.3.4", "1.2.3.5"):
        lab.origin("raw", address, 443)
    return lab


async def _echoes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    with contextlib.suppress(OSError):
        writer.write(b"\x00")
        return await asyncio.wait_for(reader.read(1), 10) == b"\x00"
    return False


def _lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def test_a_phase_holds_for_new_connections_and_open_ones_are_marked(tmp_path: Path, origins: Lab) -> None:
    """POL-7: from the operator's side; what is open stays open, and its line says so."""
    assert origins

    async def act(server: Server) -> None:
        rules = policy(A)
        install = rules.replace(closed_phases=frozenset({Phase.INSTALL}))
        install = install.replace(index=type(rules.index)(tuple(r for r in rules.index.rows if r[5] == "runtime")))
        front = await Front.open(server, tmp_path, rules=install)
        (task,) = server.registry.living()
        reader, writer, head = await front.connect(A)
        assert b" 200 " in head
        assert await server.registry.set_phase(task, Phase.INSTALL, cut=False, by="me") == 0
        assert await _echoes(reader, writer)
        assert b" 403 " in await front.asks(A)
        record = server.store.task("t1")
        assert record is not None
        assert record.phase is Phase.INSTALL
        writer.close()
        await until(lambda: any(line.get("kept") for line in _lines(front.log)))
        await server.registry.set_phase(task, Phase.RUNTIME, cut=False, by="me")
        reader, writer, head = await front.connect(A)
        assert b" 200 " in head
        assert await server.registry.set_phase(task, Phase.INSTALL, cut=True, by="me") == 1
        assert await reader.read() == b""
        writer.close()
        await front.finish()

    served(tmp_path, act)
    changes = [line for line in actions(tmp_path) if line["type"] == "task.phase"]
    assert [(line["before"], line["phase"], line["by"], line["cut"]) for line in changes] == [
        ("runtime", "install", "me", 0), ("install", "runtime", "me", 0), ("runtime", "install", "me", 1),
    ]  # fmt: skip


def test_pause_refuses_what_is_new_until_it_goes_on(tmp_path: Path, origins: Lab) -> None:
    """POL-8: open tunnels stay, new ones are told why; another task is not touched."""
    assert origins

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=policy(A))
        other = await Front.open(server, tmp_path, task="t2", rules=policy(A))
        task = server.registry.get("t1")
        reader, writer, _head = await front.connect(A)
        await server.registry.pause(task, paused=True, by="me")
        assert server.registry.view(task)["paused"]
        assert await _echoes(reader, writer)
        assert b"the operator has paused this task's network" in await front.asks(A)
        assert b" 200 " in (await other.connect(A))[2]
        await server.registry.pause(task, paused=False, by="me")
        assert b" 200 " in (await front.connect(A))[2]
        writer.close()
        for one in (front, other):
            await one.finish()

    served(tmp_path, act)


def test_another_wait_is_that_of_questions_to_come(tmp_path: Path) -> None:
    """ASK-2: a question that is open keeps its time; what is asked next has the new one, in the next server too."""

    def time_of(server: Server, host: str) -> float:
        (found,) = [one for one in server.desk.questions() if one.host == host]
        return found.deadline_at - found.opened_at

    async def act(server: Server) -> str:
        server.presence.seen()
        front = await Front.open(server, tmp_path, rules=policy(ask=("a.test:80", "b.test:80")), ask="wait")
        (task,) = server.registry.living()
        async with asyncio.TaskGroup() as group:
            group.create_task(front.asks("a.test:80"))
            await until(lambda: server.registry.view(task)["questions"] == 1)
            for wrong in (59, 28801):
                with pytest.raises(UsageError, match="cannot wait"):
                    await server.registry.set_wait(task, wrong, by="me")
            await server.registry.set_wait(task, 28800, by="me")
            group.create_task(front.asks("b.test:80"))
            await until(lambda: server.registry.view(task)["questions"] == 2)
            assert (time_of(server, "a.test"), time_of(server, "b.test")) == (900, 28800)
            assert server.registry.view(task)["wait_seconds"] == 28800
            for question in server.desk.questions():
                await server.answer(question.id, Answer.DENY, NO_TERMS, "me")
        await front.finish()
        made = await server.registry.create(folder=str(tmp_path), policy=policy(), name="", by="me")
        await server.registry.set_wait(made, 60, by="me")
        await server.registry.end(made, by="me")
        with pytest.raises(UsageError, match="no living task"):
            server.registry.get(made.id)
        kept = await server.registry.record(made.id)
        assert kept["wait_seconds"] == 60
        return made.id

    ended = served(tmp_path, act)

    async def later(server: Server) -> None:
        assert (await server.registry.record(ended))["wait_seconds"] == 60

    served(tmp_path, later)


def test_a_cut_closes_what_is_open_there(tmp_path: Path, origins: Lab) -> None:
    """POL-8: by host and port, or everything; the count is what was closed."""
    assert origins

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=policy(A, B))
        task = server.registry.get("t1")
        one, two = await front.connect(A), await front.connect(B)
        assert await server.registry.cut(task, host="1.2.3.4", port=80, by="me") == 0
        assert await server.registry.cut(task, host="1.2.3.4", by="me") == 1
        assert await one[0].read() == b""
        assert await _echoes(two[0], two[1])
        assert b" 200 " in (await front.connect(A))[2]
        assert await server.registry.cut(task, by="me") == 2
        assert await two[0].read() == b""
        await front.finish()
        assert {line["reason"] for line in _lines(front.log)} == {"cut"}

    served(tmp_path, act)


def test_allow_and_deny_change_a_living_task(tmp_path: Path, origins: Lab) -> None:
    """POL-8: an allow opens it for what comes, a deny also cuts what is open; both are on record."""
    origins.dns.set("a.test", A=["1.2.3.4"])

    async def act(server: Server) -> None:
        rules = policy("a.test:443", deny=("d.test",)).replace()
        front = await Front.open(server, tmp_path, rules=rules)
        task = server.registry.get("t1")
        assert b" 403 " in await front.asks(B)
        assert await server.registry.change(task, allow=[B], by="me") == 0
        second = await front.connect(B)
        first = await front.connect("a.test:443")
        assert b" 200 " in first[2]
        assert b" 200 " in second[2]
        assert await server.registry.change(task, deny=["1.2.3.4"], by="me") == 1
        assert await first[0].read() == b""
        assert await _echoes(second[0], second[1])
        assert b" 403 " in await front.asks("a.test:443")
        assert await server.registry.change(task, allow=["1.2.3.4"], by="me") == 0  # the last word counts
        assert b" 200 " in (await front.connect("a.test:443"))[2]
        with pytest.raises(UsageError, match="stays denied"):
            await server.registry.change(task, allow=["d.test"], by="me")
        with pytest.raises(UsageError):
            await server.registry.change(task, allow=["https://x/"], by="me")
        assert sorted(task.operator) == ["1.2.3.4", B]
        await front.finish()

    served(tmp_path, act)
    changes = [line for line in actions(tmp_path) if line["type"] == "task.changed"]
    assert [(line.get("allow"), line.get("deny"), line["cut"]) for line in changes] == [
        ([B], None, 0), (None, ["1.2.3.4"], 1), (["1.2.3.4"], None, 0),
    ]  # fmt: skip


def test_a_question_of_a_locked_task_is_not_remembered(tmp_path: Path, origins: Lab) -> None:
    """POL-8, ASK-2: a locked policy drops what is remembered, so nobody is promised that it counts from now on."""
    assert origins

    async def act(server: Server) -> None:
        server.presence.seen()
        rules = policy(ask=("1.2.3.4",))
        locked = rules.replace(modes=rules.modes.replace(locked=True))
        front = await Front.open(server, tmp_path, rules=locked, ask="wait")
        waiting = asyncio.ensure_future(front.connect(A))
        await until(lambda: bool(server.desk.questions()))
        (question,) = server.desk.questions()
        assert "locked" in question.no_remember
        with pytest.raises(BadAnswerError, match="locked"):
            await server.answer(question.id, Answer.REMEMBER, NO_TERMS, "me")
        await server.answer(question.id, Answer.TASK, NO_TERMS, "me")
        assert b" 200 " in (await waiting)[2]

    served(tmp_path, act)


def test_a_locked_task_takes_no_allow(tmp_path: Path) -> None:
    """POL-8: it says so instead of doing nothing."""

    async def act(server: Server) -> None:
        rules = policy()
        task = await server.registry.create(
            folder=str(tmp_path), policy=rules.replace(modes=rules.modes.replace(locked=True)), by="me"
        )
        with pytest.raises(UsageError, match="locked"):
            await server.registry.change(task, allow=["a.test"], by="me")
        await server.registry.change(task, deny=["a.test"], by="me")

    served(tmp_path, act)


@pytest.mark.parametrize("paused", [False, True])
def test_a_rule_settles_what_waits_for_an_answer(tmp_path: Path, origins: Lab, *, paused: bool) -> None:
    """POL-8, ASK-1: who waits goes on by the operator's rule, or hears of it; a task that was paused stays paused."""
    assert origins

    async def act(server: Server) -> None:
        server.presence.seen()
        front = await Front.open(server, tmp_path, rules=policy(ask=(A, B)), ask="wait")
        (task,) = server.registry.living()
        async with asyncio.TaskGroup() as group:
            allowed = group.create_task(front.connect(A))
            denied = group.create_task(front.connect(B))
            await until(lambda: server.registry.view(task)["questions"] == 2)
            await server.registry.pause(task, paused=paused, by="me")
            assert await server.registry.change(task, allow=[A], deny=[B], by="me") == 0
        assert (b" 403 " if paused else b" 200 ") in allowed.result()[2]
        assert b" 403 " in denied.result()[2]
        await until(lambda: server.registry.view(task)["questions"] == 0)
        assert {question.state.value for question in server.desk.questions()} == {"ended"}
        assert {question.by for question in server.desk.questions()} == {"me"}
        await front.finish()
        reasons = {line["host"]: line["reason"] for line in _lines(front.log)}
        assert reasons == {"1.2.3.4": "paused" if paused else "stopping", "1.2.3.5": "deny-rule"}

    served(tmp_path, act)


def test_a_deny_in_a_paused_task_cuts_only_what_it_covers(tmp_path: Path, origins: Lab) -> None:
    """POL-8: a pause refuses what is new and leaves what is open; a deny closes what it denies, and nothing else."""
    assert origins

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=policy(A, B))
        (task,) = server.registry.living()
        stays, goes = await front.connect(A), await front.connect(B)
        await server.registry.pause(task, paused=True, by="me")
        assert await server.registry.change(task, deny=[B], by="me") == 1
        assert await _echoes(*stays[:2])
        assert not await _echoes(*goes[:2])

    served(tmp_path, act)


def test_what_one_task_has_remembered_settles_the_others_of_its_folder(tmp_path: Path, origins: Lab) -> None:
    """ASK-2, ASK-8: the host is allowed on this folder from now on, so nobody is asked about it twice."""
    assert origins

    async def act(server: Server) -> None:
        server.presence.seen()
        fronts = [
            await Front.open(server, tmp_path, task=name, rules=policy(ask=("1.2.3.4",)), ask="wait")
            for name in ("t1", "t2")
        ]
        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(front.connect(A)) for front in fronts]
            await until(lambda: len(server.desk.questions()) == 2)
            (number,) = [one.id for one in server.desk.questions() if one.task == "t1"]
            await server.answer(number, Answer.REMEMBER, NO_TERMS, "me")
        assert all(b" 200 " in one.result()[2] for one in waiting)

    served(tmp_path, act)


def test_what_cannot_be_kept_is_not_in_force(tmp_path: Path, origins: Lab) -> None:
    """POL-8, JRN-5: an allow, a pause and a phase that the store cannot take are refused and change nothing."""
    assert origins

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=policy(A))
        (task,) = server.registry.living()
        other = sqlite3.connect(Path(server.state) / "tidegate.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        changes = (
            server.registry.change(task, allow=[B], by="me"),
            server.registry.pause(task, paused=True, by="me"),
            server.registry.set_phase(task, Phase.INSTALL, cut=False, by="me"),
        )
        found = await asyncio.gather(*changes, return_exceptions=True)
        assert [type(error) for error in found] == [NotSavedError] * 3
        other.close()
        assert (task.operator, task.paused, task.phase) == ({}, False, Phase.RUNTIME)
        assert b" 403 " in await front.asks(B)
        assert b" 200 " in (await front.connect(A))[2]
        await server.registry.change(task, allow=[B], by="me")
        assert b" 200 " in (await front.connect(B))[2]

    served(tmp_path, act)
    assert [line["type"] for line in actions(tmp_path)].count("task.changed") == 1
