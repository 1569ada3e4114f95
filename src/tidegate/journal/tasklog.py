"""One task's `network.jsonl`: whole lines only, whatever the disk does (JRN-1, JRN-5, B70).

Rules of the file:

* `record` collects, `flush` writes: one write call for all lines of one turn of the reactor.
* A write that fails or is cut short is undone to the last whole line, so the file is always valid JSON lines. What
  could not be written is counted, said once on standard error, and becomes a `journal.lost` line when the disk
  takes lines again. A task is never stopped by its log.
* The file is private (0600), never followed through a symlink, and rotated at `MAX_BYTES`: at most `KEPT` older
  files stay beside it, so one task's record is bounded.

It does not fsync each line: what the kernel has survives the gate's death, though not the machine's.
"""

from __future__ import annotations

import errno
import fcntl
import os

from tidegate.journal.fold import Fold
from tidegate.journal.line import line_of, lost_line
from tidegate.model.errors import StartError
from tidegate.model.verdict import How

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.model.event import Event

MAX_BYTES = 64 * 1024 * 1024  # about 150,000 lines
UNBOUNDED = 1 << 62
KEPT = 3
_MAX_BUFFER = 256 * 1024  # written at once even inside a turn
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class TaskLog:
    """A Recorder that writes one task's log. `warn` gets one line when the disk first refuses one.

    `also` is told of each event that becomes a line: refusals as they are folded.

    Raises:
        StartError: from the constructor, when the file cannot be opened.
    """

    def __init__(
        self,
        path: str,
        task: str,
        *,
        clock: Callable[[], float],
        warn: Callable[[str], None],
        max_bytes: int = MAX_BYTES,
        also: Callable[[Event], None] | None = None,
    ) -> None:
        self.path = path
        self._task = task
        self._clock = clock
        self._warn = warn
        self._max_bytes = max_bytes
        self._also = also
        self._fold = Fold()
        self._lines: list[bytes] = []
        self._waiting = 0
        self._lost = 0
        self._why = ""
        self._fd = open_log(path)
        self._size = os.fstat(self._fd).st_size

    def record(self, event: Event) -> None:
        """Take one event; refusals may be folded."""
        if event.how is How.REFUSED:
            for written in self._fold.take(event):
                self._add(written)
        else:
            self._add(event)

    def _add(self, event: Event) -> None:
        if self._also is not None:
            self._also(event)
        line = line_of(event)
        self._lines.append(line)
        self._waiting += len(line)
        if self._waiting >= _MAX_BUFFER:
            self.flush()

    def flush(self) -> None:
        """Write what was recorded. Never raises."""
        lines, self._lines, self._waiting = self._lines, [], 0
        if not lines:
            return
        if self._lost:
            lines.insert(0, lost_line(self._clock(), self._task, self._lost, self._why))
        if self._write(b"".join(lines)):
            self._lost = 0
        else:
            self._lost += len(lines) - (1 if self._lost else 0)

    def tick(self) -> None:
        """Write the counts of folded refusals whose time has come. Called about once a second."""
        for event in self._fold.due(self._clock()):
            self._add(event)
        self.flush()

    def close(self) -> None:
        """Write everything that waits and close the file."""
        for event in self._fold.rest():
            self._add(event)
        self.flush()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, data: bytes) -> bool:
        if self._size and self._size + len(data) > self._max_bytes:
            self._rotate()
        try:
            written = os.write(self._fd, data)
        except OSError as error:
            return self._failed(errno.errorcode.get(error.errno or 0, "EIO"))
        if written == len(data):
            self._size += written
            return True
        try:
            # O_APPEND leaves the offset behind what was written: another run may write to the same file.
            end = os.lseek(self._fd, 0, os.SEEK_CUR)
            if os.fstat(self._fd).st_size != end:
                raise BlockingIOError  # its line stands behind ours already
            os.ftruncate(self._fd, end - written)
        except OSError:
            # A pipe or device as --log cannot be cut; the reader sees one torn line.
            self._size += written
        return self._failed("ENOSPC")

    def _failed(self, why: str) -> bool:
        if not self._lost:
            self._warn(f"the journal {self.path} cannot be written ({why}); lines are lost until it can")
        self._why = why
        return False

    def _rotate(self) -> None:
        try:
            for number in range(KEPT, 1, -1):
                older = f"{self.path}.{number - 1}"
                if os.path.lexists(older):
                    os.rename(older, f"{self.path}.{number}")
            os.rename(self.path, f"{self.path}.1")
            fresh = open_log(self.path)
        except (OSError, StartError):
            # Keep the old descriptor: a log over its bound is better than a lost one. Ask again after as much more.
            self._max_bytes += MAX_BYTES
            return
        os.close(self._fd)
        self._fd, self._size = fresh, 0


def open_log(path: str) -> int:
    """Open a log to append to it, made where it is not there, and return its descriptor.

    Raises:
        StartError: when it cannot be opened, is a symbolic link, or has other names, by which a task could write it.
    """
    try:
        fd = os.open(path, _FLAGS, 0o600)
        # Shared, since two runs may name one --log: it tells the sweep that someone still writes here.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        why = "it is a symbolic link" if error.errno == errno.ELOOP else os.strerror(error.errno or errno.EIO)
        raise StartError(
            f"the journal {path!r} cannot be opened: {why}", fix="name another with --log FILE", code="journal"
        ) from None
    if os.fstat(fd).st_nlink > 1:
        os.close(fd)
        raise StartError(
            f"the journal {path!r} has another name (a hard link), by which a task could write it",
            fix="name another with --log FILE",
            code="journal",
        )
    return fd
