"""What a task of the hold `uid` is told of the user that it runs as: its variables, and its lines in the account files.

The user exists in no file of the machine; what asks for its name or home finds them in copies that only it sees.
"""

from __future__ import annotations

from tidegate.holds.name_files import NameFile

HOME = "/run/home"
"""The task's home: a folder of its own, which ends with it."""
_OURS = ("HOME", "USER", "LOGNAME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "MAIL")


def environment(env: dict[str, str], uid: int) -> dict[str, str]:
    """The caller's variables, without those that lead to its home."""
    home = env.get("HOME", "")
    own = {"HOME": HOME, "USER": f"task-{uid}", "LOGNAME": f"task-{uid}", "XDG_RUNTIME_DIR": f"/run/user/{uid}"}
    lead = f"{home.rstrip('/')}/"
    kept = {name: value for name, value in env.items() if name not in _OURS and not (home and value.startswith(lead))}
    return kept | own


def account_files(uid: int) -> tuple[NameFile, ...]:
    """The machine's users and groups with one more: programs ask for their own name and home (passwd(5))."""
    lines = {
        "/etc/passwd": f"task-{uid}:x:{uid}:{uid}:a task of tidegate:{HOME}:/bin/sh\n",
        "/etc/group": f"task-{uid}:x:{uid}:\n",
    }
    found = []
    for path, line in lines.items():
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                text = file.read()
        except OSError:
            continue
        found.append(NameFile(path, (text if text.endswith("\n") or not text else text + "\n") + line))
    return tuple(found)
