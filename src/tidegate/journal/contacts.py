"""Reading what tasks did, from a `network.jsonl` with its rotated older files or from a `--report` (JRN-7).

Rules of the file:

* Nothing is read whole but a report, which is small and bounded: a log of a gigabyte costs the memory of one line.
* Who reads on must be able to believe it. A line that is none is an error with its number, and so is one that says
  something a gate never says. Only the last line of the newest file may be torn, and that is said.
* What the file itself says is missing is counted: lines that a full disk lost, kinds that did not fit a report,
  refusals that a flood folded into one.
* A symbolic link, a pipe or a device is no record. The newest file is opened first, so that a rotation meanwhile makes
  nothing come twice.

What it does not do: a `network.jsonl` carries no seals, so a change that leaves lines whole does not show. The action
log does (`tidegate log verify`), and it has each refusal too.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import ExitStack

from tidegate.journal.files import open_regular
from tidegate.journal.tasklog import KEPT
from tidegate.model.contact import Contact
from tidegate.model.errors import UsageError
from tidegate.model.verdict import How, Phase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from typing import Any

MAX_LINE = 64 * 1024  # bytes; a gate's are about 400, and a path in one has at most some thousand
MAX_REPORT = 16 * 1024 * 1024  # bytes; a report has at most 200 kinds
_MOST = 1 << 53  # of a count: what every reader of JSON keeps exactly
_LONGEST = 4096  # characters of a text in a line
_PHASES = {phase.value: phase for phase in Phase}
_HOWS = {how.value: how for how in How}
_TIME = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z")
_LOST = "journal.lost"
_TYPES = ("net.connection", _LOST)
_OTHERS = "*"  # the host of what a flood folded


class Record:
    """One record: iterate `contacts()`, once and to its end, then look at what it had to say beside them.

    `lines` are connections' lines, `lost` connections that are not on record, `folded` refusals whose host is not on
    record, `torn` whether the last line was not whole, `alive` whether a gate still writes it, `owner` the uid it
    belongs to, `files` how many it was made of. `rotated` says that older files may stand beside it, `PATH.1` and so
    on, as beside a task's own record; a file that a person named with --log is never rotated, and what stands there is
    not ours.
    """

    def __init__(self, path: str, *, rotated: bool = True) -> None:
        self.path = path
        self._older = KEPT if rotated else 0
        self.lines = self.lost = self.folded = self.files = self.owner = 0
        self.torn = self.alive = False

    @property
    def empty(self) -> bool:
        """Whether it had no connection at all."""
        return not (self.lines or self.lost or self.folded)

    @property
    def cut(self) -> bool:
        """Whether older lines may be gone: there are as many rotated files as are kept."""
        return self.files > KEPT

    def contacts(self) -> Iterator[Contact]:
        """Yield what the record has, in its order; refusals that a flood folded are only counted.

        Raises:
            UsageError: for what is no record, or cannot be read as a file.
        """
        with ExitStack() as stack:
            opened = _opened(self.path, self._older, stack)
            newest = opened[-1][1]
            self.files = len(opened)
            self.owner = os.fstat(newest.fileno()).st_uid
            self.alive = _is_written(newest.fileno())
            for path, file in opened:
                if file is newest and _is_report(file):
                    yield from self._report(path, file)
                else:
                    yield from self._log(path, file, newest=file is newest)

    def _log(self, path: str, file: BufferedReader, *, newest: bool) -> Iterator[Contact]:
        number = 0
        while True:
            raw = file.readline(MAX_LINE + 1)
            if not raw:
                return
            number += 1
            if len(raw) > MAX_LINE:
                raise _wrong(path, number, f"a line over {MAX_LINE >> 10} KiB")
            try:
                said = json.loads(raw)
            except (ValueError, RecursionError):
                if newest and not raw.endswith(b"\n"):
                    self.torn = True
                    return
                raise _wrong(path, number, "this is not JSON") from None
            if not isinstance(said, dict) or said.get("type") not in _TYPES:
                raise _wrong(path, number, "this is no line of a task's record")
            try:
                if said["type"] == _LOST:
                    self.lost += _number(said, "count", 1, _MOST)
                else:
                    yield from self._taken(said, timed=True)
            except _OddError as error:
                raise _wrong(path, number, error.what) from None

    def _report(self, path: str, file: BufferedReader) -> Iterator[Contact]:
        data = file.read(MAX_REPORT + 1)
        if len(data) > MAX_REPORT:
            raise UsageError(f"{path!r} is no record: one JSON value over {MAX_REPORT >> 20} MiB", fix=_FIX)
        try:
            said = json.loads(data)
        except RecursionError:
            raise UsageError(f"{path!r} is no record: it nests too deep", fix=_FIX) from None
        except ValueError as error:
            raise _wrong(path, getattr(error, "lineno", 1), "this is not JSON") from None
        rows = said.get("connections") if isinstance(said, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise _wrong(path, 1, "this is no report: it has no list of 'connections'")
        try:
            self.lost += _number(said, "more", 0, _MOST)
        except _OddError as error:
            raise _wrong(path, 1, error.what) from None
        for at, row in enumerate(rows, 1):
            try:
                yield from self._taken(row, timed=False)
            except _OddError as error:
                raise UsageError(f"{path}: connection {at}: {error.what}", fix=_FIX) from None

    def _taken(self, said: dict[str, Any], *, timed: bool) -> Iterator[Contact]:
        contact = _contact(said, timed=timed)
        if contact.host == _OTHERS and not contact.port:
            self.folded += contact.count
        else:
            self.lines += 1
            yield contact


class _OddError(ValueError):
    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


_FIX = "name a task's network.jsonl, a file of 'run --report', or a task's id"


def _wrong(path: str, line: int, what: str) -> UsageError:
    return UsageError(f"{path}:{line}: {what}", fix=_FIX)


def _contact(said: dict[str, Any], *, timed: bool) -> Contact:
    phase, how = _PHASES.get(_text(said, "phase")), _HOWS.get(_text(said, "how"))
    if phase is None:
        raise _OddError("'phase' is none that there is")
    if how is None:
        raise _OddError("'how' is none that there is")
    return Contact(
        _time(_text(said, "at")) if timed else "",
        phase,
        _text(said, "host"),
        _number(said, "port", 0, 65535),
        how,
        _text(said, "reason"),
        _text(said, "name"),
        _text(said, "source"),
        _text(said, "address") if timed else "",
        _text(said, "method") if timed else "",
        _number(said, "count", 1, _MOST) if "count" in said or not timed else 1,
    )


def _text(said: dict[str, Any], field: str) -> str:
    value = said.get(field)
    if type(value) is not str or len(value) > _LONGEST:
        raise _OddError(f"'{field}' is missing, no text, or too long")
    return value


def _number(said: dict[str, Any], field: str, least: int, most: int) -> int:
    value = said.get(field)
    if type(value) is not int or not least <= value <= most:
        raise _OddError(f"'{field}' is missing, or no number from {least} to {most}")
    return value


def _time(text: str) -> str:
    # What it says is copied into files and terminals: nothing but a time gets through.
    if not _TIME.fullmatch(text):
        raise _OddError("'at' is no time")
    return text


def _opened(path: str, older: int, stack: ExitStack) -> list[tuple[str, BufferedReader]]:
    """Open a record and the older files beside it; oldest first."""
    found: list[tuple[str, BufferedReader]] = []
    seen: set[tuple[int, int]] = set()
    try:
        for number in range(older + 1):
            name = f"{path}.{number}" if number else path
            if number and not os.path.lexists(name):
                break
            file = stack.enter_context(open_regular(name))
            place = os.fstat(file.fileno())
            if (place.st_dev, place.st_ino) in seen:
                continue
            seen.add((place.st_dev, place.st_ino))
            found.insert(0, (name, file))
    except OSError as error:
        raise UsageError(f"{error.filename!r} cannot be read: {error.strerror}", fix=_FIX) from None
    return found


def _is_written(fd: int) -> bool:
    """Whether a gate has its lock on the file. Looked up and not tried: a lock of ours could stop one that begins."""
    try:
        with open("/proc/locks", encoding="ascii") as file:
            mine = f":{os.fstat(fd).st_ino}"
            return any(" FLOCK " in line and line.split()[5].endswith(mine) for line in file)
    except (OSError, IndexError):
        return False


def _is_report(file: BufferedReader) -> bool:
    """Whether this is one value over several lines, as a report is: its first line is none of a log."""
    first = file.readline(MAX_LINE + 1)
    file.seek(0)
    if not first.lstrip().startswith(b"{") or len(first) > MAX_LINE:
        return False
    try:
        said = json.loads(first)
    except (ValueError, RecursionError):
        return first.strip() == b"{"
    return isinstance(said, dict) and "connections" in said and "type" not in said
