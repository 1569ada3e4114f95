"""A body that is looked through, framed anew as it streams: an answer for values of secrets (INS-5, B118, B119).

Rules of the file:

* What comes out is as long as what went in, so a length that was announced stays true, but where a coding is taken
  off: that is told in chunks, or to a client of HTTP/1.0 by the end of its connection. Chunks are taken apart and made
  anew: a value may lie across their border. Trailers stay behind.
* Nothing is held back but what may be the beginning of a value (inspect/scrub.py), and what a coding makes of a few
  bytes is taken out a piece at a time (`pending`), when the client has taken the one before.
"""

from __future__ import annotations

from tidegate.model.reason import Reason
from tidegate.wire.body import make_body
from tidegate.wire.framing import Kind
from tidegate.wire.http1 import ResponseHead

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.model.seams import Cleaner, Scrub
    from tidegate.wire.body import Span
    from tidegate.wire.framing import Framing
    from tidegate.wire.http1 import RequestHead, Version

TRAILER = frozenset((b"trailer",))
_CHUNKED = (b"Transfer-Encoding", b"chunked")


class CleanedBody:
    """A body of wire/body.py and what looks through it, in chunks where `chunked`."""

    __slots__ = ("_body", "_chunked", "_over", "_scrub")

    def __init__(
        self, framing: Framing, scrub: Scrub, *, chunked: bool, bad: Reason = Reason.UPSTREAM_RESPONSE
    ) -> None:
        self._body = make_body(framing, bad, decode=framing.kind is Kind.CHUNKED)
        self._scrub = scrub
        self._chunked = chunked
        self._over = False  # the end is made

    @property
    def done(self) -> bool:
        """Whether the body is complete, and nothing of it waits."""
        return self._over

    @property
    def pending(self) -> bool:
        """Whether `more` may have something: nothing is fed before."""
        return self._scrub.pending

    def feed(self, data: Span | bytearray) -> tuple[int, list[Span]]:
        """Return the bytes used and the spans to write on; the last ones with what was held back.

        Raises:
            WireError: as the body that it is made of, or where a coding cannot be read.
        """
        used, spans = self._body.feed(data)
        return used, self._framed(self._scrub.feed(b"".join(spans)))

    def more(self) -> list[Span]:
        """Return the spans that come of what was fed before.

        Raises:
            WireError: where a coding cannot be read.
        """
        return self._framed(self._scrub.more())

    def eof(self) -> None:
        """Take note that the peer closed.

        Raises:
            WireError: when bytes of the body are missing.
        """
        self._body.eof()

    def rest(self) -> bytes:
        """Return what was held back of a body that lasted until the peer closed.

        Raises:
            WireError: where a coding is cut short.
        """
        return b"".join(self._framed(b""))

    def _framed(self, clean: bytes) -> list[Span]:
        last = self._body.done and not self._scrub.pending and not self._over
        if last:
            clean += self._scrub.end()
            self._over = True
        if self._chunked:
            clean = (b"%x\r\n%b\r\n" % (len(clean), clean) if clean else b"") + (b"0\r\n\r\n" if last else b"")
        return [clean] if clean else []


def cleaned(
    cleaner: Cleaner, head: ResponseHead, framing: Framing, request: RequestHead
) -> tuple[ResponseHead, CleanedBody | None]:
    """Return the head of a final answer and the body that follows it, None where there is none.

    The head says how that body is framed for a client of HTTP/1.1; see `open_ended` for one of HTTP/1.0.

    Raises:
        WireError: UPSTREAM_RESPONSE where it cannot be read.
    """
    fields, scrub = cleaner.answer(head.status, head.headers, request.headers, empty=framing.empty)
    chunked = scrub is not None and (framing.kind is Kind.CHUNKED or scrub.resized)
    if chunked and framing.kind is not Kind.CHUNKED:
        fields.append(_CHUNKED)
    made = ResponseHead(
        head.status, head.reason, head.version, tuple(fields), tuple(name.lower() for name, _ in fields)
    )
    if scrub is None:
        return made, None
    return made, CleanedBody(framing, scrub, chunked=chunked and _takes_chunks(request.version))


def _takes_chunks(version: Version) -> bool:
    return version != (1, 0)
