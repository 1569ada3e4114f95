"""tidegate.cli.policy.group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Command


@pytest.mark.parametrize(
    "argv",
    [
        ("policy", "chek"),
        ("policy", "check"),
        ("policy", "check", "a", "b"),
        ("policy", "explain"),
        ("policy", "explain", "--phase", "build", "a.com"),
        ("policy", "explain", "--bogus", "a.com"),
        ("policy", "diff", "a"),
        ("policy", "test"),
        ("policy", "learn"),
        ("policy", "learn", "--bogus", "x"),
        ("policy", "new-hosts", "x"),
    ],
)
def test_a_usage_error_is_one_line_and_exit_2(tidegate: Command, argv: tuple[str, ...]) -> None:
    """HLD-16: what is wrong with the command line is said in one line that names the help."""
    status, out, err = tidegate(*argv)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "--help" in err


def test_help_is_there_for_each_command(tidegate: Command) -> None:
    """Help goes to standard output and is no error."""
    for command in ("check", "explain", "show", "diff", "test", "learn", "new-hosts"):
        status, out, err = tidegate("policy", command, "--help")
        assert (status, err) == (0, "")
        assert out.startswith(f"Usage: tidegate policy {command}")
