"""The tools of a server's tasks: which tasks may be created with, and which a task was (SRV-6).

Rules of the file:

* Which tools tasks can be created with is said where the server begins (`serve --tool`), and nowhere else: neither a
  request of the API, whoever's, nor a policy adds one. Where nothing is said there are none.
* A task keeps names and no program: what a tool is, is read where a command begins, from what its person declared
  (runtime/tool_files.py), and the front of that command runs it, never the server (decisions 27 and 30).
* No command begins without a tool that its task was created with, nor with one that this server does not offer.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tidegate.holds.hold import WITHOUT_GATE
from tidegate.model.errors import StartError, UsageError
from tidegate.runtime.state import config_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

CODE = "tool"  # of what is wrong with the words of a request


def offered(names: Iterable[str]) -> tuple[str, ...]:
    """Return the tools that a server offers to the tasks that are created in it. It may wait for the disk.

    Raises:
        UsageError, StartError: where one is not declared, or what declares them is wrong.
    """
    wanted = tuple(dict.fromkeys(names))
    if not wanted:
        return ()
    from tidegate.runtime.tool_files import declared

    config = config_folder(os.environ)
    known = {tool.name for tool in declared(config)}
    for name in wanted:
        if name not in known:
            raise UsageError(
                f"there is no tool {ascii(name)[:80]} that tasks could be created with",
                fix=f"one of {', '.join(sorted(known))}" if known else f"declare it in {config}/tools.yaml",
                code=CODE,
            )
    return wanted


def checked(names: Iterable[str], offers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tools of a new task.

    Raises:
        UsageError: where the server does not offer one.
    """
    wanted = tuple(dict.fromkeys(names))
    for name in wanted:
        if name not in offers:
            what = f"this server creates no task with the tool {ascii(name)[:80]}"
            fix = f"one of {', '.join(offers)}" if offers else "it offers what it is started with: serve --tool NAME"
            raise UsageError(what, fix=fix, code=CODE)
    return wanted


def need_offered(names: Iterable[str], hold: str, offers: tuple[str, ...]) -> None:
    """See that a server offers the tools of a task one of whose commands begins in this hold.

    Raises:
        StartError: where it does not offer one any more. A hold without a gate has no way to a tool, and needs none.
    """
    lacking = [name for name in names if name not in offers] if hold not in WITHOUT_GATE else []
    if lacking:
        raise StartError(
            f"the task was created with the tool {ascii(lacking[0])[:80]}, which this server does not offer",
            fix=f"start the server with --tool {lacking[0]}, or create another task",
            code="tools",
        )
