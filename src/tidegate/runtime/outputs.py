"""Files that `run` writes when the task has ended: --report and --status-file.

The task may write in the folder where they lie, so a name there is not to be trusted afterwards. The folder is opened
before the task starts; the file is made new beside its final name, never through a link, and renamed over it.
"""

from __future__ import annotations

import errno
import os

from tidegate.model.errors import StartError, TidegateError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class OutputFile:
    """A file to be written once, at the end. `option` is how a person named it.

    Raises:
        StartError: from the constructor, when its folder cannot be written (exit 78: nothing has run yet).
        TidegateError: from `write`, when the disk does not take it.
    """

    def __init__(self, path: str, option: str) -> None:
        self.path = path
        self._option = option
        folder, self._name = os.path.split(os.path.abspath(path))
        if not self._name or os.path.isdir(path):
            raise StartError(f"{option} {path!r} is a folder", fix=f"{option} FILE")
        try:
            self._folder = os.open(folder, _DIRECTORY)
            temporary = self._temporary()
            os.close(os.open(temporary, _NEW, 0o600, dir_fd=self._folder))
            os.unlink(temporary, dir_fd=self._folder)
        except OSError as error:
            why = os.strerror(error.errno or errno.EIO)
            raise StartError(f"{option} {path!r} cannot be written: {why}", fix=f"{option} FILE elsewhere") from None

    def write(self, text: str) -> None:
        """Put `text` in place of whatever bears the name now."""
        temporary = self._temporary()
        try:
            fd = os.open(temporary, _NEW, 0o644, dir_fd=self._folder)
            try:
                data = text.encode()
                while data:
                    data = data[os.write(fd, data) :]
            finally:
                os.close(fd)
            os.rename(temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError as error:
            why = os.strerror(error.errno or errno.EIO)
            raise TidegateError(f"{self._option} {self.path!r} cannot be written: {why}") from None

    def _temporary(self) -> str:
        return f".{self._name[:64]}.{os.getpid()}.{os.urandom(4).hex()}"
