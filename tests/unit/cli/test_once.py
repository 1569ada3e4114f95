"""Options that may be given once (POL-15, POL-8)."""

from __future__ import annotations

import click
import pytest

from tidegate.cli.once import once
from tidegate.model.errors import UsageError


def given(*args: str) -> str:
    """Return the value that a command has of these arguments."""

    @click.command()
    @once("--policy", "policy_file", metavar="FILE", help="A policy.")
    def command(*, policy_file: str) -> str:
        return policy_file

    return str(command.main(list(args), standalone_mode=False))


def test_one_value_or_none() -> None:
    """POL-8: given once it has its value, left out it is empty."""
    assert given("--policy", "a.yaml") == given("--policy=a.yaml") == "a.yaml"
    assert given() == ""


def test_the_first_of_two_is_not_dropped() -> None:
    """POL-15: the last of two policies does not count alone, whatever the first one denies."""
    with pytest.raises(UsageError, match="--policy is given twice"):
        given("--policy", "strict.yaml", "--policy", "wide.yaml")
    with pytest.raises(UsageError, match="given twice"):
        given("--policy=a.yaml", "--policy=a.yaml")
