"""The action log: one chain of lines that joins all tasks, and its writer (JRN-2, JRN-5).

    <folder>/actions.jsonl             what is written to (segments.py has the others)
    <folder>/actions.torn              what a crash left of a last line
    <folder>/actions.lock              held while a line is written (file_lock.py)
    <keys>/actions.key, actions.head   where no task can read (heads.py)

Rules of the file:

* A server and runs beside it write to one chain: each holds the lock for one line, and goes on behind what others
  wrote meanwhile. Who is kept out for too long loses the line, counted. `append` may be called from any thread.
* A line is written, then the head. A crash between them leaves a sealed line that the next start takes up; a crash
  in the middle of a line leaves a torn one, which the next start sets aside, and the chain goes on.
* What cannot be written is counted and becomes a `journal.lost` line once the disk takes lines again: no task is
  stopped by it. A `durable` line is on the disk before `append` returns, or it raises: an answer that cannot be saved
  refuses.
* What is found wrong at the start (a tail that was cut, a last line that is not ours) is said, stands in the log
  from then on, and stays visible to `verify`. It is never mended in silence.
"""

from __future__ import annotations

import errno
import os
import threading

from tidegate.journal.chain import Head, make_line, read_line
from tidegate.journal.file_lock import FileLock
from tidegate.journal.files import open_regular, require_regular
from tidegate.journal.heads import HeadFile, make_key, newest_head, read_key
from tidegate.journal.segments import LIVE_NAME, LOCK_NAME, TORN_NAME, backwards, older_segments, segment_name
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tidegate.journal.chain import SealedLine

MAX_BYTES = 64 * 1024 * 1024  # of one file: about 150,000 lines
KEPT = 15  # older files: a gigabyte in all
_TAIL = 1 << 20  # read back to find the last line, which is far shorter
_PATIENCE = 1.0  # seconds for which another process may hold the lock: it holds it for one line
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class ActionLog:
    """See the head of the file. `clock` gives Unix time in seconds; `warn` gets one line for a person.

    Raises:
        StartError: from the constructor, when the log, its key or its folder cannot be used.
    """

    def __init__(
        self,
        folder: str,
        keys: str,
        *,
        clock: Callable[[], float],
        warn: Callable[[str], None],
        max_bytes: int = MAX_BYTES,
        kept: int = KEPT,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._warn = warn
        self._max_bytes = max_bytes
        self._kept = kept
        self._lock = threading.Lock()
        self._lost = 0
        self._why = ""
        self._path = os.path.join(folder, LIVE_NAME)
        self._keys = keys
        self._fd = self._size = -1
        self._heads: HeadFile | None = None
        self._beside = _open_lock(folder)
        try:
            self._beside.take(_PATIENCE)
            self._fd = _open(self._path)
            self._size = os.fstat(self._fd).st_size
            empty = not self._size and not older_segments(folder)
            self._key = make_key(keys) if empty else read_key(keys)
            self._heads = HeadFile(keys, self._key)
            self._head = newest_head(keys, self._key) or Head()
            self._take_up()
            self._beside.give()
        except OSError as error:
            self.close()
            raise StartError(
                f"the action log in {folder!r} cannot be used: {os.strerror(error.errno or errno.EIO)}",
                fix="see that the disk has room and that the folder is yours",
                code="journal",
            ) from None
        except BaseException:
            self.close()
            raise

    @property
    def head(self) -> Head:
        """Return how far the log reaches."""
        return self._head

    def append(self, kind: str, task: str = "", *, durable: bool = False, **fields: Any) -> int:
        """Write one line and return its number, 0 where it was lost and counted.

        Raises:
            OSError: when it is to be durable and is not; it is not in the log then.
            ValueError, TypeError: as `chain.make_line`.
        """
        with self._lock:
            try:
                # Once lines are lost, nobody is held up again until the lock is free.
                self._beside.take(0 if self._lost and not durable else _PATIENCE)
                try:
                    self._go_on()
                    if self._lost:
                        self._add("journal.lost", "", {"count": self._lost, "why": self._why})
                        self._lost = 0
                    return self._add(kind, task, fields, durable=durable)
                finally:
                    self._beside.give()
            except OSError as error:
                if durable:
                    raise
                self._failed(error)
                return 0

    def close(self) -> None:
        """Let go of the files. No call may follow."""
        with self._lock:
            self._beside.close()
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
            if self._heads is not None:
                self._heads.close()
                self._heads = None

    def _add(self, kind: str, task: str, fields: dict[str, Any], *, durable: bool = False) -> int:
        assert self._heads is not None, "the log is closed"
        if self._size >= self._max_bytes:
            self._rotate(self._heads)
        line, head = make_line(self._head, self._key, self._clock(), kind, task, fields)
        try:
            _write_whole(self._fd, line)
            if durable:
                os.fdatasync(self._fd)
        except OSError:
            os.ftruncate(self._fd, self._size)  # to the last whole line
            raise
        self._size += len(line)
        self._head = head
        self._heads.write(head)
        return head.seq

    def _failed(self, error: OSError) -> None:
        self._why = errno.errorcode.get(error.errno or errno.EIO, "EIO")
        if not self._lost:
            self._warn(f"the action log {self._path} cannot be written ({self._why}); lines are lost until it can")
        self._lost += 1

    def _rotate(self, heads: HeadFile) -> None:
        try:
            first = self._first_line(self._path).seq or 1  # it is not 0 but where someone else wrote it
            fd = _open(f"{self._path}.new")
            os.rename(self._path, os.path.join(self._folder, segment_name(first)))
            os.rename(f"{self._path}.new", self._path)
        except (OSError, StartError):
            self._max_bytes += MAX_BYTES  # a log over its bound is better than a lost one; asked again after as much
            return
        os.close(self._fd)
        self._fd, self._size = fd, 0
        older = older_segments(self._folder)
        if len(older) > self._kept:
            oldest = self._first_line(older[-self._kept])
            if oldest.fields is not None:
                self._head = self._head.replace(first=oldest.seq, first_prev=oldest.fields["prev"])
                heads.write(self._head)  # before they are gone: what is missing from there on was taken
            for path in older[: -self._kept]:
                os.unlink(path)

    def _first_line(self, path: str) -> SealedLine:
        with open_regular(path) as file:
            return read_line(file.readline().rstrip(b"\n"), self._key)

    def _go_on(self) -> None:
        """See whether another process has written, or begun a new file, and go on behind that."""
        try:
            there = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            there = None  # somebody took it away
        found = os.fstat(self._fd)
        if there is None or not os.path.samestat(there, found):
            try:
                fd = _open(self._path)
            except StartError as error:
                raise OSError(errno.EIO, error.what) from None
            os.close(self._fd)
            self._fd, self._size, found = fd, -1, os.fstat(fd)
        if found.st_size != self._size:
            self._size = found.st_size
            self._head = newest_head(self._keys, self._key) or self._head
            self._take_up()

    def _take_up(self) -> None:
        """Find the last line, and put into the log what is not as it was left."""
        torn = self._set_torn_aside()
        found, path, foreign = self._last_line()
        head = self._head
        if found is not None and found.seq >= head.seq:
            foreign |= found.seq == head.seq and found.hash != head.hash
            self._head = head.replace(seq=found.seq, hash=found.hash)
        elif head.seq:
            self._note("journal.cut", f"lines are missing at the end of {path}", upto=head.seq)
        if foreign:
            self._note("journal.broken", f"the end of {path} is not what tidegate wrote")
        if torn:
            self._note("journal.torn", f"a torn last line of {self._path} was set aside", bytes=torn)

    def _note(self, kind: str, text: str, **fields: Any) -> None:
        self._warn(text if kind == "journal.torn" else f"{text}: see tidegate log verify")
        try:
            self._add(kind, "", fields)
        except OSError as error:
            self._failed(error)

    def _last_line(self) -> tuple[SealedLine | None, str, bool]:
        """Return the last line that is ours, the file it is in, and whether lines of someone else stand behind it."""
        foreign = False
        for path in (self._path, *reversed(older_segments(self._folder))):
            left = _TAIL
            for raw in backwards(path):
                line = read_line(raw, self._key)
                if line.fields is not None:
                    return line, path, foreign
                foreign = True
                left -= len(raw) + 1
                if left < 0:
                    break
        return None, self._path, foreign

    def _set_torn_aside(self) -> int:
        """Cut what stands behind the last newline, keep it in a file beside, and return its length."""
        if not self._size or os.pread(self._fd, 1, self._size - 1) == b"\n":
            return 0
        start = max(0, self._size - _TAIL)
        tail = os.pread(self._fd, self._size - start, start)
        torn = tail[tail.rfind(b"\n") + 1 :]
        if torn:
            try:
                fd = os.open(os.path.join(self._folder, TORN_NAME), _APPEND, 0o600)
                with open(fd, "ab") as file:
                    file.write(torn + b"\n")
            except OSError:
                pass  # a full disk: the chain goes on all the same
            self._size -= len(torn)
            os.ftruncate(self._fd, self._size)
        return len(torn)


def _write_whole(fd: int, data: bytes) -> None:
    if os.write(fd, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _open(path: str) -> int:
    try:
        fd = os.open(path, _APPEND, 0o600)
        try:
            require_regular(fd, path)
        except OSError:
            os.close(fd)
            raise
    except OSError as error:
        raise _cannot(path, error) from None
    return fd


def _open_lock(folder: str) -> FileLock:
    path = os.path.join(folder, LOCK_NAME)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return FileLock(path)
    except OSError as error:
        raise _cannot(path, error) from None


def _cannot(path: str, error: OSError) -> StartError:
    why = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
    return StartError(
        f"the action log {path!r} cannot be opened: {why}", fix="see that its folder is yours", code="journal"
    )
