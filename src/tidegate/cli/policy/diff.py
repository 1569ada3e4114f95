"""`tidegate policy diff A B`: what B lets through that A does not (POL-14)."""

from __future__ import annotations

import json

import click

from tidegate.cli.policy.options import json_option, policy_of_file
from tidegate.model.errors import EXIT_CHECK_FAILED
from tidegate.policy import diff as core


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@json_option
def diff(*, before: str, after: str, as_json: bool) -> int:
    """Say what policy B lets through that policy A does not.

    Exit status 1 when there is anything, 0 when B is nowhere wider than A. Swap them for the other direction.
    """
    found = core.diff(policy_of_file(before), policy_of_file(after))
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
