"""Files that a task may not change or see: tidegate's own, its policy, the installation."""

from __future__ import annotations

import errno
import fcntl
import os

from tidegate.doctor.escapes.table import HELD, escape
from tidegate.doctor.escapes.tools import mount, nested, number, syscall, umount, wrong


@escape("ENOENT")
def reading_what_is_hidden() -> None:
    """Tidegate's own files are not there."""
    with open(HELD["hidden"] + "/secret", encoding="ascii") as file:
        wrong(file.read())


@escape("EROFS")
def writing_what_is_hidden() -> None:
    """Nor can a task put its own in their place."""
    with open(HELD["hidden"] + "/secret", "w", encoding="ascii") as file:
        file.write("mine")


@escape("EROFS", "EBUSY", "ENOENT")
def making_a_hidden_folder_that_was_not_there() -> None:
    """Nor make a hidden folder that did not exist before."""
    os.makedirs(HELD["absent"], exist_ok=True)
    with open(HELD["absent"] + "/config.yaml", "w", encoding="ascii") as file:
        file.write("mine")


@escape("EBUSY")
def renaming_what_is_hidden() -> None:
    """The hidden folder itself cannot be renamed."""
    os.rename(HELD["hidden"], HELD["hidden"] + "2")


@escape("EBUSY")
def renaming_above_what_is_hidden() -> None:
    """Nor the folder above it."""
    above = os.path.dirname(HELD["hidden"])
    os.rename(above, above + "2")


@escape("EBUSY")
def renaming_home() -> None:
    """Nor the one above that."""
    os.rename(HELD["home"], HELD["home"] + "2")


@escape("EBUSY")
def replacing_a_symlink_to_what_is_hidden() -> None:
    """A symlink that leads there cannot be replaced."""
    os.unlink(HELD["hidden_link"])


@escape("EBUSY")
def exchanging_the_folder_above() -> None:
    """RENAME_EXCHANGE with a folder of the task's own."""
    above = os.path.dirname(HELD["hidden"])
    mine = HELD["home"] + "/mine"
    os.makedirs(mine, exist_ok=True)
    syscall(number(316, 276), -100, os.fsencode(mine) + b"\0", -100, os.fsencode(above) + b"\0", 2)


@escape("EPERM")
def copying_what_is_hidden() -> None:
    """A snapshot of a file system would show what lies under the masks (btrfs)."""
    fcntl.ioctl(os.open(HELD["home"], os.O_RDONLY), 0x50009417, bytes(1024))


@escape("EROFS")
def writing_the_installation() -> None:
    """What runs outside later is read-only."""
    with open(HELD["readonly"] + "/code.py", "a", encoding="ascii") as file:
        file.write("mine")


@escape("EROFS")
def adding_to_the_installation() -> None:
    """And nothing is added to it."""
    with open(HELD["readonly"] + "/new.py", "w", encoding="ascii") as file:
        file.write("mine")


@escape("EROFS")
def writing_the_installation_by_descriptor() -> None:
    """Opening it read-only first and again through /proc does not help."""
    descriptor = os.open(HELD["readonly"] + "/code.py", os.O_RDONLY)
    os.close(os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY))


@escape("EBUSY")
def renaming_the_installation() -> None:
    """It cannot be renamed."""
    os.rename(HELD["readonly"], HELD["readonly"] + "2")


@escape("EROFS")
def changing_modes_of_the_installation() -> None:
    """Nor get other modes."""
    os.chmod(HELD["readonly"] + "/code.py", 0o777)


@escape("EBUSY")
def removing_a_read_only_file() -> None:
    """A read-only file in the workspace cannot be removed."""
    os.unlink(HELD["readonly_file"])


@escape("EBUSY")
def replacing_a_read_only_file() -> None:
    """Nor replaced, as editors and git do."""
    mine = HELD["workspace"] + "/mine.toml"
    with open(mine, "w", encoding="ascii") as file:
        file.write("mine")
    os.rename(mine, HELD["readonly_file"])


@escape("EXDEV", "EPERM")
def linking_a_read_only_file() -> None:
    """Nor linked to where it could be written."""
    os.link(HELD["readonly_file"], HELD["workspace"] + "/link.toml")


@escape("EBUSY")
def removing_from_a_namespace_inside() -> None:
    """Root of a namespace inside finds the same mounts."""
    nested()
    os.unlink(HELD["readonly_file"])


@escape("EPERM", "EINVAL")
def leaving_the_mounts_behind() -> None:
    """A lazy unmount of everything would free the names that mounts hold in place."""
    nested()
    folder = os.open(HELD["workspace"], os.O_RDONLY)
    mount("tmpfs", "/tmp", "tmpfs")
    try:
        syscall(number(155, 41), b"/tmp\0", b"/tmp\0")
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
    umount("/", 2)
    os.unlink(os.path.basename(HELD["readonly_file"]), dir_fd=folder)
