"""Which tools there are, and whether a task could change what they run (SRV-6, POL-9, HLD-15).

Tools are declared in the user's `tools.yaml` in the configuration folder and the administrator's in /etc/tidegate,
never in a folder that a task works in. A tool's program runs as the person, outside of every hold; so whatever of it a
task could write would be a way out, and is refused: by the way itself, and by every link on it.
"""

from __future__ import annotations

import os
import re
import stat

from tidegate.holds.mountinfo import aliases, is_within, read_mounts
from tidegate.model.errors import StartError, UsageError
from tidegate.runtime.administrator import FOLDER, read_administrators
from tidegate.runtime.policy_sources import read_policy_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidegate.runtime.task import Order
    from tidegate.tools.declaration import Tool

FILE = "tools.yaml"
_CODE = "tools"
_LONGEST_LINE = 256  # BINPRM_BUF_SIZE of the kernel's include/uapi/linux/binfmts.h
_MOST_INTERPRETERS = 5  # of one another's scripts (exec_binprm of the kernel's fs/exec.c)
_BEFORE_A_PATH = re.compile(r"(?:[\w.-]*=|-[A-Za-z]|@)(?=/)", re.ASCII)  # --file=/x, PYTHONPATH=/x, -I/x, @/x
_MOST_LINKS = 40  # the kernel's own (path_resolution(7))
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm", "/run/user")  # noqa: S108 - others write there, and what is there is refused


def declared(config: str) -> tuple[Tool, ...]:
    """Return all tools that are declared for this person, the administrator's first.

    Raises:
        UsageError: for wrong text, or one that is declared twice.
        StartError: for a file that somebody else could have written.
    """
    from tidegate.tools.declaration import load_tools

    found: dict[str, Tool] = {}
    path = os.path.join(FOLDER, FILE)
    data = read_administrators(path, "tools")
    for tool in load_tools(data, path) if data is not None else ():
        found[tool.name] = tool
    path = os.path.join(config, FILE)
    if os.path.lexists(path):
        for tool in load_tools(_users_own(path), path):
            if tool.name in found:
                there = found[tool.name].source
                raise UsageError(
                    f"{tool.source}: the tool {tool.name} is the administrator's already ({there})",
                    fix="name it otherwise",
                )
            found[tool.name] = tool
    return tuple(found.values())


def tools_of(names: Iterable[str], config: str) -> tuple[Tool, ...]:
    """Return the tools of these names.

    Raises:
        UsageError, StartError: as `declared`, and where there is no such tool or its program is missing.
    """
    known = {tool.name: tool for tool in declared(config)}
    found = []
    for name in dict.fromkeys(names):
        if name not in known:
            fix = (
                f"one of {', '.join(known)}"
                if known
                else f"declare it in {os.path.join(config, FILE)}; see docs/tools.md"
            )
            raise UsageError(f"there is no tool {name!a}", fix=fix)
        why = missing(known[name])
        if why:
            raise StartError(f"the tool {name} cannot run: {why}", fix=f"see {known[name].source}", code=_CODE)
        found.append(known[name])
    return tuple(found)


def missing(tool: Tool) -> str:
    """Say why a tool's program cannot be run, '' where it can."""
    program = tool.command[0]
    if not os.path.isfile(program):
        return f"{program!a} is no file"
    return "" if os.access(program, os.X_OK) else f"{program!a} cannot be executed"


def fenced(order: Order, tools: Sequence[Tool], files: str) -> Order:
    """Return the order with what keeps its task from changing these tools; `files` is what was said of files, or ''.

    Raises:
        StartError: where it could all the same.
    """
    if not tools:
        return order
    writable = [order.folder, *(share.path for share in order.shares if not share.readonly), *order.writable]
    mounts = read_mounts()
    real = [os.path.realpath(path) for path in writable]
    writable = [place for path in real for place in (path, *aliases(path, mounts))]  # bound elsewhere, it is the same
    users_own = False
    for tool in tools:
        for word in _paths_of(tool):
            for step in steps(word):
                within = next((place for place in (*writable, *_TEMPORARY) if is_within(step, place)), "")
                if within:
                    by = "" if is_within(word, within) else f" (by {step!a})"
                    raise StartError(
                        f"the tool {tool.name} would run {word!a}{by}, which a task can write",
                        fix=f"move it out of {within!a}: its program runs outside of every hold",
                        code=_CODE,
                    )
                users_own = users_own or (os.path.lexists(word) and _could_write(step))
    if users_own and files == "normal":
        raise StartError(
            "a tool's files are this user's own, and with 'files: normal' a task could change them",
            fix="leave 'files: normal' out (a task with such tools has 'files: strict'), or give the files to root",
            code=_CODE,
        )
    return order.replace(tools=tuple(tool.name for tool in tools), strict=order.strict or users_own)


def _paths_of(tool: Tool) -> Iterator[str]:
    """Yield what a command names by a whole path, also what is not there: a task that can make it decides what runs."""
    for word in tool.command:
        for path in _BEFORE_A_PATH.sub("", word, count=1).split(":"):
            if path.startswith("/"):
                yield path
    script = tool.command[0]
    for _ in range(_MOST_INTERPRETERS):
        script = interpreter_of(script)
        if not script:
            return
        yield script


def interpreter_of(path: str) -> str:
    """Return the program that runs a script, by its first line (execve(2)); '' where it is no script."""
    try:
        with open(path, "rb") as file:
            line = file.read(_LONGEST_LINE).partition(b"\n")[0]
    except OSError:
        return ""
    words = line[2:].split()
    return os.fsdecode(words[0]) if line.startswith(b"#!") and words else ""


def steps(path: str) -> list[str]:
    """Return every path that the kernel looks at on the way to what `path` names, links followed.

    Raises:
        StartError: where it goes in circles.
    """
    found, left, here, links = [], path.split("/"), "", 0
    while left:
        name = left.pop(0)
        if name in {"", "."}:
            continue
        if name == "..":
            here = os.path.dirname(here)
            continue
        here = f"{here.rstrip('/')}/{name}"
        found.append(here)
        if os.path.islink(here):
            links += 1
            if links > _MOST_LINKS:
                raise StartError(f"{path!a} is a link that leads in circles", fix="name the file itself", code=_CODE)
            target = os.readlink(here)
            here = "" if target.startswith("/") else os.path.dirname(here)
            left = target.split("/") + left
    return found


def _could_write(path: str) -> bool:
    """Whether this user, and so a task that sees it, could change a file or what a folder holds."""
    try:
        found = os.lstat(path)
    except OSError:
        return True
    return not stat.S_ISLNK(found.st_mode) and (found.st_uid == os.geteuid() or os.access(path, os.W_OK))


def _users_own(path: str) -> bytes:
    data = read_policy_file(path, what="tools")
    for one in (path, os.path.dirname(path)):
        found = os.stat(one)
        if found.st_uid not in {0, os.geteuid()} or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise StartError(
                f"{one!a} says what runs outside of every hold, and others than you could change it",
                fix=f"chmod go-w {one}",
                code=_CODE,
            )
    return data
