"""Heads of answers that differ only in values which nobody here reads: what was judged is not judged again (GAT-4).

A server sends the same fields in the same order, and of their values the gate reads few: those that say where the
message and the connection end, and where an answer leads. Of all others (Date, ETag, an id of the request, …) it wants
to know that they are made of bytes that may stand in a field, and passes them on.

Rules of the file:

* A shape is made of one head that was read in full and of what was made of it. What it says of another head is what the
  full way says, or it says nothing: a line that is not as it was has to begin with the same name in the same spelling,
  its value has to stand as it is sent on (one space before it, none behind it), and its bytes are judged anew. The
  status line is as it was.
* A value that is read (`_READ`) is as it was. A Content-Length alone may be another number, in its plainest form.

What it does not do: it finds no end of a head, and knows no bound of its size; both are judged before it is asked.
"""

from __future__ import annotations

from tidegate.wire.framing import Framing, Kind
from tidegate.wire.grammar import FIELD, OWS

_READ = frozenset((b"connection", b"content-length", b"transfer-encoding", b"location", b"upgrade", b"trailer"))
_LENGTH = b"content-length"
_MOST_DIGITS = 18  # each number of so many fits into 63 bits


class HeadShape:
    """What is the same in heads of one shape: their lines, and where each of them stands in what is sent on.

    `framing` is that of the last head.
    """

    __slots__ = ("_begins", "_last", "_length_at", "_out", "_places", "framing")

    def __init__(self, raw: bytes, out: bytes, framing: Framing) -> None:
        """Learn from a head that was read: `raw` came, `out` is what was sent on.

        Raises:
            ValueError: when `out` is more than lines of `raw`.
        """
        lines = raw[:-4].split(b"\r\n")
        kept = out[:-4].split(b"\r\n")
        self.framing = framing
        self._last = lines
        self._out = [*kept, b"", b""]
        self._begins: list[bytes | None] = [None]  # what a line has to begin with where it is another; None: it may not
        self._places = [0]  # of the lines in `out`; 0 for one that stays behind
        self._length_at = 0
        place = 1
        for at, line in enumerate(lines[1:], 1):
            name, _, value = line.partition(b":")
            value = value.strip(OWS)
            sent = place < len(kept) and kept[place] == b"%b: %b" % (name, value)
            self._places.append(place if sent else 0)
            place += sent
            lower = name.lower()
            may = lower not in _READ
            if lower == _LENGTH and sent and framing.kind is Kind.LENGTH:
                self._length_at = at
                may = True
            self._begins.append(name + b": " if may else None)
        if place != len(kept):
            raise ValueError("what is sent on has lines of its own")

    def again(self, raw: bytes) -> bytes | None:
        """Return what is sent on for another head, and note its `framing`; None where it has to be read in full.

        `raw` ends with the first blank line in it.
        """
        lines, last = raw[:-4].split(b"\r\n"), self._last
        if len(lines) != len(last):
            return None
        out, framing = self._out.copy(), self.framing
        for at, line in enumerate(lines):
            if line == last[at]:
                continue
            begin = self._begins[at]
            if begin is None or not line.startswith(begin) or line.translate(None, FIELD):
                return None
            value = line[len(begin) :]
            if not value or value[0] in OWS or value[-1] in OWS:
                return None
            if at == self._length_at:
                if not value.isdigit() or len(value) > _MOST_DIGITS or (value[0] == 0x30 and len(value) > 1):
                    return None
                framing = Framing(Kind.LENGTH, int(value))
            if self._places[at]:
                out[self._places[at]] = line
        self._last, self._out, self.framing = lines, out, framing
        return b"\r\n".join(out)
