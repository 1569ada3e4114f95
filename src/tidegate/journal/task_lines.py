"""A task and its commands as lines of the action log, the same for a server's and for one that runs alone (JRN-2).

Of a command the log has the program and the names of its options, never a value: a header, a query string, a password
in an argument must not be in it (JRN-5), and no rule could tell them from other words. Pure.
"""

from __future__ import annotations

from tidegate.model.host import bracketed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tidegate.journal.refusals import Line

LEFT_OUT = "…"
_MOST = 32  # words of a command: what it is can be told from fewer
_LONGEST = 64  # characters of an option's name


def created(
    *,
    name: str,
    folder: str,
    command: Sequence[str],
    phase: str,
    hold: str,
    by: str,
    issue: str = "",
    tools: Sequence[str] = (),
) -> Line:
    """A task begins to live; `issue` is that of a tracker to which its end is told, `tools` are its commands'."""
    fields = {"name": name, "folder": folder, "command": logged(command), "phase": phase, "hold": hold, "by": by}
    return "task.created", fields | ({"issue": issue} if issue else {}) | ({"tools": list(tools)} if tools else {})


def exec_started(exec_: str, command: Sequence[str], hold: str) -> list[Line]:
    """A command begins; one without a gate has a line of its own (HLD-5)."""
    lines: list[Line] = [("exec.started", {"exec": exec_, "command": logged(command), "hold": hold})]
    if hold == "open":
        lines.append(("open.network", {"exec": exec_}))
    return lines


def secrets_given(exec_: str, names: Sequence[str]) -> Line:
    """A command has stand-ins for these secrets (INS-5), and its gate their values."""
    return "secret.given", {"exec": exec_, "secrets": list(names)}


def secret_used(exec_: str, name: str, host: str, port: int) -> Line:
    """A secret was used at this host, for the first time by this command."""
    return "secret.used", {"exec": exec_, "secret": name, "host": f"{bracketed(host)}:{port}"}


def tool_called(exec_: str, tool: str, how: Mapping[str, Any]) -> Line:
    """A tool was called by this command, or would have been: how it ended, sizes and seconds, and no value (SRV-6)."""
    return "tool.called", {"exec": exec_, "tool": tool, **how}


def exec_ended(exec_: str, connections: int) -> Line:
    """A command has ended."""
    return "exec.ended", {"exec": exec_, "connections": connections}


def task_ended(outcome: str) -> Line:
    """A task is over."""
    return "task.ended", {"outcome": outcome}


def logged(command: Sequence[str]) -> list[str]:
    """Return of a command what the log may have: `curl --header … -o …`."""
    if not command:
        return []
    kept = [command[0]]
    options = True
    for word in command[1:]:
        shown = _option(word) if options else LEFT_OUT
        options = options and word != "--"
        if shown == LEFT_OUT == kept[-1]:
            continue
        if len(kept) == _MOST:
            return kept if kept[-1] == LEFT_OUT else [*kept, LEFT_OUT]
        kept.append(shown)
    return kept


def _option(word: str) -> str:
    if word == "--":
        return word
    name, equals, _value = word.partition("=")
    if len(name) > 2 and name.startswith("--"):
        plain = name[2:].replace("-", "").replace("_", "")
        # A name is letters and digits; what else begins so (a key in PEM, say) is none.
        if len(name) <= _LONGEST and plain.isascii() and plain.isalnum():
            return name + (f"={LEFT_OUT}" if equals else "")
        return LEFT_OUT
    if len(word) >= 2 and word[0] == "-" and word[1].isascii() and word[1].isalpha():
        return word if len(word) == 2 else word[:2] + LEFT_OUT  # -pSECRET
    return LEFT_OUT
