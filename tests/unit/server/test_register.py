"""tidegate.server.register: tasks and commands from beginning to end, in a whole server with a real gate."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.server.kit import Front, actions, policy, served, until
from tidegate.holds import attempt_log
from tidegate.holds.inside import PROXY, TaskSockets, owner_role
from tidegate.model.errors import StartError, UsageError
from tidegate.model.verdict import Phase
from tidegate.runtime.attempts import NONE
from tidegate.server import register as register_module
from tidegate.state.sqlite import open_store

if TYPE_CHECKING:
    from tests.lab.api import Lab
    from tidegate.server.living import Living
    from tidegate.server.serve import Server

A, B = "1.2.3.4:443", "1.2.3.5:443"


@pytest.fixture
def origins(lab: Lab) -> Lab:
    """Two servers that send back what they get."""
    for address in ("1.2.3.4", "1.2.3.5"):
        lab.origin("raw", address, 443)
    return lab


def _lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


@pytest.mark.usefixtures("isolated")
def test_a_task_of_run_lives_as_long_as_its_front(tmp_path: Path) -> None:
    """HLD-8, JRN-2: in the registry, the store and the action log, from beginning to end."""

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, command=("make", "all"))
        (task,) = server.registry.living()
        view = server.registry.view(task)
        assert (view["id"], view["state"], view["command"], view["hold"]) == ("t1", "living", ["make", "all"], "netns")
        assert len(view["execs"]) == 1
        assert b" 403 " in await front.asks("b.test:1")
        finished = await front.finish()
        assert finished is not None
        assert finished[0][0][:2] == ["b.test", 1]
        await until(lambda: not server.registry.living())
        record = server.store.task("t1")
        assert record is not None
        assert (record.outcome, record.ended_at is not None) == ("ended", True)
        assert (await server.registry.record("t1"))["state"] == "ended"

    served(tmp_path, act)
    assert [line["type"] for line in actions(tmp_path)] == [
        "server.started", "task.created", "exec.started", "net.blocked", "egress.refused", "exec.ended", "task.ended",
        "server.stopped",
    ]  # fmt: skip


@pytest.mark.usefixtures("isolated")
def test_a_front_that_is_killed_ends_its_task(tmp_path: Path, origins: Lab) -> None:
    """HLD-8: its connections are closed and recorded, and nothing of it stays in the gate."""
    assert origins

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=policy(A))
        reader, writer, head = await front.connect(A)
        assert b" 200 " in head
        front.link.close()
        assert await reader.read() == b""
        writer.close()
        await until(lambda: not server.registry.living())
        assert server.gate.gate.connections == 0
        assert not server.gate.gate.listeners
        (line,) = _lines(front.log)
        assert (line["reason"], line["how"]) == ("stopping", "tunneled")

    served(tmp_path, act)


@pytest.mark.usefixtures("isolated")
def test_commands_of_a_created_task_come_and_go(tmp_path: Path) -> None:
    """HLD-5: it lives between its commands, has one journal, and each command its own counts."""

    async def act(server: Server) -> Living:
        task = await server.registry.create(folder=str(tmp_path), policy=policy(), name="hello", by="me")
        assert server.registry.get("hello") is task
        assert server.registry.get(task.id[:-1]) is task
        one, two = await Front.join(server, task.id), await Front.join(server, "hello")
        assert len(task.execs) == 2
        assert b" 403 " in await one.asks("one.test:1")
        assert b" 403 " in await two.asks("two.test:1")
        for front, name in ((one, "one.test"), (two, "two.test")):
            finished = await front.finish()
            assert finished is not None
            assert [row[0] for row in finished[0]] == [name]
        await until(lambda: not task.execs)
        assert server.registry.living() == [task]
        assert server.registry.view(task)["refused"] == 2
        await server.registry.end(task, by="me")
        assert server.registry.living() == []
        with pytest.raises(UsageError, match="no living task"):
            server.registry.get(task.id)
        return task

    task = served(tmp_path, act)
    assert len(_lines(str(tmp_path / "state" / "tasks" / task.id / "network.jsonl"))) == 2


def test_ending_a_task_ends_its_commands(tmp_path: Path, origins: Lab) -> None:
    """HLD-8: its front is told why at once, and has its counts; its connections are closed."""
    assert origins

    async def act(server: Server) -> None:
        task = await server.registry.create(folder=str(tmp_path), policy=policy(A), by="me")
        front = await Front.join(server, task.id)
        reader, writer, _head = await front.connect(A)
        told = asyncio.ensure_future(front.told())
        await server.registry.end(task, by="me")
        assert "tidegate task end" in await told
        assert await reader.read() == b""
        writer.close()
        finished = await front.finish()
        assert finished is not None
        assert len(finished[0]) == 1
        with pytest.raises((StartError, UsageError)):
            await Front.join(server, task.id)

    served(tmp_path, act)


def test_what_cannot_be_kept_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HLD-7: an id that is taken, a journal that cannot be opened, too many tasks: nothing of it stays."""

    async def act(server: Server) -> None:
        first = await Front.open(server, tmp_path)
        for why, order in (
            ("there is a task", {}),
            ("not a task's id", {"task": "../x"}),
            ("cannot be opened", {"task": "t2", "log": str(tmp_path / "no" / "log")}),
            ("cannot be used", {"task": "t3", "where": str(tmp_path / "no")}),
        ):
            with pytest.raises(StartError, match=why):
                await Front.open(server, tmp_path, **order)
        monkeypatch.setattr(register_module, "MOST_TASKS", 1)
        with pytest.raises(StartError, match="live already"):
            await Front.open(server, tmp_path, task="t4")
        assert [task.id for task in server.registry.living()] == ["t1"]
        assert [record.id for record in server.store.tasks()] == ["t1"]
        await first.finish()

    served(tmp_path, act)


@pytest.mark.parametrize("seconds", [59, 28801, float("nan"), "900", True])
def test_a_wait_outside_its_bounds_is_refused(tmp_path: Path, seconds: Any) -> None:
    """ASK-2: 1 minute to 8 hours; it cannot be turned off."""

    async def act(server: Server) -> None:
        with pytest.raises(UsageError, match="wait"):
            await server.registry.create(folder=str(tmp_path), policy=policy(), wait_seconds=seconds, by="me")
        for good in (60, 28800):
            await server.registry.create(folder=str(tmp_path), policy=policy(), wait_seconds=good, by="me")

    served(tmp_path, act)


@pytest.mark.usefixtures("isolated")
def test_what_was_set_up_stays_so_and_what_was_not_is_set_up_again(tmp_path: Path) -> None:
    """POL-7, HLD-8: a server that ended in the midst of a set-up left its phase behind; the next starts over."""
    rules = policy("a.test").replace(setup=("make",))

    async def first(server: Server) -> str:
        for name in ("before", "amid", "after"):
            task = await server.registry.create(folder=str(tmp_path), policy=rules, name=name, by="me")
            assert server.registry.set_up_of(task, "netns") == ("make",)
            assert server.registry.set_up_of(task, "uid") == ("make",)
            assert server.registry.set_up_of(task, "offline") == server.registry.set_up_of(task, "open") == ()
        amid, after = server.registry.get("amid"), server.registry.get("after")
        exec_ = server.registry.begin_exec(amid, command=("true",), hold="netns", ask="no", say=lambda _: None)
        await server.registry.begin_set_up(exec_)
        with pytest.raises(StartError, match="being set up"):
            server.registry.begin_exec(amid, command=("true",), hold="netns", ask="no", say=lambda _: None)
        amid.execs.clear()  # as if it were killed here
        after.set_up = True
        await server.registry.pause(after, paused=True, by="me")
        return ""

    async def second(server: Server) -> None:
        found = {task.name: task for task in server.registry.living()}
        assert {name: bool(server.registry.set_up_of(task, "netns")) for name, task in found.items()} == {
            "before": True, "amid": True, "after": False,
        }  # fmt: skip
        assert {task.phase for task in found.values()} == {Phase.RUNTIME}

    served(tmp_path, first)
    served(tmp_path, second)


def test_the_ends_of_many_tasks_are_a_few_writes(tmp_path: Path) -> None:
    """HLD-8, SRV-4: a server that ends with many tasks tells each, and keeps what became of all of them together."""
    many = 60

    async def act(server: Server) -> list[int]:
        fronts = [await Front.open(server, tmp_path, task=f"t{number}") for number in range(many)]
        writes: list[int] = []
        end_tasks = server.store.end_tasks

        def counting(ends: Any) -> tuple[str, ...]:
            ended = end_tasks(ends)
            writes.append(len(ended))
            return ended

        server.store.end_tasks = counting  # type: ignore[method-assign]  # what it writes, counted
        await server.stop()
        assert {await front.told() for front in fronts} == {"tidegate: the server is stopping"}
        return writes

    writes = served(tmp_path, act)
    assert sum(writes) == many
    assert len(writes) <= many // 3, writes
    store = open_store(str(tmp_path / "state"))
    assert {(record.outcome, record.ended_at is not None) for record in store.tasks(limit=100)} == {("ended", True)}
    store.close()
    assert [line["type"] for line in actions(tmp_path)].count("task.ended") == many


@pytest.mark.usefixtures("isolated")
def test_what_is_not_recorded_is_said_to_the_front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-3: where no log of attempts can be read, whoever started the command hears so; the command runs."""
    monkeypatch.setattr(attempt_log, "open_attempts", lambda _group: (attempt_log.NEITHER, -1))

    async def act(server: Server) -> None:
        listener, mark = socket.create_server(("127.0.0.1", 0)), os.open(os.devnull, os.O_RDONLY)
        sockets = TaskSockets((PROXY, owner_role(30001)), (listener.fileno(), mark))
        front = await Front.open(server, tmp_path, hold="uid", deliver=sockets)
        listener.close()
        os.close(mark)
        assert server.registry.get("t1").view()["network"] == ""
        assert await front.finish() is not None
        assert front.warned == [f"note: {NONE}"]

    served(tmp_path, act)
