"""tidegate.cli.group."""

from __future__ import annotations

import click
import pytest

from tidegate.cli.group import make_group, run_click
from tidegate.model.errors import UsageError


def test_every_command_of_the_help_is_there() -> None:
    """What `tidegate --help` names can be run."""
    group = make_group()
    assert set(group.commands) == {"policy", "events", "log", "doctor"}
    policy = group.commands["policy"]
    assert isinstance(policy, click.Group)
    assert {"check", "explain", "diff", "test"} <= set(policy.commands)


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
