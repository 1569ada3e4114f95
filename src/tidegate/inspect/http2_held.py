"""Streams of HTTP/2 whose body is looked at before the destination hears of them (INS-8, INS-5).

Rules of the file: what is held is what a Look holds, which is bounded; its bytes are acknowledged as they come, so that
a client goes on whose window is smaller. What is sent on is what was looked at, with its length and without its coding.
A client that says nothing of it for `BEATS` of whoever has a clock is waited for no more: it holds the room of others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.reason import Reason
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.model.decision import Decision
    from tidegate.model.seams import Guard, Line, Look

    Headers = list[tuple[bytes, bytes]]

BEATS = 4
_OF_THE_BODY = frozenset((b"content-length", b"content-encoding", b"expect", b"content-md5", b"digest"))


class Held:
    """One stream: its headers as they came, its line in the journal, and who looks at it."""

    __slots__ = ("beats", "headers", "line", "look")

    def __init__(self, headers: Headers, line: Line, look: Look) -> None:
        self.beats = 0  # since its client said something of it
        self.headers = headers
        self.line = line
        self.look = look

    @property
    def expects(self) -> bool:
        """Whether its client waits for `100 Continue` (RFC 9110 section 10.1.1)."""
        return any(name == b"expect" and value.lower() == b"100-continue" for name, value in self.headers)

    def with_length(self, size: int) -> Headers:
        """Return the headers for a body of this size."""
        kept = [field for field in self.headers if field[0] not in _OF_THE_BODY]
        return [*kept, (b"content-length", b"%d" % size)]


class HeldStreams:
    """Those of one connection, by the client's number. Without a guard there are none."""

    __slots__ = ("_guard", "_held", "_place")

    def __init__(self, decision: Decision, *guards: Guard | None) -> None:
        destination = decision.destination
        self._place = destination.host.text, destination.port
        covering = (one for one in guards if one is not None and one.covers(*self._place))
        self._guard: Guard | None = next(covering, None)
        self._held: dict[int, Held] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._held)

    def look(self, method: str, pseudo: dict[bytes, bytes], headers: Headers, *, empty: bool) -> Look | None:
        """Begin to look at a request, None where nobody does."""
        if self._guard is None:
            return None
        fields = [field for field in headers if field[0][:1] != b":"]
        socket = b":protocol" in pseudo
        return self._guard.look(self._place, method, pseudo[b":path"], fields, socket=socket, empty=empty)

    def add(self, number: int, held: Held) -> None:
        """Hold one."""
        self._held[number] = held

    def get(self, number: int) -> Held | None:
        """Return a held stream."""
        return self._held.get(number)

    def pop(self, number: int) -> Held | None:
        """Return one that is held no more."""
        return self._held.pop(number, None)

    def silent(self) -> list[tuple[int, Held]]:
        """Take note of a beat; return those whose clients said nothing for too many, held no more."""
        found = []
        for number, held in list(self._held.items()):
            held.beats += 1
            if held.beats > BEATS:
                found.append((number, self._held.pop(number)))
        return found

    def all(self) -> Iterator[tuple[int, Held]]:
        """Yield each, held no more."""
        while self._held:
            yield self._held.popitem()

    def gone(self, number: int, reason: Reason = Reason.CLIENT_GONE) -> bool:
        """The client gave one up; whether it was held."""
        held = self.pop(number)
        if held is not None:
            held.look.let_go()
            held.line.write(How.REFUSED, reason)
        return held is not None
