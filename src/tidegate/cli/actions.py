"""`tidegate events --type T`: the action log, which joins all tasks (JRN-2, JRN-4). Read from its files, server or not.

Following looks at the end of the log a few times a second, from the end back to what was seen last, so that a long log
costs no more than a short one.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

import click

from tidegate.journal.segments import newest, read
from tidegate.journal.summary import printable
from tidegate.model.errors import TidegateError

if TYPE_CHECKING:
    from collections.abc import Iterator

POLL_SECONDS: Final = 0.2
_CHAIN: Final = frozenset(("seq", "at", "type", "task", "prev", "seal"))


def show(folder: str, *, kinds: tuple[str, ...], task: str, host: str | None, follow: bool, as_json: bool) -> None:
    """Print the lines of these types; of tasks whose id begins with `task`, and of one host where it is given.

    Raises:
        TidegateError: when the log cannot be read.
    """
    try:
        for line in _lines(folder, follow=follow):
            if line.get("type") in kinds and str(line.get("task", "")).startswith(task) and _of_host(line, host):
                click.echo(json.dumps(line) if as_json else text_of(line))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TidegateError(f"the action log in {folder!r} cannot be read: {error.strerror}") from None


def text_of(line: dict[str, Any]) -> str:
    """Return a line as a person reads it: when, what, which task, and what else it says."""
    words = [str(line.get(name, "")) for name in ("at", "type", "task")]
    words += [f"{name}={_shown(value)}" for name, value in line.items() if name not in _CHAIN]
    return " ".join(printable(word) for word in words if word)


def _lines(folder: str, *, follow: bool) -> Iterator[dict[str, Any]]:
    last = 0
    for line in read(folder):
        last = line["seq"]
        yield line
    while follow:
        time.sleep(POLL_SECONDS)
        fresh = []
        for line in newest(folder):
            if line["seq"] <= last:
                break
            fresh.append(line)
        for line in reversed(fresh):
            last = line["seq"]
            yield line


def _of_host(line: dict[str, Any], host: str | None) -> bool:
    found = str(line.get("host", ""))
    return host is None or found == host or found.rpartition(":")[0] == host  # net.blocked has name:port


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
