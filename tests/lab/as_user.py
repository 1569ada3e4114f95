"""Run a command as an ordinary user, uid and gid 12345: `python as_user.py HOME COMMAND...`; root only.

Where Python or the repository lies under a folder that such a user may not enter (/root, say), a private mount
namespace shows just those two in an otherwise empty stand-in for that folder. HOME is a
folder that becomes the user's, or `-` for an empty one in memory that ends with the command.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tests.lab import namespaces

USER = 12345


def closed_ancestor(path: str) -> str | None:
    """Return the topmost folder above `path` that others may not enter."""
    at = "/"
    for part in path.strip("/").split("/"):
        at = os.path.join(at, part)
        if os.path.isdir(at) and not os.stat(at).st_mode & 0o001:
            return at
    return None


def reveal(paths: set[str]) -> None:
    """Make the paths reachable for everyone, in a private mount namespace."""
    namespaces.unshare(namespaces.CLONE_NEWNS)
    namespaces.private_mounts()
    mask = os.umask(0o022)  # the stand-ins are everybody's to enter, whatever the caller's mask
    closed: dict[str, list[tuple[str, int]]] = {}
    for path in paths:
        ancestor = closed_ancestor(path)
        if ancestor is not None and ancestor != path:
            closed.setdefault(ancestor, []).append((path, os.open(path, os.O_PATH)))
    for ancestor, inside in closed.items():
        namespaces.mount("tmpfs", ancestor, "tmpfs", options="mode=0755")
        for path, fd in inside:
            os.makedirs(path, exist_ok=True)
            namespaces.mount(f"/proc/self/fd/{fd}", path, flags=namespaces.MS_BIND | namespaces.MS_REC)
            os.close(fd)
    os.umask(mask)


def main(argv: list[str]) -> None:
    """Become the user and run the command."""
    here = os.getcwd()
    repository = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    home, *command = argv
    needed = {os.path.realpath(sys.base_prefix), os.path.realpath(sys.prefix), repository}
    if home == "-":
        reveal(needed)
        namespaces.mount("tmpfs", "/mnt", "tmpfs", options=f"mode=0700,uid={USER},gid={USER}")
        home = "/mnt"
    else:
        home = os.path.realpath(home)
        if home.count("/") < 2:
            sys.exit(f"as_user: {home} is the machine's, and would be given away for good")
        os.chown(home, USER, USER)
        reveal(needed | {home})
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)
    try:
        os.chdir(here)
    except OSError:
        os.chdir(home)
    os.environ.update(HOME=home, USER="tester", LOGNAME="tester")
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        del os.environ[name]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
