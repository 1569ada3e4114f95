"""tidegate.cli.policy."""

from __future__ import annotations

import subprocess
import sys

import click

from tidegate.cli.policy import policy_group


def test_the_group_is_a_click_group() -> None:
    """POL-14: the commands are there, under the names SPEC gives them."""
    group = policy_group()
    assert isinstance(group, click.Group)
    assert {"check", "explain", "diff", "test"} <= set(group.commands)


def test_importing_the_package_brings_nothing_slow() -> None:
    """The package itself imports neither click nor YAML; they come with the first command."""
    code = "import sys, tidegate.cli.policy; print({'click', 'yaml', 'rich'} & set(sys.modules))"
    env = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"
