"""The action log read on from a position, while others write to it (JRN-6).

Rules of the file:

* It takes no lock and changes nothing. A line counts when its newline is there; what a crash tore at the end is left
  until the writer has set it aside.
* A file that was rotated away is read to its end through the descriptor that is open, even where it was removed.
* Only lines under the log's own seal are passed on. What somebody else put there is no line, and its number is missing.
* Numbers that are missing are never passed over: they come as one gap, with its range, before what follows them.
* A log that is not what was followed (its last line is before our position, or the line there is another one: it was
  begun anew, or a crash of the machine took its end) is said, and read on behind the newest mark that is still in it.
* Memory is bounded by what one `read` is asked for, and one block; nothing is queued.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from tidegate.journal.chain import line_hash, read_line
from tidegate.journal.files import open_regular
from tidegate.journal.segments import LIVE_NAME, backwards, first_of, older_segments, segments
from tidegate.journal.sinks.record import Position, anew, gap, record_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BufferedReader

    from tidegate.journal.sinks.record import Record

BLOCK: Final = 1 << 18  # read at once; a line is far shorter
_LOOKS: Final = 3
_OPENS: Final = b'{"seq":'

Marks = tuple[tuple[int, str], ...]


class Tail:
    """See the head of the file. `key` seals the log; `head` returns the number of its last line, 0 where unknown."""

    def __init__(
        self, folder: str, key: bytes, position: Position, *, head: Callable[[], int], wall: Callable[[], float]
    ) -> None:
        self._folder = folder
        self._key = key
        self._live = os.path.join(folder, LIVE_NAME)
        self._last = position  # what was read last
        self._head = head
        self._wall = wall
        self._file: BufferedReader | None = None
        self._at = 0
        self._marks: Marks = ()
        self._first = 0  # the number of the first line of the file that is open
        self._skipping = False  # behind a block without an end of line
        self._checking = True  # whether the line at our position is the one that we know

    def read(self, most: int, size: int, marks: Marks = ()) -> list[Record]:
        """Return what follows: at most `most` records and about `size` bytes, [] where there is nothing yet.

        `marks` are older positions (keeping.Kept).

        Raises:
            OSError: when a file cannot be read, or is none.
        """
        found: list[Record] = []
        self._marks = marks
        while len(found) < most and size > 0:
            if self._file is None and not self._find():
                break
            over = self._superseded()  # looked at before reading: what is written later is in another file
            read, more = self._block(most - len(found))
            found += read
            size -= sum(len(record.raw) for record in read)
            if more:
                continue
            if not over or not self._go_on():
                break
        return found

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _find(self) -> bool:
        """Open the file that has the next line, or the oldest behind it."""

        def pick(older: list[str]) -> list[str]:
            return [path for path in older if first_of(os.path.basename(path)) <= self._last.seq + 1][-1:] or older[:1]

        return self._opened(pick)

    def _go_on(self) -> bool:
        """Open the file behind the one that is open; False where it is gone in this moment."""
        first = self._first
        return self._opened(lambda older: [path for path in older if first_of(os.path.basename(path)) > first][:1])

    def _opened(self, pick: Callable[[list[str]], list[str]]) -> bool:
        """Open what is picked of the older files, or else the one that is written to.

        That one may be rotated between the look and the opening: then it is not the one behind what was seen.
        """
        for _ in range(_LOOKS):
            older = older_segments(self._folder)
            path = (*pick(older), self._live)[0]
            try:
                self._open(path)
            except FileNotFoundError:
                return False  # rotated or removed in this moment
            if path != self._live or older_segments(self._folder) == older:
                return True
            self.close()
        return False

    def _open(self, path: str) -> None:
        file = open_regular(path)
        self.close()
        self._file, self._at, self._skipping, self._checking = file, 0, False, True
        self._first = first_of(os.path.basename(path)) or _number(os.pread(file.fileno(), 64, 0))

    def _superseded(self) -> bool:
        assert self._file is not None, "a file is open"
        try:
            return not os.path.samestat(os.stat(self._live, follow_symlinks=False), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return False

    def _block(self, most: int) -> tuple[list[Record], bool]:
        """Return the records of one block, and whether there may be more behind it in this file."""
        file = self._file
        assert file is not None, "a file is open"
        fd = file.fileno()
        data = os.pread(fd, BLOCK, self._at)
        if not data:
            if os.fstat(fd).st_size < self._at:
                self._at, self._checking = 0, True  # it was emptied: what is in it now is compared by number and hash
            return [], False
        if not self._first:
            self._first = _number(data)
        end = data.rfind(b"\n")
        if end < 0:
            if len(data) < BLOCK:
                return [], False
            self._at += len(data)
            self._skipping = True
            return [], True
        found: list[Record] = []
        for raw in data[:end].split(b"\n"):
            if len(found) >= most:
                break
            self._at += len(raw) + 1
            if self._skipping:
                self._skipping = False  # the end of what is no line
                continue
            found += self._taken(raw)
            if self._file is not file:
                break  # it is another log
        return found, True

    def _taken(self, raw: bytes) -> list[Record]:
        last = self._last
        seq = _number(raw)
        if seq < last.seq or not seq:
            return []
        if seq == last.seq and not (self._checking and last.hash):
            return []
        line = read_line(raw, self._key)
        record = record_of(line, raw)
        if record is None:
            return []  # its number is missing then, and comes as a gap
        self._checking = False
        if seq == last.seq:
            return [] if last.hash == line.hash else self._begin_anew()
        self._last = Position(seq, record.hash)
        return [gap(last.seq + 1, seq - 1, self._wall()), record] if seq > last.seq + 1 else [record]

    def _begin_anew(self) -> list[Record]:
        before = self._last.seq
        known = (Position(seq, hash_) for seq, hash_ in reversed(self._marks) if seq < before)
        self._last = next((mark for mark in known if self._has(mark)), Position())
        self.close()
        return [anew(before, self._last, self._wall())]

    def look_for_another(self, marks: Marks = ()) -> list[Record]:
        """Return the record of a log that ends before our position, [] where it does not; for a quiet moment.

        The head alone does not say it: a writer writes a line first, and may be killed before it writes its head.
        """
        if not 0 < self._head() < self._last.seq:
            return []
        for path in reversed(segments(self._folder)):
            for raw in backwards(path):
                newest = read_line(raw, self._key).seq
                if newest:
                    self._marks = marks
                    return self._begin_anew() if newest < self._last.seq else []
        return []

    def _has(self, mark: Position) -> bool:
        """Whether this line is in the log."""
        older = [path for path in older_segments(self._folder) if first_of(os.path.basename(path)) <= mark.seq]
        for path in (*older[-1:], self._live):
            try:
                with open_regular(path) as file:
                    for raw in file:
                        number = _number(raw)
                        if number == mark.seq:
                            return line_hash(raw.rstrip(b"\n")) == mark.hash
                        if number > mark.seq:
                            return False
            except FileNotFoundError:
                continue
        return False


def _number(raw: bytes) -> int:
    """Return the number of a line as tidegate writes it, 0 for anything else."""
    digits = raw[len(_OPENS) : len(_OPENS) + 20].partition(b",")[0] if raw.startswith(_OPENS) else b""
    return int(digits) if digits.isdigit() and len(digits) < 19 else 0
