"""Where an agent keeps its state when the home folder lets no new name come to be (HLD-15).

Claude Code saves `~/.claude.json` by a new file beside it that is renamed over it. In a closed home folder that fails,
and nothing is kept: neither that it was set up, nor who is signed in. With CLAUDE_CONFIG_DIR the same file lies in
`~/.claude`, which stays open. So a task gets that variable, and once a copy of what was there. Later the two go their
own ways: what a task writes does not become what runs outside.

Source: code.claude.com/docs, settings and environment variables; seen with 2.1.197. Codex keeps all in `~/.codex`.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_VARIABLE, _FOLDER, _FILE = "CLAUDE_CONFIG_DIR", ".claude", ".claude.json"
_LARGEST = 1 << 25  # bytes; it holds what was typed in each project


def agent_state(environ: Mapping[str, str], home: str, writable: Collection[str]) -> dict[str, str]:
    """Return the variables that lead an agent to a folder where it can save, its state copied there the first time.

    `home` is the real path of the home folder, '' for none; `writable` are the folders that stay so. Nothing where
    the caller has said where the state is.
    """
    folder = f"{home}/{_FOLDER}"
    if not home or _VARIABLE in environ or folder not in writable:
        return {}
    _copy(f"{home}/{_FILE}", folder)
    return {_VARIABLE: folder}


def _copy(source: str, folder: str) -> None:
    """Copy a file into the folder, whole or not at all, unless there is one: it goes on without where that fails."""
    target = f"{folder}/{_FILE}"
    if os.path.lexists(target):
        return
    new = f"{target}.tidegate-{os.getpid()}"
    try:
        with open(os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
                return
            text = file.read(_LARGEST)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with open(os.open(new, flags, 0o600), "wb") as file:
            file.write(text)
    except OSError:
        return
    try:
        os.link(new, target)  # never over one that a task has just made
    except OSError:
        return
    finally:
        os.unlink(new)
