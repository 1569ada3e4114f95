"""tidegate.server.open_view: what is open, and what changes of it, in a whole server with a real gate."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.server.kit import Front, policy, served, until
from tidegate.server import open_view

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.api import Lab
    from tidegate.server.bus import Subscription
    from tidegate.server.living import Living
    from tidegate.server.serve import Server

A = "1.2.3.4:443"


@pytest.fixture(autouse=True)
def origin(lab: Lab) -> Lab:
    """A server that sends back what it gets."""
    lab.origin("raw", "1.2.3.4", 443)
    return lab


class Page:
    """What a page does: one reading, and the changes after it."""

    def __init__(self, server: Server, task: Living) -> None:
        self._server = server
        self._task = task
        self._events: Subscription = server.bus.subscribe()
        self.open: dict[int, dict[str, Any]] = {}
        self.heard = 0

    async def read(self) -> None:
        """Read it."""
        answer = await self._server.registry.look(self._task)
        self.open = {one["id"]: one for one in answer["open"]}

    async def hear(self, seconds: float = 0.0) -> None:
        """Take the events that have come."""
        for message in await self._events.next(seconds) or ():
            if message.kind != "open" or message.data["task"] != self._task.id:
                continue
            self.heard += 1
            self.open |= {one["id"]: one for one in message.data["opened"]}
            for number, up, down in message.data["moved"]:
                self.open[number] |= {"bytes_up": up, "bytes_down": down}
            for number in message.data["ended"]:
                self.open.pop(number, None)

    async def until(self, *wanted: tuple[int, int]) -> None:
        """Wait until these are open: how many bytes went up and down."""
        async with asyncio.timeout(20):
            while [(one["bytes_up"], one["bytes_down"]) for one in self.open.values()] != list(wanted):
                await self.hear(0.1)


def test_a_page_follows_what_is_open(tmp_path: Path) -> None:
    """SRV-3: opened, moved, ended; a second page that reads in between is as far as the first."""

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=policy(A))
        (task,) = server.registry.living()
        early, _, _ = await front.connect(A)
        page, other = Page(server, task), Page(server, task)
        await page.read()
        (one,) = page.open.values()
        assert (one["host"], one["port"], one["verdict"], one["rule"]) == ("1.2.3.4", 443, "allow", A)
        assert (one["state"], one["how"], one["method"], one["address"]) == ("open", "tunneled", "CONNECT", "1.2.3.4")
        reader, writer, _ = await front.connect(A)
        await other.read()
        await page.until((0, 0), (0, 0))
        writer.write(bytes(70))
        assert await reader.readexactly(70) == bytes(70)
        for each in (page, other):
            await each.until((0, 0), (70, 70))
        writer.close()
        for each in (page, other):
            await each.until((0, 0))
        assert await server.registry.cut(task, by="me") == 1
        assert await early.read() == b""
        for each in (page, other):
            await each.until()
        await front.finish()
        assert page.heard <= 8

    served(tmp_path, act)


def test_nobody_hears_of_what_nobody_looks_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-3: without a reading nothing is compared or told, and a while after the last one neither."""
    monkeypatch.setattr(open_view, "LEASE", 0.3)
    monkeypatch.setattr(open_view, "EVERY", 0.02)

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=policy(A))
        (task,) = server.registry.living()
        page = Page(server, task)
        await front.connect(A)
        await asyncio.sleep(0.1)
        await page.hear()
        assert page.heard == 0
        view = server.registry._view
        assert not view._looks
        await page.read()
        assert len(page.open) == 1
        await until(lambda: not view._ticking)
        before = page.heard
        await front.connect(A)
        await asyncio.sleep(0.1)
        await page.hear()
        assert page.heard == before
        await page.read()
        assert len(page.open) == 2
        await front.finish()

    served(tmp_path, act)


def test_one_is_cut_by_its_number(tmp_path: Path) -> None:
    """POL-8: that one and no other; a number that is gone, or another task's, cuts nothing."""

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=policy(A))
        other = await Front.open(server, tmp_path, task="t2", rules=policy(A))
        task, second = server.registry.living()
        reader, _, _ = await front.connect(A)
        kept, writer, _ = await front.connect(A)
        await other.connect(A)
        page = Page(server, task)
        await page.read()
        first, last = page.open
        assert await server.registry.cut(second, connection=first, by="me") == 0
        assert await server.registry.cut(task, connection=first, host="1.2.3.5", by="me") == 0
        assert await server.registry.cut(task, connection=first, by="me") == 1
        assert await reader.read() == b""
        assert await server.registry.cut(task, connection=first, by="me") == 0
        assert await server.registry.cut(task, connection=last + 1000, by="me") == 0
        writer.write(b"\x00")
        assert await kept.readexactly(1) == b"\x00"
        await front.finish()
        await other.finish()

    served(tmp_path, act)


def test_the_tasks_that_are_looked_at_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-3: who looked longest ago is looked at no more, and one that has ended neither."""
    monkeypatch.setattr(open_view, "MOST_TASKS", 2)

    async def act(server: Server) -> None:
        fronts = [await Front.open(server, tmp_path, task=f"t{number}", rules=policy(A)) for number in range(3)]
        for front, task in zip(fronts, server.registry.living(), strict=True):
            await front.connect(A)
            assert len((await server.registry.look(task))["open"]) == 1
        view = server.registry._view
        assert list(view._looks) == ["t1", "t2"]
        for front in fronts:
            await front.finish()
        await until(lambda: not view._looks)

    served(tmp_path, act)


def test_more_than_are_shown_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-3: a task with very many has the first of them in the list, and says how many more there are."""
    monkeypatch.setattr(open_view, "MOST_OPEN", 3)

    async def act(server: Server) -> None:
        front = await Front.open(server, tmp_path, rules=policy(A))
        (task,) = server.registry.living()
        for _ in range(5):
            await front.connect(A)
        answer = await server.registry.look(task)
        assert (len(answer["open"]), answer["more"]) == (3, 2)
        await front.finish()

    served(tmp_path, act)
