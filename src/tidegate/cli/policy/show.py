"""`tidegate policy show`: the joined policy that `run` has here, rule by rule (POL-8)."""

from __future__ import annotations

import json
from typing import Any

import click

from tidegate.cli.policy.options import json_option, policy_of_options, policy_options
from tidegate.cli.policy.rendering import json_of, text_of


@click.command()
@policy_options
@json_option
def show(*, as_json: bool, **named: Any) -> int:
    """Show the policy that `tidegate run` has in this folder.

    With options, as `tidegate run` has it with them.
    """
    policy = policy_of_options(**named)
    if as_json:
        click.echo(json.dumps(json_of(policy), ensure_ascii=True))
    else:
        for line in text_of(policy):
            click.echo(line)
    return 0
