"""`tidegate policy check FILE`: every error of a policy at once, or what each of its entries covers (POL-14, B11)."""

from __future__ import annotations

import click

from tidegate.cli.policy.options import policy_of_file, warn
from tidegate.cli.policy.rendering import text_of


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--folder", is_flag=True, help="Check it as a folder's tidegate.yaml, which may hold less.")
@click.option("--quiet", "-q", is_flag=True, help="Errors and warnings only.")
def check(*, file: str, folder: bool, quiet: bool) -> int:
    """Read FILE and say what each entry covers. Exit status 2 when its text is wrong."""
    policy = policy_of_file(file, folder=folder)
    if not quiet:
        for line in text_of(policy):
            click.echo(line)
    warn(policy)
    return 0
