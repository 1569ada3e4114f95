"""`tidegate settings`: what applies to tasks that say nothing of their own (POL-13, ASK-2), shown and changed."""

from __future__ import annotations

import json
from typing import Any, Final

import click

from tidegate.cli import terms
from tidegate.cli.api_client import ApiClient
from tidegate.journal.summary import printable
from tidegate.model.errors import UsageError

_NAMES: Final = {"network-default": "network_default", "default-hosts": "default_hosts", "wait": "wait_seconds"}


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def settings(context: click.Context, *, as_json: bool) -> None:
    """What applies to tasks to come that say nothing of their own."""
    if context.invoked_subcommand is None:
        _show(ApiClient().get("/api/settings"), as_json=as_json)


@settings.command("set")
@click.argument("name", type=click.Choice(tuple(_NAMES)))
@click.argument("values", metavar="VALUE...", nargs=-1)
def set_(*, name: str, values: tuple[str, ...]) -> None:
    """Change one setting, for tasks to come.

    network-default none|allowlist: what a task reaches that is created over the API without a policy: nothing, or the
    default hosts · default-hosts HOST...: those; without a HOST none · wait TIME: how long a question waits, 1m to 8h.
    """
    _show(ApiClient().ask("PATCH", "/api/settings", {_NAMES[name]: _value(name, values)}), as_json=False)


def _value(name: str, values: tuple[str, ...]) -> Any:
    if name == "default-hosts":
        return list(values)
    if len(values) != 1:
        raise UsageError(f"{name} has one value", fix=f"tidegate settings set {name} VALUE")
    return terms.wait(values[0]) if name == "wait" else values[0]


def _show(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(found))
        return
    hosts = " ".join(printable(host) for host in found["default_hosts"])
    click.echo(f"network-default: {found['network_default']}")
    click.echo(f"default-hosts: {hosts or 'none'}")
    click.echo(f"wait: {terms.left(found['wait_seconds'])}")
