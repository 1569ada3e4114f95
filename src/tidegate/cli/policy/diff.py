"""`tidegate policy diff A B`: what B lets through that A does not (POL-14); alone, what this folder's file would."""

from __future__ import annotations

import json

import click

from tidegate.cli.policy.options import json_option, policy_of_file
from tidegate.cli.policy.trust import folder_file
from tidegate.model.errors import EXIT_CHECK_FAILED
from tidegate.policy import diff as core


@click.command()
@click.argument("before", metavar="A", default="")
@click.argument("after", metavar="B", default="")
@json_option
def diff(*, before: str, after: str, as_json: bool) -> int:
    """Say what policy B lets through that policy A does not.

    Without A and B: what this folder's tidegate.yaml lets through that the one trusted here before does not.

    Exit status 1 when there is anything, 0 when B is nowhere wider than A. Swap them for the other direction.
    """
    if after:
        found = core.diff(policy_of_file(before), policy_of_file(after))
    elif before:
        raise click.UsageError("one policy alone cannot be compared")
    else:
        found = folder_file(".").diff()
    if as_json:
        click.echo(
            json.dumps(
                {
                    "hosts": [
                        {
                            "phase": change.phase.value,
                            "before": change.before.value,
                            "after": change.after.value,
                            "rule": change.rule or None,
                            "source": change.source,
                            "hosts": change.hosts,
                            "exceptions": change.exceptions,
                            "also": change.also or None,
                        }
                        for change in found.hosts
                    ],
                    "settings": found.settings,
                },
                ensure_ascii=True,
            )
        )
    else:
        for line in (*map(str, found.hosts), *found.settings):
            click.echo(line)
        if not found:
            click.echo("nothing more passes")
    return EXIT_CHECK_FAILED if found else 0
