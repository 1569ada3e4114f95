"""Bodies as they stream: what of the bytes that came belongs to the body, and what of it travels on.

Every reader has one interface. `feed(data)` returns how many bytes it used and the spans to write on, in
order: memoryviews into `data` where nothing changes, so a large body is never copied. What stands behind the
used bytes belongs to the next message. `done` says that the body is complete, `eof()` that the peer has
closed.

A chunked body travels on as the bytes that were validated, without chunk extensions and without trailers that
no trailer may set (RFC 9112 section 7.1, RFC 9110 section 6.5; B50, B64). A size line is held until it is whole, and
the end of the body until all trailers are, so that what is refused half-way never looks complete to the other side.
"""

from __future__ import annotations

from tidegate.model.limits import Limits
from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError
from tidegate.wire.framing import MAX_LENGTH, Framing, Kind
from tidegate.wire.grammar import FIELD, HEX
from tidegate.wire.http1 import Fields, parse_fields

Span = bytes | memoryview

MAX_SIZE_DIGITS = 16
MAX_EXTENSION = 1024  # bytes behind the size; the longest in use (AWS signatures) is 85
_MAX_SIZE_LINE = MAX_SIZE_DIGITS + MAX_EXTENSION + 2
_USUAL_SIZE_LINE = 24  # holds every one without an extension, and costs nothing to copy
MAX_TRAILERS = 8192
_TRAILER_LIMITS = Limits(header_bytes=MAX_TRAILERS, header_fields=32)

# RFC 9110 section 6.5.1: framing, routing, authentication, request modifiers, controls and content format
# are never taken from a trailer; nor is what some servers take for the method or the target.
_NO_TRAILER = frozenset(
    b"""transfer-encoding content-length host connection keep-alive te trailer upgrade expect max-forwards
    authorization www-authenticate cookie set-cookie set-cookie2 content-encoding content-type content-range
    content-disposition cache-control age alt-svc date expires location retry-after vary warning pragma range if-match
    if-none-match if-modified-since if-unmodified-since if-range origin referer forwarded via""".split()
)
_NO_TRAILER_PREFIXES = (
    *(b"proxy-", b"x-forwarded-", b"sec-", b"access-control-"),
    *(b"x-http-method", b"x-method-override", b"x-original-url", b"x-rewrite-url"),
)


def travels_as_trailer(name: bytes) -> bool:
    """Whether a field, its name in lower case, may stand in trailers ('-' and '_' are one to many servers)."""
    name = name.replace(b"_", b"-")
    return name not in _NO_TRAILER and not name.startswith(_NO_TRAILER_PREFIXES)


class LengthBody:
    """A body of a known length. `remaining` bytes are still to come."""

    __slots__ = ("_bad", "remaining")

    def __init__(self, length: int, bad: Reason = Reason.BAD_FRAMING) -> None:
        self.remaining = length
        self._bad = bad

    @property
    def done(self) -> bool:
        """Whether the body is complete."""
        return self.remaining == 0

    def feed(self, data: Span | bytearray) -> tuple[int, list[Span]]:
        """Return the bytes used and the spans to write on."""
        view = memoryview(data)
        take = min(len(view), self.remaining)
        self.remaining -= take
        return take, [view[:take]] if take else []

    def eof(self) -> None:
        """Take note that the peer closed.

        Raises:
            WireError: when bytes of the body are missing.
        """
        if self.remaining:
            raise WireError(self._bad, f"the connection ended {self.remaining} bytes before the body did")


class CloseBody:
    """A body that lasts until the peer closes."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = False

    def feed(self, data: Span | bytearray) -> tuple[int, list[Span]]:
        """Return the bytes used, which are all, and the spans to write on."""
        view = memoryview(data)
        return len(view), [view] if view else []

    def eof(self) -> None:
        """Take note that the peer closed: the body is complete."""
        self.done = True


class ChunkedBody:
    """A chunked body, validated as it comes.

    With `decode` the spans are the data alone: for a client of HTTP/1.0, which knows no chunks. `trailers` are
    those that travel on, once `done`. `bad` is the reason of every error.
    """

    __slots__ = ("_bad", "_decode", "_held", "_left", "_tail", "done", "trailers")

    def __init__(self, bad: Reason = Reason.BAD_FRAMING, *, decode: bool = False) -> None:
        self.done = False
        self.trailers: Fields = ()
        self._bad = bad
        self._decode = decode
        self._left = 0  # data bytes of the current chunk still to come
        # What is awaited when _left is 0: a size line (0), the CRLF behind data (its 2 or 1 bytes), or trailers (-1).
        self._tail = 0
        self._held = b""  # the beginning of a size line or of the trailers

    def feed(self, data: Span | bytearray) -> tuple[int, list[Span]]:
        """Return the bytes used and the spans to write on.

        Raises:
            WireError: at the first byte that no chunked body can have there.
        """
        view = memoryview(data)
        size = len(view)
        spans: list[Span] = []
        at = run = 0  # view[run:at] is validated, travels on as it is and is not in `spans` yet
        while at < size and not self.done:
            begin = at
            if self._left:
                at += min(size - at, self._left)
                self._left -= at - begin
                if self._decode:
                    spans.append(view[begin:at])
                continue
            if self._tail > 0:
                at = self._chunk_end(view, at)
                continue
            at, line = self._size_line(view, at) if self._tail == 0 else self._trailer_section(view, at)
            if line is not None and not self._decode:
                if run < begin:
                    spans.append(view[run:begin])
                if line:
                    spans.append(line)
                run = at
        if run < at and not self._decode:
            spans.append(view[run:at])
        return at, spans

    def eof(self) -> None:
        """Take note that the peer closed.

        Raises:
            WireError: when the last chunk or the trailers are not complete.
        """
        if not self.done:
            raise WireError(self._bad, "the connection ended before the last chunk did")

    def _chunk_end(self, view: memoryview, at: int) -> int:
        while self._tail and at < len(view):
            if view[at] != (0x0D if self._tail == 2 else 0x0A):
                raise WireError(self._bad, "a chunk is not followed by CRLF")
            self._tail -= 1
            at += 1
        return at

    def _size_line(self, view: memoryview, at: int) -> tuple[int, bytes | None]:
        # Where it ends, and what travels on instead of it: None for itself, b"" for nothing (yet).
        held = self._held
        window = held + bytes(view[at : at + (_MAX_SIZE_LINE if held else _USUAL_SIZE_LINE)])
        end = window.find(b"\r\n")
        if end < 0 and not held:
            window = bytes(view[at : at + _MAX_SIZE_LINE])
            end = window.find(b"\r\n")
        if end < 0:
            self._judge_size_line(window)
            self._held = window
            return at + len(window) - len(held), b""
        digits = window[:end]
        if not 0 < end <= MAX_SIZE_DIGITS or digits.translate(None, HEX):
            digits = self._judge_size_line(window[: end + 2])
        length = int(digits, 16)
        if length > MAX_LENGTH:
            raise WireError(self._bad, "a chunk size is too large")
        at += end + 2 - len(held)
        self._held = b""
        if not length:
            self._tail = -1
            return at, b""
        self._left = length
        self._tail = 2
        return at, None if len(digits) == end and not held else digits + b"\r\n"

    def _judge_size_line(self, line: bytes) -> bytes:
        # The digits of a size line, or of the beginning of one; judged alike, whole or not, byte for byte.
        rest = line.lstrip(HEX)
        digits = line[: len(line) - len(rest)]
        if len(digits) > MAX_SIZE_DIGITS:
            raise WireError(self._bad, f"a chunk size has more than {MAX_SIZE_DIGITS} digits")
        if not rest:
            return digits
        if not digits or rest[:1] not in {b";", b"\r"}:
            raise WireError(self._bad, "a chunk size is not plain hexadecimal digits")
        text, cr, end = rest.partition(b"\r")
        if text.translate(None, FIELD) or (cr and end not in {b"", b"\n"}):
            raise WireError(self._bad, "a chunk size line does not end with CRLF")
        if len(text) > MAX_EXTENSION:
            raise WireError(self._bad, f"a chunk extension is longer than {MAX_EXTENSION} bytes")
        return digits

    def _trailer_section(self, view: memoryview, at: int) -> tuple[int, bytes]:
        # Where what was read of it ends, and what travels on: the last chunk with the trailers, once they are whole.
        held = len(self._held)
        window = self._held + bytes(view[at : at + MAX_TRAILERS + 2 - held])
        end = 0 if window[:2] == b"\r\n" else window.find(b"\r\n\r\n") + 2
        if end == 1:  # not found
            self._judge_trailers(window)
            self._held = window
            return at + len(window) - held, b""
        section = window[:end]
        self._judge_trailers(section)
        self.trailers = self._kept(section)
        self.done = True
        self._held = b""
        fields = b"".join([b"%b: %b\r\n" % field for field in self.trailers])
        return at + end + 2 - held, b"0\r\n" + fields + b"\r\n"

    def _judge_trailers(self, window: bytes) -> None:
        # Faults that show before the section is complete: bare line ends and its size, whichever stands first.
        # Counting is all that this may cost: it is done anew for each byte of a sender that trickles.
        pairs = window.count(b"\r\n")
        open_cr = window[-1:] == b"\r"
        if window.count(b"\n") != pairs or window.count(b"\r") != pairs + open_cr:
            raise WireError(self._bad, "a trailer line does not end with CRLF")
        if len(window) >= MAX_TRAILERS + 2:  # the CRLF of the empty line may already be among them
            raise WireError(self._bad, f"the trailers are larger than {MAX_TRAILERS} bytes")

    def _kept(self, section: bytes) -> Fields:
        if not section:
            return ()
        try:
            fields, names = parse_fields(section[:-2].split(b"\r\n"), _TRAILER_LIMITS)
        except WireError as error:
            raise WireError(self._bad, f"in the trailers: {error.detail}") from None
        return tuple(field for field, name in zip(fields, names, strict=True) if travels_as_trailer(name))


Body = LengthBody | ChunkedBody | CloseBody


def make_body(framing: Framing, bad: Reason = Reason.BAD_FRAMING, *, decode: bool = False) -> Body:
    """Return the reader for a body with this framing; one without a body is done at once."""
    if framing.kind is Kind.CHUNKED:
        return ChunkedBody(bad, decode=decode)
    if framing.kind is Kind.CLOSE:
        return CloseBody()
    return LengthBody(framing.length, bad)
