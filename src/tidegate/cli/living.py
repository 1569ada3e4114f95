"""`tidegate allow|deny|pause|resume|cut`: what the operator does to a living task (POL-8)."""

from __future__ import annotations

from typing import Any

import click

from tidegate.cli.api_client import ApiClient, segment
from tidegate.journal.summary import printable
from tidegate.model.errors import UsageError


def _task_option(command: Any) -> Any:
    return click.option("--task", metavar="ID", help="The task, or the beginning of its id or its name.")(command)


@click.command()
@click.argument("hosts", metavar="HOST...", nargs=-1, required=True)
@_task_option
def allow(*, hosts: tuple[str, ...], task: str | None) -> int:
    """Let a living task reach HOST (a rule: api.example.com:443, *.example.com) until it ends."""
    return _change(task, "allow", hosts)


@click.command()
@click.argument("hosts", metavar="HOST...", nargs=-1, required=True)
@_task_option
def deny(*, hosts: tuple[str, ...], task: str | None) -> int:
    """Keep a living task from HOST until it ends; what it has open there is closed."""
    return _change(task, "deny", hosts)


@click.command()
@_task_option
def pause(*, task: str | None) -> int:
    """Refuse all new connections of a living task; what is open stays open."""
    return _pause(task, paused=True)


@click.command()
@_task_option
def resume(*, task: str | None) -> int:
    """Judge the connections of a paused task by its policy again."""
    return _pause(task, paused=False)


@click.command()
@click.argument("target", metavar="[HOST[:PORT]]", required=False)
@click.option(
    "--connection", metavar="N", type=click.IntRange(1), help="Only this one (tidegate task connections lists them)."
)
@_task_option
def cut(*, target: str | None, connection: int | None, task: str | None) -> int:
    """Close the open connections of a living task: all of them, those to HOST, or one by its number."""
    which = _target(target) | ({} if connection is None else {"connection": connection})
    client = ApiClient()
    found = find_task(client, task)
    count = client.post(f"/api/tasks/{segment(found['id'])}/cut", which)["cut"]
    click.echo(f"{count} connection{'' if count == 1 else 's'} of {title(found)} closed")
    return 0


def find_task(client: ApiClient, given: str | None) -> dict[str, Any]:
    """Return the living task that is meant, by its id, its name or the beginning of one; else the only one.

    Raises:
        UsageError: when none or several are meant.
        TidegateError: as the client.
    """
    tasks: list[dict[str, Any]] = client.get("/api/tasks", living=True, limit=1000)["tasks"]
    if given is None:
        found = tasks
    else:
        found = [task for task in tasks if given in {task["id"], task["name"]}]
        found = found or [task for task in tasks if task["id"].startswith(given) or task["name"].startswith(given)]
    if len(found) == 1:
        return found[0]
    if not found:
        what = "no task is living" if given is None else f"no living task is called {given!r}"
        raise UsageError(what, fix="tidegate task list shows those that are")
    names = ", ".join(title(task) for task in found[:5])
    raise UsageError(f"{len(found)} living tasks are meant: {names}", fix="say which one with --task ID")


def title(task: dict[str, Any]) -> str:
    """Return what a task is called, for people."""
    name = printable(task["name"])
    return f"{name} ({printable(task['id'])})" if name and name != task["id"] else printable(task["id"])


def _change(task: str | None, verdict: str, hosts: tuple[str, ...]) -> int:
    client = ApiClient()
    found = find_task(client, task)
    client.post(f"/api/tasks/{segment(found['id'])}/hosts", {verdict: list(hosts)})
    click.echo(f"{title(found)}: {verdict} {', '.join(printable(host) for host in hosts)}, until it ends")
    return 0


def _pause(task: str | None, *, paused: bool) -> int:
    client = ApiClient()
    found = find_task(client, task)
    client.post(f"/api/tasks/{segment(found['id'])}/pause", {"paused": paused})
    click.echo(f"{title(found)}: {'new connections are refused' if paused else 'its policy decides again'}")
    return 0


def _target(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    from tidegate.model.destination import PortError, parse_port, split_authority
    from tidegate.model.host import HostError

    try:
        host, port = split_authority(text)
        return {"host": host} if port is None else {"host": host, "port": parse_port(port)}
    except (HostError, PortError) as error:
        raise UsageError(f"{text!r} is not HOST[:PORT]: {error.what}") from None
