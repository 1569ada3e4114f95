"""tidegate.server.terminals: fronts with --ask hear of their task's questions, and answer those."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.unit.server.kit import Front, policy, served, until
from tidegate.runtime.server_link import find_server

if TYPE_CHECKING:
    from tidegate.server.serve import Server

RULES = policy(ask=("*.test",))


class _Hears:
    """What a front hears of questions, read in a thread as its loop would."""

    def __init__(self, front: Front, *, read: bool = True) -> None:
        self.heard: list[Any] = []
        self._front = front
        front.link.on_question = lambda message: self.heard.append((message[0], message[1]["host"], message[1]["id"]))
        if read:
            self.read()

    def read(self) -> None:
        self._reading = asyncio.create_task(self._front.told())  # noqa: TID251  the test's own

    def words(self) -> list[tuple[str, str]]:
        return [(word, host) for word, host, _ in self.heard]


def test_a_front_that_asks_hears_and_answers(tmp_path: Path) -> None:
    """ASK-5: opened and closed; the answer lets the connection through, and the record says where it was given."""

    async def go(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=RULES, ask="ask")
        hears = _Hears(front)
        await until(lambda: server.terminals.present("t1"))
        asking = asyncio.create_task(front.asks("a.test:443"))  # noqa: TID251
        await until(lambda: hears.words() == [("asked", "a.test")])
        front.link.answer(hears.heard[0][2], "deny")
        assert b"a person refused it" in await asking
        await until(lambda: hears.words()[-1] == ("closed", "a.test"))
        assert server.desk.question(hears.heard[0][2]).by == "terminal"
        front.link.unattended()
        await until(lambda: not server.terminals.present("t1"))
        assert b"nobody is there to answer" in await front.asks("b.test:443")

    served(tmp_path, go)


def test_a_front_without_ask_hears_nothing_and_makes_nobody_present(tmp_path: Path) -> None:
    """ASK-4: `--wait` alone is no terminal."""

    async def go(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=RULES, ask="wait")
        assert not server.terminals.present("t1")
        assert b"nobody is there to answer" in await front.asks("a.test:443")

    served(tmp_path, go)


def test_an_answer_is_bound_to_the_fronts_own_task(tmp_path: Path) -> None:
    """ASK-5: a front that answers another task's question is let go, and the question stays open."""

    async def go(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=RULES, ask="ask")
        other = await Front.open(server, tmp_path, task="t2", rules=RULES, ask="ask")
        hears, hears2 = _Hears(front), _Hears(other)
        await until(lambda: server.terminals.present("t1") and server.terminals.present("t2"))
        asking = asyncio.create_task(front.asks("a.test:443"))  # noqa: TID251
        await until(lambda: bool(hears.heard))
        assert hears2.heard == []
        number = hears.heard[0][2]
        other.link.answer(number, "allow")
        await until(lambda: not server.terminals.present("t2"))
        assert server.desk.question(number).answer is None
        front.link.answer(number, "deny")
        assert b"a person refused it" in await asking

    served(tmp_path, go)


def test_a_second_terminal_hears_what_is_open_already(tmp_path: Path) -> None:
    """ASK-5: `exec --ask` in a task whose other command waits; the first answer counts."""

    async def go(server: Server) -> None:
        task = await server.registry.create(folder=str(tmp_path), policy=RULES, by="me")
        front = await Front.join(server, task.id, ask="ask")
        hears = _Hears(front)
        asking = asyncio.create_task(front.asks("a.test:443"))  # noqa: TID251
        await until(lambda: bool(hears.heard))
        link = await asyncio.to_thread(find_server, server.state, print)
        assert link is not None
        late = Front(server, link, "")
        second = _Hears(late, read=False)
        order = {"task": task.id, "command": ["true"], "hold": "netns", "ask": "ask", "own_names": ()}
        await asyncio.to_thread(link.join, order)
        await late.serve()
        second.read()
        await until(lambda: second.words() == [("asked", "a.test")])
        front.link.answer(hears.heard[0][2], "deny")
        assert b"a person refused it" in await asking
        await until(lambda: second.words()[-1] == ("closed", "a.test"))

    served(tmp_path, go)
