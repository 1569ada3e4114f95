"""`tidegate rules`: the hosts that a person allowed and had remembered, by folder, and forgetting one (ASK-8)."""

from __future__ import annotations

import datetime as dt
import json
import os
from itertools import groupby

import click

from tidegate.cli.api_client import ApiClient
from tidegate.cli.main import say
from tidegate.journal.summary import printable


@click.group(invoke_without_command=True)
@click.pass_context
def rules(context: click.Context) -> None:
    """Hosts that are remembered, by folder."""
    if context.invoked_subcommand is None:
        context.invoke(list_rules)


@rules.command("list")
@click.option("--folder", metavar="DIR", help="Only those of this folder.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for machines.")
def list_rules(*, folder: str | None = None, as_json: bool = False) -> int:
    """Show the remembered hosts with when and by whom."""
    real = os.path.realpath(folder) if folder is not None else None
    found = ApiClient().get("/api/rules", folder=real)["rules"]
    if as_json:
        for rule in found:
            click.echo(json.dumps(rule))
        return 0
    if not found:
        say("no host is remembered" + (f" for {printable(real)}" if real else "") + ": tidegate answer ID remember")
    for name, group in groupby(found, key=lambda rule: rule["folder"]):
        click.echo(printable(name))
        for rule in group:
            host = f"[{rule['host']}]" if ":" in rule["host"] else rule["host"]
            at = dt.datetime.fromtimestamp(rule["at"]).astimezone().isoformat(" ", "minutes")
            where = printable(f"{host}:{rule['port']}")
            click.echo(f"  {rule['id']}  {where} · {rule['phase']} · {at} · {printable(rule['by'])}")
    return 0


@rules.command()
@click.argument("number", metavar="ID", type=click.IntRange(1))
def forget(*, number: int) -> int:
    """Forget one: it is asked about again. What is open stays open."""
    ApiClient().delete(f"/api/rules/{number}")
    click.echo(f"{number} is forgotten")
    return 0
