"""A desktop notification for a question, with buttons that answer it (ASK-5): `notify-send -A`, where there is one.

It comes when a question opens and no page of the portal is there. Rules of the file:

* What a task had a say in is shown without markup, control and direction characters: a notification's body may be read
  as HTML (Desktop Notifications Specification, "Markup").
* At most `AT_ONCE` are up; one more is not shown. One ends with its question.
* A button answers once, and only what it says: allow or deny, for now.
"""

from __future__ import annotations

import asyncio
import html
import os
import shutil
from typing import TYPE_CHECKING, Any, Final

from tidegate.model.errors import TidegateError
from tidegate.model.question import Answer
from tidegate.runtime.ask_page import safe
from tidegate.server.background import start

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

AT_ONCE: Final = 5
_BUTTONS: Final = {"allow": Answer.ALLOW, "deny": Answer.DENY}
_OVER = frozenset(("answered", "expired", "ended"))


def find_notifier(environ: Mapping[str, str]) -> str:
    """Return the program that shows notifications, '' where there is none, or no desktop's bus."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    bus = environ.get("DBUS_SESSION_BUS_ADDRESS") or (runtime and os.path.exists(os.path.join(runtime, "bus")))
    return (shutil.which("notify-send", path=environ.get("PATH", "")) or "") if bus else ""


class Notifier:
    """See the head of the file. `seen` says whether a page is there; `answer` takes what a button says."""

    def __init__(
        self,
        program: str,
        environ: Mapping[str, str],
        *,
        seen: Callable[[str], bool],
        answer: Callable[[int, Answer], Awaitable[object]],
    ) -> None:
        self._program = program
        self._environ = dict(environ)
        self._seen = seen
        self._answer = answer
        self._shown: dict[int, asyncio.Task[Any]] = {}

    def present(self) -> bool:
        """Whether somebody can be reached by it (ASK-4). On any thread."""
        return True

    def tell(self, kind: str, question: dict[str, Any]) -> None:
        """Take in what happened to a question; never waits."""
        number = question["id"]
        if kind in _OVER:
            shown = self._shown.pop(number, None)
            if shown is not None:
                shown.cancel()
        elif kind == "opened" and len(self._shown) < AT_ONCE and not self._seen(question["task"]):
            shown = self._shown[number] = start(self._show(number, question), "a notification")
            shown.add_done_callback(lambda _: self._shown.pop(number, None))

    def close(self) -> None:
        """Take all of them away."""
        for shown in list(self._shown.values()):
            shown.cancel()

    async def _show(self, number: int, question: dict[str, Any]) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                self._program,
                *arguments(question),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=self._environ,
            )
        except OSError:
            return  # the others who can answer are still there
        try:
            assert process.stdout is not None, "it was asked for"
            said = await process.stdout.read(100)
            await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        self._shown.pop(number, None)
        answer = _BUTTONS.get(said.decode("ascii", "replace").strip())
        if answer is not None:
            try:
                await self._answer(number, answer)
            except TidegateError:
                return  # somebody was faster


def arguments(question: dict[str, Any]) -> list[str]:
    """Return the command line for a question."""
    lines = [
        f"{question['task']} in {question['folder']}",
        f"rule {question['rule']}" if question["rule"] else "no rule names it",
        *question["warnings"],
    ]
    return [
        "--app-name=tidegate",
        "--urgency=critical",
        "--action=allow=Allow now",
        "--action=deny=Deny",
        "--",
        f"May a task reach {safe(question['host'])}:{question['port']}?",
        "\n".join(html.escape(safe(line)) for line in lines),
    ]
