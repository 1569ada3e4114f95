"""tidegate.server.front_door: oddities at the door; what fronts do there is in test_tasks.py and test_task_desk.py."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.server.kit import Front, actions, policy, served, until
from tidegate import __version__
from tidegate.holds.inside import TaskSockets
from tidegate.model.errors import StartError
from tidegate.runtime.channel import LENGTH, MAX_FRAME
from tidegate.state.sqlite import open_store

if TYPE_CHECKING:
    from tidegate.server.serve import Server


def _frame(value: Any) -> bytes:
    body = json.dumps(value).encode()
    return len(body).to_bytes(LENGTH, "big") + body


async def _said(server: Server, data: bytes, fds: tuple[int, ...] = ()) -> list[Any]:
    """Send bytes and return the messages that come until the server lets go."""

    def talk() -> bytes:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(20)
            sock.connect(os.path.join(server.state, "run", "front.sock"))
            got = b""
            try:
                socket.send_fds(sock, [data], list(fds))
                while part := sock.recv(65536):
                    got += part
            except (BrokenPipeError, ConnectionResetError):
                pass  # it let go before all was sent
            return got

    data = await asyncio.to_thread(talk)
    found = []
    while data:
        length = int.from_bytes(data[:LENGTH], "big")
        found.append(json.loads(data[LENGTH : LENGTH + length]))
        data = data[LENGTH + length :]
    return found


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        (MAX_FRAME + 1).to_bytes(LENGTH, "big"),
        b"\x00\x00\x00\x02{]",
        _frame({"run": 1}),
        _frame([]),
        _frame([1]),
        _frame("run"),
        b"\x00\x00\x00\x01\xff",
        b"\x00\x00\x00\x00",
        (200_000).to_bytes(LENGTH, "big") + b"[" * 200_000,
        (200_000).to_bytes(LENGTH, "big") + b'{"a":' * 40_000,
    ],
)
def test_what_is_no_frame_ends_the_conversation(tmp_path: Path, data: bytes) -> None:
    """HLD-7: garbage gets no answer and leaves nothing."""

    async def act(server: Server) -> None:
        if len(data) > 8 or data[:1] == b"\x00":
            assert await _said(server, data) == []
        assert server.registry.living() == []

    served(tmp_path, act)


@pytest.mark.parametrize(
    "message",
    [
        ["dance"],
        ["sockets", []],
        ["begin", 1.0],
        ["finish"],
        ["next", "runtime", []],
        ["run"],
        ["run", {}],
        ["run", {"version": __version__}],
        ["run", {"version": __version__, "policy": [9]}],
        ["run", []],
        ["exec", {"version": __version__, "task": "nobody"}],
        ["task", "list"],
        ["task", {}, {}],
    ],
)
def test_what_no_front_says_is_one_line_and_the_end(tmp_path: Path, message: list[Any]) -> None:
    """HLD-7: an error, and the server lives on."""

    async def act(server: Server) -> None:
        (answer,) = await _said(server, _frame(message))
        assert answer[0] == "failed"
        assert answer[1]
        front = await Front.open(server, tmp_path)
        assert await front.finish() is not None

    served(tmp_path, act)


def test_descriptors_that_nobody_asked_for_are_closed(tmp_path: Path) -> None:
    """HLD-13: none of them stays open in the server."""

    async def act(server: Server) -> None:
        before = len(os.listdir("/proc/self/fd"))
        read, write = os.pipe()
        await _said(server, _frame(["dance"]), (write,))
        os.close(write)
        assert os.read(read, 1) == b""
        os.close(read)
        await until(lambda: len(os.listdir("/proc/self/fd")) <= before)

    served(tmp_path, act)


def test_descriptors_without_a_message_do_not_pile_up(tmp_path: Path) -> None:
    """HLD-13, B70: a front that sends descriptors and never says for what is let go, and they are closed."""

    async def act(server: Server) -> None:
        before = len(os.listdir("/proc/self/fd"))

        def flood() -> None:
            with socket.socket(socket.AF_UNIX) as sock, open(os.devnull) as null:
                sock.settimeout(20)
                sock.connect(os.path.join(server.state, "run", "front.sock"))
                sock.sendall((1 << 20).to_bytes(LENGTH, "big"))
                for _ in range(200):
                    try:
                        socket.send_fds(sock, [b"x"], [null.fileno()] * 100)
                    except (BrokenPipeError, ConnectionResetError):
                        return
                pytest.fail("20,000 descriptors were taken")

        await asyncio.to_thread(flood)
        await until(lambda: len(os.listdir("/proc/self/fd")) <= before)

    served(tmp_path, act)


def test_a_task_whose_command_cannot_begin_is_over(tmp_path: Path) -> None:
    """HLD-8: nothing stays in the list of living tasks that has no front to end it."""

    async def act(server: Server) -> None:
        order = {
            "version": __version__, "task": "t1", "phase": "runtime", "policy": None, "log": "", "rotate": True,
            "command": ["true"], "folder": str(tmp_path), "hold": "offline", "own_names": 5,
        }  # fmt: skip
        (answer,) = await _said(server, _frame(["run", order]))
        assert answer[0] == "failed"
        assert server.registry.living() == []
        record = server.store.task("t1")
        assert record is not None
        assert record.ended_at is not None

    served(tmp_path, act)


def test_a_front_serves_its_sockets_once(tmp_path: Path) -> None:
    """HLD-7: a second set would be served beside the first and outlive the command."""

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path)
        with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(StartError, match="already"):
            await front.serve(deliver=TaskSockets(("proxy",), (listener.fileno(),)))
        await until(lambda: not server.registry.living())
        assert not server.gate.gate.listeners

    served(tmp_path, act)


def test_commands_that_end_with_the_server_are_on_record(tmp_path: Path) -> None:
    """HLD-8: fronts that go in the moment when the server ends have ended: none is found living, or lost, later."""
    tasks = [f"t{number}" for number in range(20)]

    async def act(server: Server) -> None:
        fronts = [await Front.open(server, tmp_path, task=task) for task in tasks]
        for front in fronts:
            front.drop()
        await until(lambda: sum(len(task.execs) for task in server.registry.living()) < len(tasks))

    served(tmp_path, act)
    ended = [line["task"] for line in actions(tmp_path) if line["type"] == "task.ended"]
    assert sorted(ended) == sorted(tasks)
    store = open_store(str(tmp_path / "state"))
    assert store.tasks(living=True) == ()
    store.close()


def test_more_or_fewer_descriptors_than_roles_are_refused(tmp_path: Path) -> None:
    """HLD-7: nothing is served that was not named."""

    async def act(server: Server) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            fd = listener.fileno()
            for number, sockets in enumerate(((("proxy", "proxy"), (fd,)), ((), (fd,)), (("proxy",), (fd, fd)))):
                with pytest.raises(StartError, match="descriptors"):
                    await Front.open(server, tmp_path, task=f"t{number}", deliver=TaskSockets(*sockets))
                await until(lambda: not server.registry.living())
        assert not server.gate.gate.listeners

    served(tmp_path, act)


@pytest.mark.usefixtures("isolated")
def test_another_version_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HLD-7: a server that was not restarted after an update says so, and how to go on."""

    async def act(server: Server) -> None:
        monkeypatch.setattr("tidegate.runtime.server_link.__version__", "9.9")
        with pytest.raises(StartError, match=r"9\.9") as raised:
            await Front.open(server, tmp_path)
        assert "--no-server" in raised.value.fix

    served(tmp_path, act)


@pytest.mark.usefixtures("isolated")
def test_a_policy_that_is_no_policy_begins_nothing(tmp_path: Path) -> None:
    """HLD-7: a broken snapshot is an error, not a task without rules."""

    async def act(server: Server) -> None:
        for broken in ([], [99], "x", {"a": 1}, 0):
            with pytest.raises(StartError):
                await Front.open(server, tmp_path, policy=broken)
        assert server.registry.living() == []

    served(tmp_path, act)


@pytest.mark.usefixtures("isolated")
def test_many_fronts_are_served_side_by_side(tmp_path: Path) -> None:
    """GAT-11: each has its own task, journal and answers."""

    async def act(server: Server) -> None:
        async def one(number: int) -> None:
            front = await Front.open(server, tmp_path, task=f"t{number}", rules=policy())
            assert b" 403 " in await front.asks(f"n{number}.test:1")
            finished = await front.finish()
            assert finished is not None
            assert [row[0] for row in finished[0]] == [f"n{number}.test"]

        await asyncio.gather(*(one(number) for number in range(20)))
        await until(lambda: not server.registry.living())

    served(tmp_path, act)


@pytest.mark.usefixtures("isolated")
def test_counts_that_are_asked_for_while_the_server_ends_are_given(tmp_path: Path) -> None:
    """HLD-8, JRN-4: commands that end just then have their summary, whoever came first."""

    async def act(server: Server) -> None:
        fronts = [await Front.open(server, tmp_path, task=f"t{number}") for number in range(8)]
        for front in fronts:
            assert b" 403 " in await front.asks("a.test:443")
        finishing = [asyncio.ensure_future(front.finish()) for front in fronts]
        await until(lambda: len(server.registry.living()) < 8)
        await server.stop()
        found = await asyncio.gather(*finishing)
        assert [None for one in found if one is None] == []
        assert any(one is not None and one[0] for one in found)

    served(tmp_path, act)
