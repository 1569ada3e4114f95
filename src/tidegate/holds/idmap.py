"""Files that belong to somebody outside and to the task's user inside, by an id-mapped mount (kernel 5.12).

The workspace of a task with a user of its own is somebody else's. Nothing of it is given away: on the disk every file
keeps its owner, and what the task makes is that owner's. Only the task's mount shows, and takes, its user in the
owner's place; whoever else owns a file in it is nobody there. The reasons are in docs/decisions. mount_setattr(2),
"ID-mapped mounts".

A map is a user namespace that nobody lives in: made by a child that ends, kept by its descriptor.
"""

from __future__ import annotations

import errno
import os

from tidegate.holds import linux, mounts
from tidegate.model.errors import StartError
from tidegate.model.value import Value

ATTRIBUTE = 0x00100000  # MOUNT_ATTR_IDMAP, linux/mount.h


class Mapped(Value):
    """A folder, and the descriptor of the map for its owner."""

    path: str
    map: int


def make_map(owner: tuple[int, int], user: tuple[int, int]) -> int:
    """A map from this owner and group on the disk to this user and group inside, as a descriptor.

    Raises:
        OSError: where the kernel refuses.
    """
    reading, writing = os.pipe()
    ready, done = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(writing)
            linux.unshare(linux.CLONE_NEWUSER)
            os.write(done, b"x")
            os.read(reading, 1)
        finally:
            os._exit(0)
    try:
        os.close(done)
        if os.read(ready, 1) != b"x":
            raise OSError(errno.EPERM, os.strerror(errno.EPERM), "a user namespace for a map")
        for name, outside, inside in (("uid", owner[0], user[0]), ("gid", owner[1], user[1])):
            descriptor = os.open(f"/proc/{child}/{name}_map", os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(descriptor, b"%d %d 1\n" % (outside, inside))
            finally:
                os.close(descriptor)
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for descriptor in (reading, writing, ready):
            os.close(descriptor)
        os.waitpid(child, 0)


def show(one: Mapped) -> None:
    """Put the mapped view of a folder in its place, in this mount namespace.

    Raises:
        StartError: where its file system cannot do that.
        OSError: where the kernel refuses otherwise.
    """
    tree = mounts.clone_real(one.path)
    try:
        wanted = b"".join(value.to_bytes(8, "little") for value in (ATTRIBUTE, 0, 0, one.map))
        linux.call("mount_setattr", tree, b"\0", linux.AT_EMPTY_PATH | linux.AT_RECURSIVE, wanted, len(wanted))
    except OSError as error:
        os.close(tree)
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
        raise StartError(
            f"{one.path} is on a file system that cannot show its files as another user's (id-mapped mounts)",
            fix="put it on ext4, xfs, btrfs or tmpfs, without another file system inside; or --hold netns",
            code="hold-idmap",
        ) from error
    mounts.attach_real(tree, one.path)
