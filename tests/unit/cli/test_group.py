"""tidegate.cli.group."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest

from tests.product import REPOSITORY
from tidegate.cli.group import COMMANDS, find_command, run_click
from tidegate.cli.main import CLICK, USAGE
from tidegate.model.errors import UsageError


def test_every_command_is_there() -> None:
    """What the entry hands on can be run, and `tidegate --help` names each."""
    assert set(COMMANDS) == set(CLICK)
    for name in COMMANDS:
        command = find_command(name)
        assert command.name == name
        assert f"  {name} " in USAGE or f"  {name}\n" in USAGE
    policy = find_command("policy")
    assert isinstance(policy, click.Group)
    assert {"check", "explain", "diff", "test"} <= set(policy.commands)
    assert [name for name in policy.commands if f"  policy {name} " not in USAGE] == ["untrust"]  # beside trust


def test_only_the_module_of_the_named_command_is_imported() -> None:
    """The start of one command does not pay for the others."""
    program = (
        "import sys\nfrom tidegate.cli.group import run_click\nrun_click(['events', '--help'])\n"
        "print(*[name for name in sys.modules if name.startswith('tidegate.cli.')])"
    )
    argv = [sys.executable, "-c", program]
    environ = os.environ | {"PYTHONPATH": os.path.join(REPOSITORY, "src")}
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60, env=environ)
    loaded = done.stdout.splitlines()[-1].split()
    assert "tidegate.cli.events" in loaded
    assert not {f"tidegate.cli.{module}" for name, (module, _) in COMMANDS.items() if name != "events"} & set(loaded)


@pytest.mark.parametrize(
    "argv", [["events", "--bogus"], ["policy", "explian"], ["policy", "explain"], ["policy", "check", "a", "b"]]
)
def test_clicks_errors_are_ours(argv: list[str]) -> None:
    """HLD-16: exit 2 in one line that says where the help is."""
    with pytest.raises(UsageError) as raised:
        run_click(argv)
    assert raised.value.exit_status == 2
    assert "--help" in raised.value.fix
    assert "\n" not in str(raised.value)


def test_help_is_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """--help of a command goes to standard output and ends with 0."""
    assert run_click(["policy", "--help"]) == 0
    assert "explain" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["answer"], "  remember   let it through in this folder from now on"),
        (["settings", "set"], "  notify on|off                   notifications on the server's desktop"),
        (["secret", "set"], "  tidegate secret set GITHUB_TOKEN --host api.github.com"),
    ],
)
def test_lists_and_examples_keep_their_lines(argv: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What a person copies from a help text, and a list in it, is a line each; no mark of click's is shown."""
    assert run_click([*argv, "--help"]) == 0
    said = capsys.readouterr().out
    assert line in said.splitlines()
    assert "\b" not in said
    assert "\\b" not in said
