"""An empty folder and an empty file to be put over things, and the place where such work is done.

The place is a file system of our own on the machine's /dev, which the task's /dev will cover in the end: what is
mounted there is in the namespace, and never in sight. (Before Linux 6.15 only what is mounted somewhere can be cloned.)
"""

from __future__ import annotations

import os

from tidegate.holds import mounts

WORKSHOP = "/dev"


class Masks:
    """The two originals; each use is a clone of one. It takes /dev: nodes of the machine's must be taken before."""

    def __init__(self) -> None:
        nothing = mounts.clone("/dev/null", recursive=False)
        mounts.attach(mounts.new_file_system("tmpfs", (("mode", "700"),)), WORKSHOP)
        self._folder = f"{WORKSHOP}/empty-folder"
        self._file = f"{WORKSHOP}/empty-file"
        os.mkdir(self._folder)
        empty = mounts.new_file_system("tmpfs", (("mode", "555"),), mounts.INERT | mounts.READ_ONLY)
        mounts.attach(empty, self._folder)
        os.close(os.open(self._file, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        mounts.attach(nothing, self._file)

    def empty(self, *, folder: bool) -> int:
        """A detached copy of the empty folder or file."""
        return mounts.clone(self._folder if folder else self._file, recursive=False)

    def cover(self, path: str, *, folder: bool) -> None:
        """Put the empty folder or the empty file over `path`; a last symlink is itself covered.

        No other part of `path` may be a symlink: another task could have put it there.
        """
        mounts.attach_real(self.empty(folder=folder), path)
