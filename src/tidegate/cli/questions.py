"""`tidegate questions` and `tidegate answer`: what waits for a person, and what the person says (ASK-5).

All that comes from a task is escaped before it is printed; hosts are A-labels, with their warnings (ASK-6).
"""

from __future__ import annotations

import datetime as dt
import json
import time
from typing import Any, Final

import click

from tidegate.cli import terms
from tidegate.cli.api_client import ApiClient
from tidegate.cli.main import say
from tidegate.journal.summary import printable
from tidegate.model.errors import GateLostError
from tidegate.model.host import bracketed

ANSWERS: Final = ("allow", "task", "remember", "deny", "deny-task")
_OPEN: Final = ("open", "saving")


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Stay, show what comes, and count as somebody who is there.")
@click.option("--all", "show_all", is_flag=True, help="Closed ones too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for machines.")
def questions(*, follow: bool, show_all: bool, as_json: bool) -> int:
    """Show the connections that wait for a person's answer."""
    client = ApiClient()
    if follow:
        return _follow(client, as_json=as_json)
    found = [one for one in client.get("/api/questions")["questions"] if show_all or one["state"] in _OPEN]
    for question in found:
        _show(question, as_json=as_json)
    if not found and not as_json:
        say("nothing waits for an answer" + ("" if show_all else ": --all shows what has been answered"))
    return 0


@click.command()
@click.argument("number", metavar="ID", type=click.IntRange(1))
@click.argument("reply", metavar="ANSWER", type=click.Choice(ANSWERS))
@click.option("--until", metavar="T", help="With allow or task: until this time (30m, 2h, 18:30).")
@click.option("--connections", metavar="N", type=click.IntRange(1), help="With allow or task: for so many connections.")
@click.option("--bytes", "size", metavar="B", help="With allow or task: for so many bytes (10M), both ways together.")
def answer(*, number: int, reply: str, until: str | None, connections: int | None, size: str | None) -> int:
    """Answer question ID.

    \b
    allow      let through what waits now, and one next try
    task       let it through until the task ends
    remember   let it through in this folder from now on
    deny       refuse it, and every try of the next two minutes
    deny-task  refuse it until the task ends, and close what is open
    """  # noqa: D301  click reads the escape
    body: dict[str, Any] = {"answer": reply}
    if until is not None:
        body["until"] = terms.until(until, dt.datetime.now().astimezone())
    if connections is not None:
        body["connections"] = connections
    if size is not None:
        body["bytes"] = terms.amount(size)
    click.echo(text_of(ApiClient().post(f"/api/questions/{number}/answer", body)))
    return 0


def _follow(client: ApiClient, *, as_json: bool) -> int:
    for _, kind, data in client.events():
        if kind in {"hello", "reset"}:
            for question in client.get("/api/questions")["questions"]:
                if question["state"] in _OPEN:
                    _show(question, as_json=as_json)
        elif kind == "question":
            _show(data, as_json=as_json)
    raise GateLostError("the server has ended", fix="tidegate serve starts one")


def _show(question: dict[str, Any], *, as_json: bool) -> None:
    click.echo(json.dumps(question) if as_json else text_of(question))


def text_of(question: dict[str, Any]) -> str:
    """Return a question as a person reads it, on one line."""
    where = f"{bracketed(question['host'])}:{question['port']}"
    words = [f"{question['id']}  {printable(where)}"]
    if question["label"]:
        words[0] += f" ({question['label']})" if question["label"].isprintable() else ""
    words.append(f"task {printable(question['task_name'] or question['task'])} in {printable(question['folder'])}")
    rule = question["rule"] or "no rule"
    words.append(f"{printable(rule)} ({printable(question['rule_name'])})")
    state = question["state"]
    if state in _OPEN:
        left = terms.left(question["deadline_at"] - time.time())  # noqa: TID251  a countdown for people
        words.append(f"{question['waiting']} waiting, {left} left")
    elif question["answer"]:
        words.append(f"{question['answer']} by {printable(question['by'])}")
    elif question["by"]:
        words.append(f"settled by a rule from {printable(question['by'])}")
    else:
        words.append(state)
    words += [f"WARNING: {printable(warning)}" for warning in question["warnings"]]
    return " · ".join(words)
