"""What a task may have its tools do, and what it may not: the trial has one tool, that tells how it is run (SRV-6).

It runs outside of the hold, as whoever began the trial, so what of it the task could choose would be a way out.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from tidegate.doctor.escapes.rows.asked import gate, status
from tidegate.doctor.escapes.table import GATED, escape, neighbour
from tidegate.doctor.escapes.tools import PATIENCE, SaidError, word, wrong

_NAME = "tools.tidegate.internal"
_GIVEN = {"PATH", "LANG", "HOME", "TMPDIR", "TIDEGATE_TASK", "TIDEGATE_TOOL"}
_MOST = 65536


def _call(path: str, value: Any) -> tuple[str, bytes]:
    """The status and the body of what calling this path gives; bytes are sent as they are."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    head = f"POST http://{_NAME}{path} HTTP/1.1\r\nHost: {_NAME}\r\nContent-Type: application/json\r\n"
    data = b""
    with gate() as wire:
        wire.settimeout(3 * PATIENCE)  # a program has to be started for it
        wire.sendall(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        while piece := wire.recv(_MOST):
            data += piece
    return status(data), data.partition(b"\r\n\r\n")[2]


def _told(text: str) -> dict[str, Any]:
    """What the tool tells of itself when it is given a text."""
    seen, body = _call("/tells", {"text": text})
    if seen != "200":
        wrong(f"the tool is not called: {seen}")
    found: dict[str, Any] = json.loads(body)
    return found


@neighbour(holds=GATED)
def a_tool_of_its_own() -> None:
    """The tool that the task was given, with what it takes."""
    if _told(word())["text"] != word():
        wrong("it was told something else")


@escape("404", holds=GATED)
def a_tool_that_was_not_given() -> None:
    """Another one that is declared."""
    raise SaidError(_call("/other", {"text": word()})[0])


@escape("404", holds=GATED)
def a_way_to_another_tool() -> None:
    """The same by paths that lead there, or to a program."""
    seen = ""
    for path in (
        "/tells/../other",
        "//other",
        "/./other",
        "/tells/other",
        "/%6fther",
        "/tells%2f..%2fother",
        "//bin/sh",
    ):
        seen = _call(path, {"text": word()})[0]
        if seen == "200":
            wrong(f"{path} is a tool")
    raise SaidError(seen)


@escape("422", holds=GATED)
def words_that_a_tool_does_not_take() -> None:
    """More than its schema names: a command of the task's own."""
    raise SaidError(_call("/tells", {"text": word(), "command": ["/bin/sh"], "env": {"LD_PRELOAD": "/tmp/x"}})[0])


@escape("400", holds=GATED)
def a_key_twice() -> None:
    """An input that is one thing for who looks at it and another for the program."""
    raise SaidError(_call("/tells", b'{"text": "one", "text": "other"}')[0])


@neighbour(holds=GATED)
def words_like_options_of_a_tool() -> None:
    """Options, files and commands are text: they come on standard input, and nothing of them on the command line."""
    for text in ("--help", "-c", "-", "$(id)", "`id`", "; id", "../../etc/passwd", "/etc/shadow", "@/etc/passwd", "\n"):
        found = _told(text)
        if found["text"] != text or found["argv"]:
            wrong(f"{text!r} became {found['argv']}")


@neighbour(holds=GATED)
def what_a_tool_is_run_with() -> None:
    """Its variables are its own, its descriptors three, and its folder is in a place that the task does not see."""
    found = _told(word())
    if set(found["env"]) - _GIVEN:
        wrong(f"it has {sorted(set(found['env']) - _GIVEN)}")
    if found["fds"] != [0, 1, 2]:
        wrong(f"it has the descriptors {found['fds']}")
    for path in (found["cwd"], os.path.dirname(found["cwd"])):
        with contextlib.suppress(OSError):
            wrong(f"{path} is in sight, with {os.listdir(path)}")
