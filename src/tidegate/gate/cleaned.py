"""The body of an answer in which values of secrets become stand-ins again, as it streams (INS-5, B118, B119).

Rules of the file:

* What comes out is as long as what went in, so a length that was announced stays true. Chunks are taken apart and made
  anew: a value may lie across their border. Trailers stay behind.
* Nothing is held back but what may be the beginning of a value (inspect/scrub.py).
* A coded body cannot be looked at: it was asked for without any coding, and one that comes all the same is refused.
"""

from __future__ import annotations

from tidegate.model.reason import Reason
from tidegate.wire.body import make_body
from tidegate.wire.errors import WireError
from tidegate.wire.framing import Kind
from tidegate.wire.grammar import list_members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.model.seams import Scrubber
    from tidegate.wire.body import Span
    from tidegate.wire.framing import Framing
    from tidegate.wire.http1 import ResponseHead

TRAILER = frozenset((b"trailer",))


def need_plain(head: ResponseHead) -> None:
    """See that the body is as it was meant, without a coding.

    Raises:
        WireError: UPSTREAM_RESPONSE where it is not.
    """
    if any(coding != b"identity" for coding in list_members(head.values(b"content-encoding"))):
        raise WireError(Reason.UPSTREAM_RESPONSE, "it is compressed, which was not asked for")


class CleanedBody:
    """A body of wire/body.py and what looks through it. `decode` as there; else chunks stay chunks."""

    __slots__ = ("_body", "_chunked", "_scrub")

    def __init__(self, framing: Framing, scrubber: Scrubber, *, decode: bool) -> None:
        chunked = framing.kind is Kind.CHUNKED
        self._body = make_body(framing, Reason.UPSTREAM_RESPONSE, decode=chunked)
        self._scrub = scrubber.stream()
        self._chunked = chunked and not decode

    @property
    def done(self) -> bool:
        """Whether the body is complete."""
        return self._body.done

    def feed(self, data: Span | bytearray) -> tuple[int, list[Span]]:
        """Return the bytes used and the spans to write on; the last ones with what was held back.

        Raises:
            WireError: as the body that it is made of.
        """
        used, spans = self._body.feed(data)
        clean = self._framed(self._scrub.feed(b"".join(spans)), last=self._body.done)
        return used, [clean] if clean else []

    def eof(self) -> None:
        """Take note that the peer closed.

        Raises:
            WireError: when bytes of the body are missing.
        """
        self._body.eof()

    def rest(self) -> bytes:
        """Return what was held back of a body that lasted until the peer closed."""
        return self._scrub.end()

    def _framed(self, clean: bytes, *, last: bool) -> bytes:
        if last:
            clean += self._scrub.end()
        if self._chunked:
            clean = (b"%x\r\n%b\r\n" % (len(clean), clean) if clean else b"") + (b"0\r\n\r\n" if last else b"")
        return clean
