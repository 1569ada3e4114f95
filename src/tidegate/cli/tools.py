"""`tidegate tools`: the programs that may run outside for a task, and the hosts that they talk to (SRV-6)."""

from __future__ import annotations

import json
import os

import click

from tidegate.cli.main import say
from tidegate.policy.positions import on_screen
from tidegate.runtime.state import config_folder
from tidegate.runtime.tool_files import FILE, declared, missing


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def tools(*, as_json: bool) -> int:
    """Show the tools that `run` and `exec` can be given with --tool."""
    config = config_folder(os.environ)
    found = declared(config)
    if as_json:
        fields = ("name", "description", "hosts", "apply_task_hosts", "source")
        click.echo(
            json.dumps([{name: getattr(one, name) for name in fields} | {"why_not": missing(one)} for one in found])
        )
        return 0
    if not found:
        say(f"there is no tool: declare one in {os.path.join(config, FILE)}; see docs/tools.md")
    for one in found:
        hosts = ", ".join(one.hosts) or "no host that it names"
        held = "only the task's hosts" if one.apply_task_hosts else "not limited by the task's hosts"
        why = missing(one)
        click.echo(f"{one.name} · {hosts} · {held}" + (f" · cannot run: {why}" if why else ""))
        click.echo(f"  {on_screen(' '.join(one.description.split()), 200)}")
    return 0
