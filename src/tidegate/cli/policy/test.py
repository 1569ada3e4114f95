"""`tidegate policy test FILE`: expected verdicts, for CI (POL-14). The form of the file is in expectations.py."""

from __future__ import annotations

import os

import click

from tidegate.cli.once import once
from tidegate.cli.policy.expectations import read_expectations
from tidegate.cli.policy.options import judge_of, policy_of_file, warn
from tidegate.model.errors import EXIT_CHECK_FAILED, UsageError
from tidegate.model.verdict import Phase
from tidegate.policy.expect import run_expectations
from tidegate.runtime.policy_sources import read_policy_file


@click.command()
@click.argument("file", metavar="FILE")
@once("--policy", "policy_file", metavar="FILE", help="Test this policy, not the one FILE names.")
def test(*, file: str, policy_file: str) -> int:
    """Ask a policy for the verdicts that FILE expects. Exit status 1 when one is another.

    Only the policy's own file counts, not your configuration, so that the answer is the same everywhere.
    """
    wanted = read_expectations(read_policy_file(file), file)
    if not policy_file:
        if not wanted.policy:
            raise UsageError("no policy to test", fix="write 'policy: FILE' into the file, or give --policy FILE")
        policy_file = os.path.join(os.path.dirname(file), wanted.policy)
    policy = policy_of_file(policy_file)
    warn(policy)
    failed = 0
    for phase in Phase:
        of_phase = [expectation for expectation in wanted.expectations if expectation.phase is phase]
        for outcome in run_expectations(policy, of_phase, judge_of(policy, phase, ())):
            if not outcome.met:
                failed += 1
                click.echo(f"{outcome.expectation.source}: {outcome}")
    click.echo(f"{len(wanted.expectations) - failed} of {len(wanted.expectations)} expectations hold")
    return EXIT_CHECK_FAILED if failed else 0
