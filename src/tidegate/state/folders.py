"""Which folder it is, and whether it can remember answers (ASK-8).

A folder is its real path, its device and its inode, all three: another folder put in its place is another folder, and
what is below it inherits nothing. Some file systems have other device numbers after a restart of the machine; there
the folder is unknown again and its hosts are asked anew.
"""

from __future__ import annotations

import os
import stat

from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.model.question import FolderKey

STORE_FILE = "tidegate.db"  # in the state folder; here, so that looking for it loads no database


def folder_key(path: str) -> FolderKey:
    """Return the key of the folder that `path` leads to.

    Raises:
        StartError: where it leads to none.
    """
    try:
        real = os.path.realpath(path, strict=True)
        found = os.lstat(real)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise StartError(f"the folder {path!r} cannot be used: {why}", fix="name a folder that is there") from None
    if not stat.S_ISDIR(found.st_mode):
        raise StartError(f"{path!r} is not a folder", fix="name a folder")
    from tidegate.model.question import FolderKey  # not before: `run` looks here for a store, and most have none

    return FolderKey(real, found.st_dev, found.st_ino)


def why_not_remembered(folder: FolderKey, home: str) -> str:
    """Say why this folder cannot remember, '' where it can. `home` is the user's home folder.

    The root and the home folder hold too much that has nothing to do with each other.
    """
    try:
        at_home = os.path.samestat(os.stat(home), os.stat(folder.path))
    except OSError:
        at_home = os.path.realpath(home) == folder.path
    if folder.path == "/":
        return "the root folder does not remember hosts"
    return "the home folder does not remember hosts" if at_home else ""
