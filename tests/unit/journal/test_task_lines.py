"""tidegate.journal.task_lines."""

from __future__ import annotations

import pytest

from tidegate.journal.task_lines import created, exec_started, logged, tool_called

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ([], []),
        (["true"], ["true"]),
        (["/usr/bin/npm", "install", "left-pad"], ["/usr/bin/npm", "…"]),
        (["curl", "-H", f"Authorization: {SECRET}", "https://a.test/?key=" + SECRET], ["curl", "-H", "…"]),
        (["curl", f"--header=X-Key: {SECRET}", "-o", "x"], ["curl", "--header=…", "-o", "…"]),
        (["mysql", f"-p{SECRET}", "-u", "root"], ["mysql", "-p…", "-u", "…"]),
        (["sh", "-c", f"TOKEN={SECRET} deploy"], ["sh", "-c", "…"]),
        (["env", f"TOKEN={SECRET}", "deploy"], ["env", "…"]),
        (["git", "--", "--option"], ["git", "--", "…"]),
        (["x", f"--{SECRET}*"], ["x", "…"]),
        (["x", "--" + "a" * 70], ["x", "…"]),
        (["x", "-", "-9", "-é", "--"], ["x", "…", "--"]),
    ],
)
def test_of_a_command_only_program_and_options_are_kept(command: list[str], shown: list[str]) -> None:
    """JRN-5: no value of any argument is in the log; what runs and with which options is."""
    assert logged(command) == shown


def test_a_long_command_is_bounded() -> None:
    """JRN-5: a command of a thousand options is one short line."""
    found = logged(["x", *(f"--option-{number}" for number in range(1000))])
    assert (len(found), found[-1]) == (33, "…")
    assert logged(["x", *["word"] * 1000]) == ["x", "…"]


def test_lines_have_no_secret_of_the_command() -> None:
    """JRN-5, HLD-5: neither the task's line nor that of its command, and an open network has a line of its own."""
    command = ["deploy", "--token", SECRET, SECRET]
    lines = [
        created(name="", folder="/f", command=command, phase="runtime", hold="open", by="x"),
        *exec_started("t-1", command, "open"),
    ]
    assert [kind for kind, _ in lines] == ["task.created", "exec.started", "open.network"]
    assert SECRET not in str(lines)
    assert len(exec_started("t-1", command, "netns")) == 1


def test_a_task_names_its_issue() -> None:
    """JRN-6: where it has one, and not otherwise."""
    about = {"name": "", "folder": "/f", "command": ["true"], "phase": "runtime", "hold": "netns", "by": "x"}
    assert created(**about, issue="ABC-1")[1]["issue"] == "ABC-1"  # type: ignore[arg-type]
    assert "issue" not in created(**about)[1]  # type: ignore[arg-type]


def test_a_call_of_a_tool_is_a_line() -> None:
    """SRV-6: the command, the tool and how it ended."""
    line = tool_called("t-1", "charge", {"result": "ok", "status": 0})
    assert line == ("tool.called", {"exec": "t-1", "tool": "charge", "result": "ok", "status": 0})
