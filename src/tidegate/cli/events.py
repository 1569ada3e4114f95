"""`tidegate events`: the record of a task, read from its `network.jsonl`."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import click

from tidegate.cli.actions import show
from tidegate.journal.readback import lines_of
from tidegate.journal.summary import printable
from tidegate.model.errors import TidegateError, UsageError
from tidegate.model.host import bracketed
from tidegate.runtime.state import LOG_NAME, log_folder, state_folder, task_folders

if TYPE_CHECKING:
    from collections.abc import Iterator

_POLL_SECONDS = 0.2


@click.command()
@click.option("--task", metavar="ID", help="The task, or the beginning of its id; the newest when left out.")
@click.option("--log", metavar="FILE", help="Read this file instead.")
@click.option("--refused", is_flag=True, help="Only what was refused.")
@click.option("--host", metavar="HOST", help="Only this host.")
@click.option("--follow", "-f", is_flag=True, help="Stay and show what is added.")
@click.option("--json", "as_json", is_flag=True, help="The lines as they are, for machines.")
@click.option("--list", "list_tasks", is_flag=True, help="The tasks on record, newest last.")
@click.option("--type", "kinds", multiple=True, metavar="T", help="Lines of this type in the record of all tasks.")
def events(
    *,
    task: str | None,
    log: str | None,
    refused: bool,
    host: str | None,
    follow: bool,
    as_json: bool,
    list_tasks: bool,
    kinds: tuple[str, ...],
) -> int:
    """Show what a task tried to reach, and what became of it. With --type: what happened to all tasks of this user."""
    state = state_folder(os.environ)
    if kinds:
        if log or refused or list_tasks:
            raise UsageError("--log, --refused and --list are of one task's record, --type of that of all")
        show(log_folder(state), kinds=kinds, task=task or "", host=host, follow=follow, as_json=as_json)
        return 0
    if list_tasks:
        for name in task_folders(state):
            click.echo(name)
        return 0
    name = "" if log else find_task(state, task)
    path = log or os.path.join(state, "tasks", name, LOG_NAME)
    torn = any_shown = 0
    try:
        for raw in _lines(path, follow=follow):
            line = next(lines_of((raw,)))
            if line is None:
                torn += 1
            elif _wanted(line, refused=refused, host=host):
                any_shown = 1
                click.echo(raw.decode("ascii", "backslashreplace").rstrip("\n") if as_json else _text(line))
    except BrokenPipeError:
        raise
    except OSError as error:
        if name and isinstance(error, FileNotFoundError):
            click.echo(
                f"tidegate: the task {name} has no record here: it did not begin, or --log named another file", err=True
            )
            return 0
        raise TidegateError(f"{path!r} cannot be read: {error.strerror}", fix="tidegate events --list") from None
    if torn:
        click.echo(f"tidegate: lines of {path} that are no JSON, and were passed over: {torn}", err=True)
    if not any_shown:
        of = f"the task {name}" if name else path
        click.echo(f"tidegate: nothing on the record of {of}" + (" matches" if refused or host else ""), err=True)
    return 0


def find_task(state: str, prefix: str | None) -> str:
    """Return the id of the task that begins so; the newest where nothing is said.

    Raises:
        TidegateError: where there is none, or more than one.
    """
    names = task_folders(state)
    if not names:
        raise TidegateError("there is no task on record", fix="tidegate run -- COMMAND makes one")
    if prefix is None:
        return names[-1]
    found = [name for name in names if name.startswith(prefix)]
    if len(found) != 1:
        what = "no task on record begins" if not found else f"{len(found)} tasks on record begin"
        raise TidegateError(f"{what} with {prefix!r}", fix="tidegate events --list")
    return found[0]


def _lines(path: str, *, follow: bool) -> Iterator[bytes]:
    with open(path, "rb") as file:
        held = b""
        while True:
            for line in file:
                held += line
                if held.endswith(b"\n"):
                    yield held
                    held = b""
            if not follow:
                if held:
                    yield held
                return
            time.sleep(_POLL_SECONDS)


def _wanted(line: dict[str, Any], *, refused: bool, host: str | None) -> bool:
    if refused and line.get("how") != "refused":
        return False
    return host is None or line.get("host") == host


def _text(line: dict[str, Any]) -> str:
    at = printable(str(line.get("at", "")))
    if line.get("type") != "net.connection":
        other = [at, *(printable(str(line.get(key, ""))) for key in ("type", "count", "why"))]
        return " ".join(word for word in other if word)
    where = bracketed(str(line.get("host")))
    words = [
        at,
        printable(f"{where}:{line.get('port')}"),
        str(line.get("how")),
        f"({printable(str(line.get('name')))})",
    ]
    if line.get("how") == "refused":
        words.append(printable(str(line.get("reason"))))
    else:
        words.append(f"up {line.get('bytes_up')} down {line.get('bytes_down')} {line.get('duration')} s")
    if line.get("count", 1) != 1:
        words.append(f"×{line['count']}")
    return " ".join(words)
