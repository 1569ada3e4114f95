"""The click group `policy`; each command is in a file of its own."""

from __future__ import annotations

import click

from tidegate.cli.policy.check import check
from tidegate.cli.policy.diff import diff
from tidegate.cli.policy.explain import explain
from tidegate.cli.policy.importing import import_policy
from tidegate.cli.policy.learn import learn
from tidegate.cli.policy.new_hosts import new_hosts
from tidegate.cli.policy.show import show
from tidegate.cli.policy.test import test
from tidegate.cli.policy.trust import trust, untrust


def make_policy_group() -> click.Group:
    """Return the group with its commands."""
    group = click.Group(
        "policy", help="Read, explain, compare, test and learn policies. Nothing is started or looked up."
    )
    for command in (check, explain, show, diff, test, import_policy, learn, new_hosts, trust, untrust):
        group.add_command(command)
    return group
