"""Whether an action log is what was written (JRN-2): every change, gap, swap, cut tail or forged line, and where.

Rules of the file:

* A line is known by its seal, its place by its number and by the hash of the line before. One thing that is wrong is
  one finding: what follows from it alone is not named again.
* The log is read once, line by line, and at most `MAX_FINDINGS` are kept; the rest is counted.
* It takes no lock, so it may be run beside a server: what is being written at the end is left aside.

What it cannot show: what someone did who has the key, and the loss of lines that are younger than the sealed head
(a crash of the machine can lose those that were not durable; they show as cut when the head was written).
"""

from __future__ import annotations

import os

from tidegate.journal.chain import GENESIS, read_line
from tidegate.journal.files import NoFileError, open_regular
from tidegate.journal.heads import newest_head, read_key
from tidegate.journal.segments import first_of, segments
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.journal.chain import Head

MAX_FINDINGS = 100
_ANY = 1 << 62  # as many lines as there may have been in what is no file


class Finding(Value):
    """One thing that is wrong. `file` is a path; `line` counts from 1, 0 where it is the file as a whole."""

    file: str
    line: int
    what: str


class Verified(Value):
    """What a look at a whole log found.

    `lines` were read, `more` findings did not fit; `head` is the sealed head's number, 0 where there is none.
    `unfinished` says that the last line is not whole: it is being written, or a crash tore it.
    """

    findings: tuple[Finding, ...]
    more: int
    lines: int
    head: int
    unfinished: bool

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


def verify(folder: str, keys: str) -> Verified:
    """Look at a whole log.

    Raises:
        StartError: when there is no key to look with.
        OSError: when a file cannot be read; what is no file at all is a finding.
    """
    key = read_key(keys)
    while True:
        # The head first: what is written meanwhile only adds to it.
        head = newest_head(keys, key)
        paths = segments(folder)
        look = _Look(key, head)
        try:
            for path in paths:
                look.segment(path)
        except FileNotFoundError:
            continue  # a server began a new file and dropped the oldest
        if segments(folder) == paths:
            break
    look.end(paths[-1] if paths else folder)
    return Verified(tuple(look.findings), look.more, look.lines, head.seq if head else 0, look.unfinished)


class _Look:
    def __init__(self, key: bytes, head: Head | None) -> None:
        self.findings: list[Finding] = []
        self.more = 0
        self.lines = 0
        self.unfinished = False
        self._key = key
        self._head = head
        self._begin = head.first if head is not None else 1
        self._seen = self._begin - 1  # the highest number so far
        self._hash = head.first_prev if head is not None else GENESIS  # of that line
        self._bad = 0  # lines since then that are not ours
        self._last = 0  # the last line of the last file
        self._at_head = ""  # the hash of the line that the head names

    def segment(self, path: str) -> None:
        """Read one file, or say that what stands there is none: which lines it had, nobody can tell then."""
        try:
            self._file(path)
        except NoFileError as error:
            self._found(path, 0, str(error.strerror))
            self._bad = _ANY
            self._last = 0

    def _file(self, path: str) -> None:
        named = first_of(os.path.basename(path))
        ours = number = 0
        already, more = len(self.findings), self.more
        with open_regular(path) as file:
            for number, raw in enumerate(file, 1):
                if not raw.endswith(b"\n"):
                    self.unfinished = True
                    number -= 1  # noqa: PLW2901 - it is none
                    break
                self.lines += 1
                ours += self._line(path, number, raw[:-1], named if number == 1 else 0)
        self._last = number
        if number > 1 and not ours:
            del self.findings[already:]
            self.more = more
            self._found(path, 0, f"none of its {number} lines is sealed with this log's key: the file was replaced")

    def end(self, path: str) -> None:
        """Compare with the sealed head."""
        head = self._head
        if head is None:
            if self.lines:
                self._found(path, 0, "there is no sealed head, which says how far the log reaches: it was removed")
        elif self._seen + self._bad < head.seq:
            what = f"the end was cut: the sealed head is line {head.seq}, the last one here is {self._seen}"
            self._found(path, self._last, what)
        elif self._at_head and self._at_head != head.hash:
            self._found(path, self._last, f"line {head.seq} is not the one that the sealed head names")

    def _line(self, path: str, number: int, raw: bytes, named: int) -> bool:
        line = read_line(raw, self._key)
        if line.fields is None:
            self._found(path, number, "changed or forged: its seal is not this log's")
            self._bad += 1
            return False
        seq = line.seq
        if named and seq != named:
            self._found(path, number, f"the file's name says that it begins with line {named}, not {seq}")
        if seq < self._begin:
            return True  # older than what is kept
        if seq <= self._seen:
            self._found(path, number, f"out of its place: line {seq} stands behind line {self._seen}")
            return True
        gap = seq - self._seen - 1
        if gap > self._bad:  # as many may be those that were changed
            lines = f"line {seq - 1} is" if gap == 1 else f"lines {self._seen + 1} to {seq - 1} are"
            self._found(path, number, f"{lines} missing before this one (line {seq})")
        elif not gap and line.fields.get("prev") != self._hash:
            self._found(path, number, f"line {seq} was not written after the one before it")
        self._bad = 0
        self._seen, self._hash = seq, line.hash
        if self._head is not None and seq == self._head.seq:
            self._at_head = line.hash
        return True

    def _found(self, path: str, line: int, what: str) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(Finding(path, line, what))
        else:
            self.more += 1
