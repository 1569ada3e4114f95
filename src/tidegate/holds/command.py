"""Becoming a command the way a shell does: PATH search, scripts without `#!`, and why it failed.

Follows POSIX XCU 2.9.1.4 "Command Search and Execution" and what execvp(3) does on ENOEXEC. It returns only where exec
failed; the word it returns decides between 127 (`not-found`) and 126 (all others).
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHELL = "/bin/sh"
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
# What makes a search go on with the next folder, as execvp(3) lists it.
_GO_ON = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EACCES,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENODEV,
        errno.ESTALE,
        errno.ETIMEDOUT,
    }
)


def exec_command(argv: Sequence[str], env: Mapping[str, str]) -> tuple[int, str]:
    """Replace this process by the command; return `(errno, kind)` where that is impossible.

    `kind` is `not-found`, `not-executable`, `interpreter` (the program in its first line is missing) or `cannot`.
    """
    name = argv[0] if argv else ""
    if not name:
        return errno.ENOENT, "not-found"
    if "/" in name:
        return _attempt(name, argv, env)
    worst = (errno.ENOENT, "not-found")
    for folder in env.get("PATH", DEFAULT_PATH).split(":"):
        candidate = f"{folder}/{name}" if folder else name
        code, kind = _attempt(candidate, argv, env)
        if kind == "not-found" or os.path.isdir(candidate) or not os.path.lexists(candidate):
            continue
        if code not in _GO_ON:
            return code, kind
        if worst[1] == "not-found":
            worst = (code, kind)
    return worst


def _attempt(path: str, argv: Sequence[str], env: Mapping[str, str]) -> tuple[int, str]:
    try:
        os.execve(path, list(argv), dict(env))  # noqa: S606  it is what we are for
    except OSError as error:
        code = error.errno or errno.EINVAL
    except ValueError:
        return errno.EINVAL, "cannot"
    if code == errno.ENOEXEC and _is_text(path):
        try:
            os.execve(SHELL, [SHELL, path, *argv[1:]], dict(env))  # noqa: S606  likewise
        except OSError as error:
            return error.errno or errno.EINVAL, "interpreter"
    if code in {errno.ENOENT, errno.ENOTDIR}:
        return code, "interpreter" if _is_file(path) else "not-found"
    return code, "not-executable" if code in {errno.EACCES, errno.EISDIR, errno.EPERM} else "cannot"


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _is_text(path: str) -> bool:
    # As shells do: a NUL before the end of the first line means a binary of another machine, not a script.
    try:
        with open(path, "rb", buffering=0) as file:
            head = file.read(256)
    except OSError:
        return False
    return b"\0" not in head.partition(b"\n")[0]
