"""One stream of HTTP/2 that is read: its ids on both sides, and what of both directions waits (RFC 9113).

Rules of the file: what is looked through for secrets (inspect/clean.py) may come out longer or shorter than it went
in, so the window that its bytes took opens again when all that came of them has gone on (`owed`), and what a coding
makes is taken out only as the other side's window takes it. It knows no connection.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.inspect.clean import CleanBody
    from tidegate.model.seams import Line, Look
    from tidegate.wire.method_fields import MethodFields

    Headers = list[tuple[bytes, bytes]]

_SMALL = 1024  # bytes: what is less waits together, so that frames of a byte cost no object each


class Half:
    """What of one direction of a stream waits for the other side's window."""

    __slots__ = ("cleaned", "ended", "owed", "scrub", "trailers", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.trailers: Headers | None = None
        self.ended = False
        self.scrub: CleanBody | MethodFields | None = None
        self.cleaned = False  # it is looked through, or was
        self.owed = 0  # bytes that came, and whose window is still to open

    def hold(self, data: bytes) -> None:
        """Take bytes that go on as they are."""
        waiting = self.waiting
        if waiting and len(waiting[-1]) < _SMALL:
            waiting[-1] += data
        elif data:
            waiting.append(data)

    def take(self, data: bytes) -> None:
        """Take bytes of the other side.

        Raises:
            WireError: UPSTREAM_RESPONSE where they cannot be read, METHOD_NOT_ALLOWED for what may not be asked.
        """
        self.owed += len(data)
        self.hold(data if self.scrub is None else self.scrub.put(data))

    def look_through(self, scrub: CleanBody | MethodFields | None) -> None:
        """Let what comes go through this."""
        self.scrub = scrub
        self.cleaned = scrub is not None

    def gone(self, moved: int) -> int:
        """Take note that so many bytes have gone on; return how far the window of the other side opens."""
        if self.cleaned:
            moved = 0 if self.waiting or self.pending else self.owed
        moved = min(moved, self.owed)  # what was held back elsewhere (http2_held.py) has opened it before
        self.owed -= moved
        return moved

    @property
    def pending(self) -> bool:
        """Whether `refill` may give more to wait."""
        return self.scrub is not None and self.scrub.pending

    def refill(self) -> None:
        """Take out one more piece of what a coding makes.

        Raises:
            WireError: as `take`.
        """
        if self.scrub is not None:
            self.hold(self.scrub.more())

    def finish(self) -> None:
        """Nothing more comes, and nothing is pending: what was held back goes on.

        Raises:
            WireError: UPSTREAM_RESPONSE where a coding is cut short.
        """
        scrub, self.scrub = self.scrub, None
        if scrub is not None:
            self.hold(scrub.end())


class Stream:
    """`asked` are the fields of the request; `look` is what holds room for its upload, if anything does."""

    __slots__ = (
        "answered", "asked", "client", "down", "interim", "line", "look", "over_down", "over_up", "up", "upstream",
    )  # fmt: skip

    def __init__(self, client: int, upstream: int, line: Line, asked: Headers) -> None:
        self.client = client
        self.upstream = upstream
        self.line = line
        self.asked = asked
        self.up = Half()
        self.down = Half()
        self.look: Look | None = None
        self.answered = False
        self.interim = 0  # bytes of interim answers
        self.over_up = self.over_down = False
