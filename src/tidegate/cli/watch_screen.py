"""The screen of `tidegate watch`.

Rules of the file:

* A key answers the question under the cursor, and only once that has been there for `SETTLED`: what slips under the
  cursor is not answered by a key that was meant for what was there before. A key that was pressed before that and is
  read late does not count either, however long this process did not get to run (`settled`, `_tick`).
* All text is shown as it is: without markup, control and direction characters (ASK-6).
* The server is spoken to on threads that nobody waits for; everything shown is changed on the screen's own.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.text import Text
from textual.app import App
from textual.widgets import DataTable, Footer, Static

from tidegate.model.errors import TidegateError
from tidegate.runtime.ask_page import ANSWERS, answers_of, clock, safe

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from tidegate.cli.api_client import ApiClient

SETTLED: Final = 0.7  # seconds
TICK: Final = 0.1  # seconds
STALLED: Final = 0.35  # seconds between two ticks: who was pressing a key meanwhile saw a screen that stood still
KEPT: Final = 500  # connections
AGAIN: Final = 1.0  # seconds between tries to find the server
_OPEN: Final = frozenset(("open", "saving"))


class Watch(App[None]):
    """See the head of the file. `wall` gives Unix time, `now` monotonic seconds."""

    CSS = """
    .title { text-style: bold; height: 1; }
    #questions { height: 40%; }
    #tasks { height: 25%; }
    #connections { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("a", "answer('a')", "allow"),
        ("t", "answer('t')", "for the task"),
        ("r", "answer('r')", "remember"),
        ("d", "answer('d')", "deny"),
        ("x", "answer('x')", "deny for the task"),
        ("q", "quit", "quit"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        client: ApiClient,
        wall: Callable[[], float] = time.time,  # noqa: TID251  the clock comes in here
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._client = client
        self._wall = wall
        self._now = now
        self._questions: OrderedDict[int, dict[str, Any]] = OrderedDict()
        self._under: str | None = None  # the key of the row under the cursor, and since when
        self._since = self._ticked = now()
        self._rows = 0
        self._ended = threading.Event()
        self._schedule: Callable[[Callable[[], object]], object] | None = None

    def compose(self) -> ComposeResult:
        """Lay it out."""
        yield Static("Needs you", classes="title", id="needs", markup=False)
        yield DataTable(id="questions", cursor_type="row")
        yield Static("Tasks", classes="title", markup=False)
        yield DataTable(id="tasks", cursor_type="none")
        yield Static("Connections", classes="title", id="state", markup=False)
        yield DataTable(id="connections", cursor_type="none")
        yield Footer()

    def on_mount(self) -> None:
        """Begin."""
        # Not call_from_thread, which waits: who follows the server may outlive the screen.
        self._schedule = partial(asyncio.get_running_loop().call_soon_threadsafe, context=copy_context())
        for name, columns in (
            ("questions", ("left", "host", "waiting", "task", "folder", "because", "warnings")),
            ("tasks", ("task", "state", "phase", "connections", "refused", "waiting", "folder")),
            ("connections", ("task", "host", "verdict", "reason")),
        ):
            for column in columns:
                self._table(name).add_column(column, key=column)
        self._table("questions").focus()
        self.set_interval(1.0, self._count_down)
        self.set_interval(TICK, self._tick)
        _aside(self._follow)

    def on_unmount(self) -> None:
        """End: what the server says from now on is nobody's."""
        self._ended.set()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Another row may be under the cursor."""
        if event.data_table.id == "questions":
            self._look_under()

    def _look_under(self) -> None:
        table = self._table("questions")
        at = table.cursor_coordinate
        under = table.coordinate_to_cell_key(at).row_key.value if table.is_valid_coordinate(at) else None
        if under != self._under:
            self._under, self._since = under, self._now()

    @property
    def settled(self) -> bool:
        """Whether keys count for the question under the cursor: a turn of the loop saw it there for long enough.

        What was pressed before that turn was read before it, or the loop stood still and it starts anew.
        """
        if self._now() > self._ticked + STALLED:
            self._since = self._now()
        return self._under is not None and self._ticked >= self._since + SETTLED

    def _tick(self) -> None:
        now = self._now()
        if now > self._ticked + STALLED:
            self._since = now
        self._ticked = now

    def action_answer(self, key: str) -> None:
        """Answer the question under the cursor."""
        question = self._questions.get(int(self._under)) if self._under else None
        if question is None or not self.settled or key not in answers_of(question, whole=True):
            return
        number = question["id"]

        def post() -> None:
            try:
                self._client.post(f"/api/questions/{number}/answer", {"answer": ANSWERS[key]})
            except TidegateError as error:
                said = str(error)
                self._on_screen(lambda: self.notify(said, severity="error", markup=False))

        _aside(post)

    # What the server says.

    def _follow(self) -> None:
        while not self._ended.is_set():
            said = "the server is gone; looking for it"
            try:
                for _id, kind, data in self._client.events():
                    if kind in ("hello", "reset"):
                        self._on_screen(self._loaded())
                    else:
                        self._on_screen(partial(self._take, kind, data))
            except TidegateError as error:
                said = str(error)
            self._on_screen(partial(self._say, f"Connections - {said}"))
            self._ended.wait(AGAIN)

    def _loaded(self) -> Callable[[], None]:
        questions = self._client.get("/api/questions")["questions"]
        tasks = self._client.get("/api/tasks", living=True)["tasks"]

        def show() -> None:
            self._say("Connections")
            self._table("tasks").clear()
            for number in list(self._questions):
                self._drop(number)
            for question in questions:
                self._take("question", question)
            for task in tasks:
                self._take("task", task)

        return show

    def _on_screen(self, change: Callable[[], object]) -> None:
        def run() -> None:
            if not self._ended.is_set():
                change()

        with suppress(RuntimeError):  # the screen has ended
            if self._schedule is not None:
                self._schedule(run)

    def _take(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "question":
            if data["state"] in _OPEN:
                self._show_question(data)
            else:
                self._drop(data["id"])
        elif kind == "task":
            self._show_task(data)
        elif kind == "connection" and "host" in data:
            self._show_connection(data)

    def _show_question(self, question: dict[str, Any]) -> None:
        number = question["id"]
        new = number not in self._questions
        self._questions[number] = question
        because = f"rule {question['rule']}" if question["rule"] else "no rule"
        cells = {
            "left": self._left(question),
            "host": f"{'! ' if question['warnings'] else ''}{question['host']}:{question['port']}",
            "waiting": str(question["waiting"]),
            "task": question["task_name"] or question["task"],
            "folder": question["folder"],
            "because": because,
            "warnings": "; ".join(question["warnings"]),
        }
        self._put("questions", str(number), cells)
        if new:
            self.bell()
        self._title()

    def _drop(self, number: int) -> None:
        if self._questions.pop(number, None) is not None:
            self._table("questions").remove_row(str(number))
            if self._under == str(number):
                self._under = None
            self.call_after_refresh(self._look_under)
            self._title()

    def _show_task(self, task: dict[str, Any]) -> None:
        table = self._table("tasks")
        if task["state"] != "living":
            if task["id"] in table.rows:
                table.remove_row(task["id"])
            return
        cells = {
            "task": task["name"] or task["id"],
            "state": "paused" if task["paused"] else "living",
            "phase": task["phase"],
            "connections": str(task["connections"]),
            "refused": str(task["refused"]),
            "waiting": str(task["questions"]),
            "folder": task["folder"],
        }
        self._put("tasks", task["id"], cells)

    def _show_connection(self, line: dict[str, Any]) -> None:
        table = self._table("connections")
        words = [str(line.get(name, "")) for name in ("task", "host", "verdict", "reason")]
        if line.get("port"):
            words[1] += f":{line['port']}"
        self._rows += 1
        table.add_row(*(_plain(word) for word in words), key=str(self._rows))
        if table.row_count > KEPT:
            table.remove_row(str(self._rows - KEPT))
        table.scroll_end(animate=False)

    # Inside.

    def _put(self, name: str, key: str, cells: dict[str, str]) -> None:
        table = self._table(name)
        if key in table.rows:
            for column, text in cells.items():
                table.update_cell(key, column, _plain(text), update_width=True)
        else:
            table.add_row(*(_plain(text) for text in cells.values()), key=key)

    def _count_down(self) -> None:
        for number, question in self._questions.items():
            self._table("questions").update_cell(str(number), "left", _plain(self._left(question)))

    def _left(self, question: dict[str, Any]) -> str:
        return clock(question["deadline_at"] - self._wall())

    def _title(self) -> None:
        count = len(self._questions)
        self.query_one("#needs", Static).update(f"Needs you: {count}" if count else "Nothing needs you")

    def _say(self, text: str) -> None:
        self.query_one("#state", Static).update(safe(text))

    def _table(self, name: str) -> DataTable[Text]:
        return self.query_one(f"#{name}", DataTable)


def _plain(text: str) -> Text:
    return Text(safe(text))


def _aside(call: Callable[[], None]) -> None:
    threading.Thread(target=call, name="watch", daemon=True).start()
