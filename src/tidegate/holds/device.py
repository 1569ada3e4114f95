"""A /dev with what every program needs and nothing of the machine: HLD-13, "a minimal /dev and own devpts".

The nodes are the machine's own, bound one by one, because a node cannot be made in a user namespace. A task run as
root could otherwise open the machine's disks, since their owner needs no capability for that. devices(7) as far as it
concerns containers; pts(4), "newinstance".
"""

from __future__ import annotations

import errno
import os
import stat

from tidegate.holds import linux, mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SHARED_MEMORY = "/dev/shm"  # noqa: S108 (it is made here)
NODES = ("null", "zero", "full", "random", "urandom", "tty")
LINKS = (
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
)


def take_nodes(more: Iterable[str] = ()) -> list[tuple[str, int]]:
    """Clone the nodes (and other paths below /dev) while the machine's /dev is still in sight.

    Must run before everything is made `nodev`. A node that this machine does not have is left out, but for `null`.
    """
    taken = []
    for name in (*NODES, *more):
        try:
            taken.append((name, mounts.clone("/dev/" + name)))
        except OSError as error:
            if error.errno != errno.ENOENT or name == "null":
                raise
    return taken


def make_dev(taken: list[tuple[str, int]]) -> None:
    """Mount the task's /dev over the machine's: nodes, links, ptys and shared memory of its own."""
    mounts.attach(mounts.new_file_system("tmpfs", (("mode", "755"),)), "/dev")
    for name, tree in taken:
        place(tree, "/dev/" + name)
    for name, target in LINKS:
        os.symlink(target, "/dev/" + name)
    os.mkdir("/dev/pts", 0o755)
    terminals = mounts.new_file_system(
        "devpts", (("ptmxmode", "666"), ("mode", "600")), linux.MOUNT_ATTR_NOSUID | linux.MOUNT_ATTR_NOEXEC
    )
    mounts.attach(terminals, "/dev/pts")
    os.mkdir(SHARED_MEMORY, 0o1777)
    mounts.attach(mounts.new_file_system("tmpfs", (("mode", "1777"),), mounts.SAFE), SHARED_MEMORY)


def finish_dev() -> None:
    """Nothing is added to /dev from here on."""
    mounts.set_attributes("/dev", mounts.READ_ONLY)


def place(tree: int, path: str) -> None:
    """Put a detached tree at `path`, making what it is put on, and the folders above, in a file system of ours."""
    folder = stat.S_ISDIR(os.fstat(tree).st_mode)
    if not os.path.lexists(path):
        above = path if folder else os.path.dirname(path)
        os.makedirs(above, 0o755, exist_ok=True)
        if not folder:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    mounts.attach_real(tree, path)
