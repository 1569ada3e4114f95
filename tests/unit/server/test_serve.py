"""tidegate.server.serve: start, end, what a killed server left, and the way of a question through all parts."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.server.kit import Front, actions, policy, served, until
from tidegate.gate.gate import GateTask
from tidegate.gate.identity import owned_by
from tidegate.journal.file_lock import FileLock
from tidegate.journal.segments import LOCK_NAME
from tidegate.model.errors import NotSavedError, StartError
from tidegate.model.question import NO_TERMS, Answer, State
from tidegate.runtime.state import log_folder
from tidegate.server.serve import LOST, Server
from tidegate.state.settings import Settings
from tidegate.state.sqlite import open_store

if TYPE_CHECKING:
    from tests.lab.api import Lab

A = "1.2.3.4:443"


async def _asked(server: Server, front: Front, where: str) -> asyncio.Task[tuple[Any, Any, bytes]]:
    """Connect, and return when the question is open."""
    server.presence.seen()
    before = len(server.desk.questions())
    waiting = asyncio.ensure_future(front.connect(where))
    await until(lambda: len(server.desk.questions()) > before)
    return waiting


def test_a_second_server_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    """HLD-7: exit 78 that names the first; the first serves on."""

    async def act(first: Server) -> None:
        second = Server(first.state, environ={"HOME": str(tmp_path)}, warn=print)
        with pytest.raises(StartError, match=f"pid {os.getpid()}"):
            await second.start()
        front = await Front.open(first, tmp_path)
        assert await front.finish() is not None

    served(tmp_path, act)


def test_others_find_it_while_it_runs(tmp_path: Path) -> None:
    """SRV-1: server.json is there from when it serves to when it ends."""

    async def act(server: Server) -> None:
        info = json.loads((tmp_path / "state" / "run" / "server.json").read_text())
        assert (info["pid"], info["version"], info["api_port"]) == (os.getpid(), server.version, None)

    served(tmp_path, act)
    assert not (tmp_path / "state" / "run" / "server.json").exists()


def test_a_start_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """HLD-7: a store that cannot be read stops the start; the next one may try."""
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "tidegate.db").write_text("no database at all, but long enough to be one" * 100)

    async def go() -> None:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(2):
            server = Server(str(tmp_path / "state"), environ={"HOME": str(tmp_path)}, warn=print)
            with pytest.raises(StartError):
                await server.start()
        assert len(os.listdir("/proc/self/fd")) <= before + 1

    asyncio.run(go())


@pytest.mark.usefixtures("isolated")
def test_what_a_killed_server_left_is_put_right(tmp_path: Path) -> None:
    """HLD-8: its `run` has ended and is marked so, in store and log; a created task lives on as it was."""

    async def begin(server: Server) -> str:
        task = await server.registry.create(folder=str(tmp_path), policy=policy("a.test"), name="keeps", by="me")
        await server.registry.change(task, deny=["b.test"], by="me")
        await server.registry.pause(task, paused=True, by="me")
        await Front.open(server, tmp_path, task="lost")
        return task.id

    async def then(server: Server) -> None:
        assert [one.name for one in server.registry.living()] == ["keeps"]
        task = server.registry.get(kept)
        assert task.paused
        assert list(task.operator) == ["b.test"]
        assert task.policy == policy("a.test")
        lost = server.store.task("lost")
        assert lost is not None
        assert lost.outcome == LOST
        front = await Front.join(server, kept)
        assert b"paused" in await front.asks("a.test:443")
        await front.finish()

    kept = served(tmp_path, begin)
    # As a server that was killed leaves it: the clean end above is undone.
    import sqlite3

    with closing(sqlite3.connect(tmp_path / "state" / "tidegate.db")) as db, db:
        db.execute("UPDATE tasks SET ended_at = NULL, outcome = '' WHERE id = 'lost'")
    db.close()
    served(tmp_path, then)
    ends = [line for line in actions(tmp_path) if line["type"] == "task.ended" and line["task"] == "lost"]
    assert ends[-1]["outcome"] == LOST


def test_a_record_that_cannot_go_on_ends_with_a_line(tmp_path: Path) -> None:
    """HLD-8: a damaged record never stops the server, and never becomes a task with another policy."""

    async def begin(server: Server) -> str:
        return (await server.registry.create(folder=str(tmp_path), policy=policy(), by="me")).id

    kept = served(tmp_path, begin)
    import sqlite3

    with closing(sqlite3.connect(tmp_path / "state" / "tidegate.db")) as db, db:
        db.execute("UPDATE tasks SET policy = ?", (b"[99]",))
    db.close()
    warned: list[str] = []

    async def then(server: Server) -> None:
        assert server.registry.living() == []
        record = server.store.task(kept)
        assert record is not None
        assert record.outcome.startswith("could not go on")

    served(tmp_path, then, warned=warned)
    assert kept in warned[0]


def test_an_answer_lets_those_through_who_wait(tmp_path: Path, lab: Lab) -> None:
    """ASK-1, ASK-2: the question opens with a connection; allowed, it goes on; store and log have it before."""
    lab.origin("raw", "1.2.3.4", 443)

    async def act(server: Server) -> None:
        watching = server.bus.subscribe()
        front = await Front.open(server, tmp_path, rules=policy(ask=(A,)), ask="wait")
        waiting = await _asked(server, front, A)
        (question,) = server.desk.questions()
        assert server.registry.view(server.registry.get("t1"))["questions"] == 1
        answered = await server.answer(question.id, Answer.ALLOW, NO_TERMS, "me")
        assert answered.state is State.ANSWERED
        assert b" 200 " in (await waiting)[2]
        assert [record.question for record in server.store.answers("t1")] == [question.id]
        await front.finish()
        told = await watching.next(5) or []
        assert {"task", "question", "connection"} <= {message.kind for message in told}

    served(tmp_path, act)
    types = [line["type"] for line in actions(tmp_path)]
    assert "question.opened" in types
    (line,) = [line for line in actions(tmp_path) if line["type"] == "question.answered"]
    assert (line["host"], line["answer"], line["by"], line["task"]) == (A, "allow", "me", "t1")


def test_an_answer_that_the_log_cannot_take_is_remembered_nowhere(tmp_path: Path, lab: Lab) -> None:
    """JRN-5, ASK-2: those who wait are refused, and no rule or grant lets a later task through that nobody allowed."""
    lab.origin("raw", "1.2.3.4", 443)

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=policy(ask=("1.2.3.4",)), ask="wait")
        for answer in (Answer.TASK, Answer.REMEMBER):
            waiting = await _asked(server, front, A)
            question = server.desk.questions()[0]
            other = FileLock(os.path.join(log_folder(server.state), LOCK_NAME))
            other.take(10)
            with pytest.raises(NotSavedError):
                await server.answer(question.id, answer, NO_TERMS, "me")
            other.close()
            assert b" 403 " in (await waiting)[2]
            assert server.store.answers("t1") == server.store.grants("t1") == server.store.rules() == ()
        waiting = await _asked(server, front, A)
        await server.answer(server.desk.questions()[0].id, Answer.REMEMBER, NO_TERMS, "me")
        assert b" 200 " in (await waiting)[2]
        assert len(server.store.rules()) == 1

    served(tmp_path, act, warned=[])
    assert len([line for line in actions(tmp_path) if line["type"] == "question.answered"]) == 1


def test_a_task_ends_whatever_the_store_can_take(tmp_path: Path, lab: Lab) -> None:
    """JRN-5, HLD-8: another process in the store's way, or a full disk, keeps no front without its counts."""
    lab.origin("raw", "1.2.3.4", 443)

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=policy(ask=("1.2.3.4",)), ask="wait")
        waiting = await _asked(server, front, A)
        question = server.desk.questions()[0]
        other = sqlite3.connect(Path(server.state) / "tidegate.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(NotSavedError, match="locked"):
            await server.answer(question.id, Answer.REMEMBER, NO_TERMS, "me")
        assert b" 403 " in (await waiting)[2]
        assert server.store.rules() == ()
        assert await front.finish() is not None  # with its counts: a task ends whatever the store can take
        assert server.store.tasks(living=True)
        other.close()

    served(tmp_path, act)
    again = open_store(str(tmp_path / "state"))
    assert again.tasks(living=True) == ()
    again.close()
    kinds = [line["type"] for line in actions(tmp_path)]
    assert "question.answered" not in kinds
    assert kinds.count("task.ended") == 1


def test_what_is_remembered_passes_for_the_next_task_until_it_is_forgotten(tmp_path: Path, lab: Lab) -> None:
    """ASK-2, ASK-8: on this folder; forgotten, a living task asks again."""
    lab.origin("raw", "1.2.3.4", 443)

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=policy(ask=("1.2.3.4",)), ask="wait")
        waiting = await _asked(server, front, A)
        await server.answer(server.desk.questions()[0].id, Answer.REMEMBER, NO_TERMS, "me")
        assert b" 200 " in (await waiting)[2]
        second = await Front.open(server, tmp_path, task="t2", rules=policy(ask=("1.2.3.4",)))
        assert b" 200 " in (await second.connect(A))[2]
        (rule,) = server.store.rules()
        assert (await server.forget(rule.id, "me")) is not None
        assert (await server.forget(rule.id, "me")) is None
        assert b"asks no one" in await second.asks(A)
        again = await _asked(server, front, A)
        again.cancel()
        for one in (front, second):
            await one.finish()

    served(tmp_path, act)
    types = [line["type"] for line in actions(tmp_path)]
    assert types.count("rule.remembered") == types.count("rule.forgotten") == 1


def test_a_denial_for_the_task_cuts_what_is_open(tmp_path: Path, lab: Lab) -> None:
    """ASK-2: deny for this task; the tunnel that an earlier answer opened is closed."""
    lab.origin("raw", "1.2.3.4", 443)

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=policy(ask=(A,)), ask="wait")
        waiting = await _asked(server, front, A)
        await server.answer(server.desk.questions()[0].id, Answer.ALLOW, NO_TERMS, "me")
        reader = (await waiting)[0]
        waiting = await _asked(server, front, A)
        opened = next(one for one in server.desk.questions() if one.state is State.OPEN)
        await server.answer(opened.id, Answer.DENY_TASK, NO_TERMS, "me")
        assert b" 403 " in (await waiting)[2]
        assert await asyncio.wait_for(reader.read(), 10) == b""
        await front.finish()

    served(tmp_path, act)


def test_stopping_refuses_what_waits_at_once(tmp_path: Path, lab: Lab) -> None:
    """ASK-3: a stop of the server refuses all that are open, tells the fronts, and takes less than a second."""
    assert lab

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=policy(ask=(A,)), ask="wait")
        waiting = await _asked(server, front, A)
        told = asyncio.ensure_future(front.told())
        began = time.monotonic()
        await server.stop()
        assert b" 503 " in (await waiting)[2]
        assert "stopping" in await told
        assert time.monotonic() - began < 5

    served(tmp_path, act)


@pytest.mark.usefixtures("isolated")
def test_nobody_there_is_an_immediate_no(tmp_path: Path) -> None:
    """ASK-4: with --wait and nobody seen within 30 s the refusal does not wait."""

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=policy(ask=(A,)), ask="wait")
        assert b"nobody is there to answer" in await front.asks(A)
        await front.finish()

    served(tmp_path, act)


def test_a_port_of_the_server_is_out_of_every_tasks_reach(tmp_path: Path, lab: Lab) -> None:
    """ADR-1: whatever a policy says, the API's port of this machine is protected from when it is known."""
    address = "127.0.0.1"
    lab.origin("raw", "1.2.3.4", 443)

    async def act(server: Server) -> None:
        import socket

        with socket.create_server((address, 0)) as listener:
            where = f"{address}:{listener.getsockname()[1]}"
            front = await Front.open(server, tmp_path, rules=policy(where))
            assert b" 200 " in (await front.connect(where))[2]
            server.protect([listener.getsockname()[1]])
            await server.gate.call(lambda: None)  # it is posted to the gate: in force before anybody asks
            assert b"protected" in await front.asks(where)
            await front.finish()

    served(tmp_path, act)


def test_settings_in_force_are_the_newest(tmp_path: Path) -> None:
    """SRV-2, ASK-2: a task created later waits as long as they say."""

    async def act(server: Server) -> None:
        server.settings_changed(Settings(wait_seconds=120), "me")
        task = await server.registry.create(folder=str(tmp_path), policy=policy(), by="me")
        assert task.wait_seconds == 120

    served(tmp_path, act)
    assert [line["wait_seconds"] for line in actions(tmp_path) if line["type"] == "settings.changed"] == [120]


def test_a_lost_gate_ends_the_server(tmp_path: Path) -> None:
    """HLD-7: fronts see the end and say so; the exit status is 70."""
    warned: list[str] = []

    async def act(server: Server) -> None:
        running = asyncio.ensure_future(server.run())
        server.gate.gate.stop()
        assert await running == 70

    served(tmp_path, act, warned=warned)
    assert "gate's thread" in warned[0]


@pytest.mark.usefixtures("isolated")
def test_who_is_not_the_task_is_in_the_log_and_in_no_journal(tmp_path: Path) -> None:
    """GAT-2: a connection of somebody else to a gate is one line with a count, whoever's gate it was."""

    async def act(server: Server) -> None:
        gate = server.gate.gate
        sock = socket.create_server(("127.0.0.1", 0))
        address = sock.getsockname()
        task = GateTask("t1", policy("a.test"))
        await server.gate.call(lambda: gate.add_listener(sock.detach(), task, owned_by(30001)))
        for number in (1, 2, 3):
            with socket.create_connection(address, 10) as client:
                client.sendall(b"CONNECT a.test:443 HTTP/1.1\r\n\r\n")
                await until(lambda number=number: gate.strangers.count == number)  # it is there until it was looked at

    served(tmp_path, act)
    told = [line for line in actions(tmp_path) if line["type"] == "peer.refused"]
    assert [(line["task"], line["count"]) for line in told] == [("t1", 1), ("t1", 2)]
    assert {line["uid"] for line in told} <= {0, -1, os.geteuid()}
