"""Files that `run` writes when the task has ended: --report and --status-file.

The task may write in the folder where they lie, so a name there is not to be trusted afterwards. The folder is opened
before the task starts; the file is made new beside its final name, never through a link, and renamed over it. Where
that folder no longer bears its name at the end, that is said: what lies there instead is the task's. What is no file
(/dev/stderr, /dev/fd/3, a named pipe) is opened before the task starts and written to.
"""

from __future__ import annotations

import errno
import os
import stat

from tidegate.model.errors import StartError, TidegateError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class OutputFile:
    """A file to be written once, at the end. `option` is how a person named it.

    Raises:
        StartError: from the constructor, when it cannot be written (exit 78: nothing has run yet).
        TidegateError: from `write`, when the disk does not take it, or the task has moved the folder.
    """

    def __init__(self, path: str, option: str) -> None:
        self.path = path
        self._option = option
        self._special = -1
        self._above, self._name = os.path.split(os.path.abspath(path))
        if not self._name or os.path.isdir(path):
            raise StartError(f"{option} {path!r} is a folder", fix=f"{option} FILE")
        try:
            if _is_special(path):
                self._special = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
                os.set_blocking(self._special, True)
                return
            self._folder = os.open(self._above, _DIRECTORY)
            temporary = self._temporary()
            os.close(os.open(temporary, _NEW, 0o600, dir_fd=self._folder))
            os.unlink(temporary, dir_fd=self._folder)
        except OSError as error:
            raise StartError(
                f"{option} {path!r} cannot be written: {_why(error)}", fix=f"{option} FILE elsewhere"
            ) from None

    def write(self, text: str) -> None:
        """Put `text` in place of whatever bears the name now.

        Raises:
            TidegateError: where it cannot be written.
        """
        data = text.encode()
        try:
            if self._special >= 0:
                _write_all(self._special, data)
                return
            temporary = self._temporary()
            fd = os.open(temporary, _NEW, 0o644, dir_fd=self._folder)
            try:
                _write_all(fd, data)
                os.rename(temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            except OSError:
                os.unlink(temporary, dir_fd=self._folder)
                raise
            moved = not os.path.samestat(os.stat(self._above), os.fstat(self._folder))
        except OSError as error:
            raise TidegateError(f"{self._option} {self.path!r} cannot be written: {_why(error)}") from None
        if moved:
            raise TidegateError(
                f"{self._option} {self.path!r}: the folder was moved while the command ran; what is there is not ours"
            )

    def _temporary(self) -> str:
        return f".{self._name[:64]}.{os.getpid()}.{os.urandom(4).hex()}"


def status_text(source: str, status: int, signal: int, what: str) -> str:
    """Return what a status file says: whose exit status it was, and what kept the command from running or ''."""
    from _json import encode_basestring_ascii as quote

    why = f', "what": {quote(what)}' if what else ""
    return f'{{"source": "{source}", "exit": {status}, "signal": {signal or "null"}{why}}}\n'


def check_streams(protected: tuple[str, ...]) -> None:
    """Refuse a protected file as a standard stream: by its descriptor a task could open it again for writing.

    Raises:
        StartError: where one is.
    """
    folders = [os.path.realpath(path) for path in protected]
    for fd, name in enumerate(("input", "output", "error")):
        try:
            path = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue  # closed
        if any(path == folder or path.startswith(folder + "/") for folder in folders):
            raise StartError(
                f"standard {name} is {path!r}, which no task may change, and with its descriptor it could",
                fix="use a pipe: cat FILE | tidegate run ..." if fd == 0 else "write to another file",
                code="streams",
            )


def _is_special(path: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _write_all(fd: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(fd, data) :]
    finally:
        os.close(fd)


def _why(error: OSError) -> str:
    return os.strerror(error.errno or errno.EIO)


def is_file_in_sight(path: str) -> bool:
    """Whether a task could see this file by its name; what is in /dev (/dev/stdin, /dev/null) has none inside."""
    name = os.path.abspath(path)
    return os.path.isfile(path) and (name.startswith("/dev/shm/") or not name.startswith(("/dev/", "/proc/")))  # noqa: S108  not used, only looked for
