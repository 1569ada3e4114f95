"""tidegate.cli.watch_screen against a whole server: what it shows, and what a key does."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.events import Key
from textual.widgets import DataTable, Static

from tests.product import PATIENCE
from tests.unit.server.api.running import Whole
from tidegate.cli.api_client import ApiClient
from tidegate.cli.watch_screen import KEPT, SETTLED, Watch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def _rows(app: Watch, name: str) -> list[list[str]]:
    table = app.query_one(f"#{name}", DataTable)
    return [[str(cell) for cell in table.get_row_at(index)] for index in range(table.row_count)]


def _watched(
    whole: Whole, act: Callable[[Watch, Any], Awaitable[None]], now: Callable[[], float] = time.monotonic
) -> None:
    async def go() -> None:
        app = Watch(ApiClient(whole.path), now=now)
        async with app.run_test(size=(120, 40)) as pilot:
            await act(app, pilot)

    asyncio.run(go())


async def _until(pilot: Any, true: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, what
        await pilot.pause(0.02)


def test_a_question_is_shown_and_a_key_answers_it(tmp_path: Path) -> None:
    """ASK-5: host, task and countdown; `d` refuses once the row has been under the cursor for a moment, not before."""
    with Whole(tmp_path) as whole:
        task = whole.task(name="build")
        released = whole.open_question(task["id"])

        async def act(app: Watch, pilot: Any) -> None:
            await _until(pilot, lambda: _rows(app, "questions"), "no question")
            (row,) = _rows(app, "questions")
            assert row[1:4] == ["ask.test:443", "1", "build"]
            assert re.fullmatch(r"1[0-4]:\d\d.*", row[0])  # of fifteen minutes, less what it took to get here
            assert [task[:3] for task in _rows(app, "tasks")] == [["build", "living", "runtime"]]
            app._since = app._now()
            await pilot.press("a")
            await pilot.pause(0.2)
            assert whole.get("/api/questions")["questions"][0]["state"] == "open"
            await _until(pilot, lambda: app.settled, "keys do not count")
            await pilot.press("d")
            await _until(pilot, lambda: not _rows(app, "questions"), "it stays")
            assert str(app.query_one("#needs", Static).render()) == "Nothing needs you"

        _watched(whole, act)
        assert whole.get("/api/questions")["questions"][0]["answer"] == "deny"
        assert [decision.allowed for decision in released] == [False]


def test_what_comes_later_is_shown_below_and_the_cursor_stays(tmp_path: Path) -> None:
    """ASK-5: a key that is meant for one question never answers the next one that slipped under the cursor."""
    with Whole(tmp_path) as whole:
        task = whole.task(name="[b]x[/b]")
        whole.open_question(task["id"], "one.test")

        async def act(app: Watch, pilot: Any) -> None:
            await _until(pilot, lambda: len(_rows(app, "questions")) == 1, "no question")
            await _until(pilot, lambda: app._under is not None, "no cursor")
            first = app._under
            await asyncio.to_thread(whole.open_question, task["id"], "two.test")
            await _until(pilot, lambda: len(_rows(app, "questions")) == 2, "no second")
            assert [row[1] for row in _rows(app, "questions")] == ["one.test:443", "two.test:443"]
            assert app._under == first
            assert _rows(app, "tasks")[0][0] == "[b]x[/b]"
            await _until(pilot, lambda: app.settled, "keys do not count")
            await pilot.press("d")
            await _until(pilot, lambda: len(_rows(app, "questions")) == 1, "it stays")
            await _until(pilot, lambda: app._under not in {first, None}, "no cursor on the second")
            app._since = app._now()
            await pilot.press("a")
            await pilot.pause(0.2)
            states = {one["host"]: one["state"] for one in whole.get("/api/questions")["questions"]}
            assert states == {"one.test": "answered", "two.test": "open"}
            await _until(pilot, lambda: app.settled, "keys do not count")
            await pilot.press("x")
            await _until(pilot, lambda: not _rows(app, "questions"), "the second cannot be answered")

        _watched(whole, act)


def test_a_key_that_is_read_late_is_no_answer(tmp_path: Path) -> None:
    """ASK-5: pressed before the question had been there for a moment, or while the screen stood still."""
    clock = [1000.0]
    with Whole(tmp_path) as whole:
        whole.open_question(whole.task()["id"])

        async def act(app: Watch, pilot: Any) -> None:
            async def goes_on(seconds: float) -> None:
                clock[0] += seconds
                await _until(pilot, lambda: app._ticked == clock[0], "no turn")

            await _until(pilot, lambda: app._under is not None, "no question")
            for _ in range(2):
                await goes_on(SETTLED * 0.4)
            assert not app.settled
            app.post_message(Key("a", "a"))  # in the first moment
            await goes_on(SETTLED * 0.4)
            assert app.settled
            app.post_message(Key("a", "a"))
            await goes_on(60)  # stopped meanwhile, or a machine that slept
            assert not app.settled
            assert whole.get("/api/questions")["questions"][0]["state"] == "open"
            for _ in range(3):
                await goes_on(SETTLED * 0.4)
            await pilot.press("d")
            await _until(pilot, lambda: not _rows(app, "questions"), "keys count no more")

        _watched(whole, act, lambda: clock[0])
        assert whole.get("/api/questions")["questions"][0]["answer"] == "deny"


def test_connections_are_bounded_and_plain(tmp_path: Path) -> None:
    """ASK-6: the newest stay; no text of a task is markup or moves a cursor."""
    with Whole(tmp_path) as whole:

        async def act(app: Watch, pilot: Any) -> None:
            for number in range(KEPT + 20):
                app._take(
                    "connection", {"task": "t", "host": f"h{number}\x1b", "port": 1, "verdict": "deny", "reason": "x"}
                )
            app._take("connection", {"task": "t", "left_out": 3})
            await pilot.pause()
            rows = _rows(app, "connections")
            assert len(rows) == KEPT
            assert rows[-1] == ["t", f"h{KEPT + 19}\\x1b:1", "deny", "x"]

        _watched(whole, act)


def test_a_server_that_ends_is_said(tmp_path: Path) -> None:
    """SRV-1: and the screen stays, looking for it."""
    with Whole(tmp_path) as whole:
        whole.task(name="one")

        async def act(app: Watch, pilot: Any) -> None:
            state = app.query_one("#state", Static)
            await _until(pilot, lambda: _rows(app, "tasks"), "not begun")
            await asyncio.to_thread(whole.on_loop, whole.api.stop())
            await _until(pilot, lambda: "server" in str(state.render()), "nothing said")

        _watched(whole, act)
