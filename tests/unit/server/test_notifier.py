"""tidegate.server.notifier with a program of the test's in place of notify-send."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.product import PYTHON
from tests.unit.server.kit import Front, policy, served, until
from tidegate.server.notifier import AT_ONCE, Notifier, arguments, find_notifier
from tidegate.server.reach import reach_out

if TYPE_CHECKING:
    from tidegate.server.serve import Server

RULES = policy(ask=("*.test",))

PROGRAM = """#!{python}
import json, os, pathlib, sys, time
folder = pathlib.Path({folder!r})
(folder / f"shown-{{os.getpid()}}").write_text(json.dumps(sys.argv[1:]))
while not (folder / "press").exists():
    time.sleep(0.01)
print((folder / "press").read_text())
"""


class Desktop:
    """A folder with a notify-send that writes down its arguments, and prints an action once it is pressed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "desktop"
        self.folder.mkdir()
        program = self.folder / "notify-send"
        program.write_text(PROGRAM.format(python=PYTHON, folder=str(self.folder)))
        program.chmod(0o755)
        self.environ = {"PATH": str(self.folder), "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}

    @property
    def shown(self) -> list[list[str]]:
        return [json.loads(text) for path in self.folder.glob("shown-*") if (text := path.read_text())]

    def running(self) -> int:
        return sum(Path(f"/proc/{path.name.partition('-')[2]}").exists() for path in self.folder.glob("shown-*"))

    def press(self, button: str) -> None:
        (self.folder / "new").write_text(button)
        (self.folder / "new").rename(self.folder / "press")


@pytest.fixture
def desktop(tmp_path: Path) -> Desktop:
    """One desktop."""
    return Desktop(tmp_path)


def question(**changes: Any) -> dict[str, Any]:
    """As much of a question as a notification shows."""
    return {
        "id": 1,
        "task": "t1",
        "folder": "/w",
        "host": "a.test",
        "port": 443,
        "rule": "",
        "warnings": [],
    } | changes


def test_a_button_answers_the_question(tmp_path: Path, desktop: Desktop) -> None:
    """ASK-4, ASK-5: somebody counts as present; the notification names host and port; the press refuses the client."""

    async def go(server: Server) -> None:
        reach_out(server, desktop.environ, notify=True, target=None, url="", warn=print)
        front = await Front.open(server, tmp_path, rules=RULES, ask="wait")
        asking = asyncio.create_task(front.asks("a.test:443"))  # noqa: TID251
        await until(lambda: len(desktop.shown) == 1)
        assert "May a task reach a.test:443?" in desktop.shown[0]
        assert {"--action=allow=Allow now", "--action=deny=Deny"} <= set(desktop.shown[0])
        desktop.press("deny")
        assert b"a person refused it" in await asking
        assert server.desk.questions()[0].by == "notification"

    served(tmp_path, go)


@pytest.mark.parametrize("why", ["switched off", "no program", "no bus"])
def test_without_one_nobody_is_there(tmp_path: Path, desktop: Desktop, why: str) -> None:
    """ASK-4: then `--wait` with nobody there is refused at once."""
    environ = dict(desktop.environ)
    if why == "no program":
        environ["PATH"] = "/nowhere"
    elif why == "no bus":
        del environ["DBUS_SESSION_BUS_ADDRESS"]

    async def go(server: Server) -> None:
        reach_out(server, environ, notify=why != "switched off", target=None, url="", warn=print)
        front = await Front.open(server, tmp_path, rules=RULES, ask="wait")
        assert b"nobody is there to answer" in await front.asks("a.test:443")

    served(tmp_path, go)
    assert desktop.shown == []


def test_it_goes_with_its_question_and_few_are_up(desktop: Desktop) -> None:
    """ASK-5: bounded processes; what is over is taken away; nothing is left at the end."""

    async def go() -> None:
        async def answer(_number: int, _answer: object) -> None:
            raise AssertionError

        notifier = Notifier(str(desktop.folder / "notify-send"), desktop.environ, seen=lambda _: False, answer=answer)
        for number in range(AT_ONCE + 3):
            notifier.tell("opened", question(id=number))
        await until(lambda: len(desktop.shown) == AT_ONCE)
        await asyncio.sleep(0.1)
        assert len(desktop.shown) == AT_ONCE
        notifier.tell("changed", question(id=0))
        notifier.tell("answered", question(id=0))
        await until(lambda: desktop.running() == AT_ONCE - 1)
        notifier.close()
        await until(lambda: desktop.running() == 0)

    asyncio.run(go())


def test_none_where_a_page_is_there(desktop: Desktop) -> None:
    """ASK-5: the page says it itself."""

    async def go() -> None:
        async def answer(_number: int, _answer: object) -> None:
            raise AssertionError

        notifier = Notifier(str(desktop.folder / "notify-send"), desktop.environ, seen=lambda _: True, answer=answer)
        notifier.tell("opened", question())
        await asyncio.sleep(0.2)

    asyncio.run(go())
    assert desktop.shown == []


def test_no_text_of_a_task_is_markup() -> None:
    """ASK-6: folders and rules are escaped, and nothing of theirs is an option."""
    folder = "/w/<b>\u202e&\x1b[31m\n--action=x=y"
    *options, summary, body = arguments(question(folder=folder, rule="*.test", warnings=["<i>odd"]))
    assert options[-1] == "--"
    assert summary == "May a task reach a.test:443?"
    assert body == "t1 in /w/&lt;b&gt;\\u202e&amp;\\x1b[31m\\n--action=x=y\nrule *.test\n&lt;i&gt;odd"


def test_the_bus_is_found_in_the_runtime_folder_too(tmp_path: Path, desktop: Desktop) -> None:
    """Systemd's place for it."""
    environ = {"PATH": str(desktop.folder), "XDG_RUNTIME_DIR": str(tmp_path)}
    assert find_notifier(environ) == ""
    (tmp_path / "bus").touch()
    assert find_notifier(environ) == str(desktop.folder / "notify-send")
