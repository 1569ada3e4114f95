"""What a host of a secret answers, on its way to the task: without values, whatever coding it came in (INS-5, B118).

Rules of the file:

* Codings are taken off, and stay off: the task gets the answer as it was meant. Its length is not known then, and its
  entity tag is weak (RFC 9110 section 8.8.1).
* Nothing comes in ranges of bytes: half a value is not recognised, and two halves are a value. None is asked for, which
  a server answers as a whole (RFC 9110 section 14.2), and one that comes all the same is refused. Ranges of items, as
  of rows, pass.
* A body without a coding keeps its length. Digests of it are left out: they are of the bytes before the swap.
* What could not be read is not asked for: unknown codings, compressed messages, deltas (RFC 3229).

It decides on fields and bytes of both versions of HTTP; what frames a body is not known here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tidegate.inspect.codings import Decoding, Windows, acceptable
from tidegate.inspect.grpc import ASKED_BY, SAID_BY, messages_in
from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError
from tidegate.wire.grammar import list_members

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidegate.inspect.grpc import Messages
    from tidegate.inspect.scrub import Scrub, Scrubber

    Field = tuple[bytes, bytes]

DIGESTS = frozenset({b"content-md5", b"digest", b"content-digest", b"repr-digest"})  # RFC 1864, 3230, 9530
_RANGES = frozenset({b"range", b"if-range", b"request-range", b"x-ms-range"})  # the latter two: old httpd, Azure
_NOT_ASKED = frozenset({b"accept-encoding", b"a-im"})
_OF_ITEMS = re.compile(rb"(items[= ])?\d+-\d*(/(\d+|\*))?", re.IGNORECASE)  # PostgREST's
_CODED_ONLY = SAID_BY | {b"content-encoding", b"content-length"}
_STAYS = DIGESTS | {b"accept-ranges"}
_PARTIAL, _NOT_MODIFIED, _IM_USED, _UNSATISFIED = 206, 304, 226, 416


class CleanBody:
    """One body on its way back: model.seams.Scrub."""

    __slots__ = ("_decoding", "_messages", "_scrub", "resized")

    def __init__(self, scrub: Scrub, decoding: Decoding | None, messages: Messages | None) -> None:
        self._scrub = scrub
        self._decoding = decoding
        self._messages = messages
        self.resized = decoding is not None or (messages is not None and messages.coded)

    @property
    def pending(self) -> bool:
        """Whether `more` may have something."""
        return self._decoding is not None and self._decoding.pending

    def feed(self, data: bytes) -> bytes:
        """Take bytes; return what can be passed on.

        Raises:
            WireError: UPSTREAM_RESPONSE where they cannot be read.
        """
        if self._decoding is not None:
            self._decoding.put(data)
            return self.more()
        return self._looked(data)

    def put(self, data: bytes) -> bytes:
        """Take bytes; return what can be passed on of a body without a coding. Of another one it is all pending.

        Raises:
            WireError: as `feed`.
        """
        if self._decoding is None:
            return self.feed(data)
        self._decoding.put(data)
        return b""

    def more(self) -> bytes:
        """Go one step on and return the next piece, b"" also where it comes to nothing.

        Raises:
            WireError: as `feed`.
        """
        decoding = self._decoding
        return b"" if decoding is None or not decoding.pending else self._looked(decoding.take())

    def _looked(self, data: bytes) -> bytes:
        return self._scrub.feed(data if self._messages is None else self._messages.feed(data))

    def end(self) -> bytes:
        """Return what is left.

        Raises:
            WireError: UPSTREAM_RESPONSE where a coding is cut short.
        """
        if self._decoding is not None:
            self._decoding.end()
        return self._scrub.end()


class Cleaner:
    """What keeps values out of the answers of one host: model.seams.Cleaner."""

    __slots__ = ("_narrow", "_scrubber", "_windows")

    def __init__(self, scrubber: Scrubber, windows: Windows | None = None) -> None:
        self._scrubber = scrubber
        self._windows = Windows() if windows is None else windows
        self._narrow = False  # it answered in Brotli with a window that is not read: it is asked for that no more

    def _met_wide(self) -> None:
        self._narrow = True

    def all(self, data: bytes) -> bytes:
        """Return what is whole, a head or a field, without values."""
        return self._scrubber.all(data)

    def asked(self, fields: Iterable[Field]) -> list[Field]:
        """Return the fields of a request so that its answer can be read."""
        kept, wanted = [], []
        for field in fields:
            name = field[0].lower()
            if name == b"accept-encoding":
                wanted.append(field[1])
            if name in _RANGES and not _OF_ITEMS.fullmatch(field[1].strip()):
                continue
            if name in ASKED_BY:
                kept.append((name, b"identity"))  # a server that hears of none may take any
            elif name not in _NOT_ASKED:
                kept.append(field)
        kept.append((b"accept-encoding", acceptable(wanted, small=self._windows.scarce, brotli=not self._narrow)))
        return kept

    def answer(
        self, status: int, fields: Sequence[Field], asked: Iterable[Field], *, empty: bool
    ) -> tuple[list[Field], CleanBody | None]:
        """Return the fields of a final answer, values still in them, and its body; None for one that is `empty`.

        Raises:
            WireError: UPSTREAM_RESPONSE where it cannot be read.
        """
        named: dict[bytes, bytes] = {}
        encodings = []
        for name, value in fields:
            lowered = name.lower()
            named[lowered] = value
            if lowered == b"content-encoding":
                encodings.append(value)
        codings = [one for one in list_members(encodings) if one != b"identity"]
        if empty:
            weak = bool(codings) or _asked_weakly(status, named, asked)
            return _without_coding(fields, coded=bool(codings), weak=weak), None
        if status == _IM_USED or b"im" in named:
            raise WireError(Reason.UPSTREAM_RESPONSE, "it is a delta, which was not asked for")
        messages = messages_in(named)
        parts = [value for name, value in fields if name.lower() == b"content-range"]
        of_items = all(map(_OF_ITEMS.fullmatch, parts)) and (bool(parts) or status != _PARTIAL)
        if not of_items and status != _UNSATISFIED:
            raise WireError(Reason.UPSTREAM_RESPONSE, "it is a part of something, which was not asked for")
        decoding = Decoding(codings, windows=self._windows, wide=self._met_wide) if codings else None
        body = CleanBody(self._scrubber.stream(), decoding, messages)
        return _without_coding(fields, coded=body.resized, weak=body.resized), body


def _without_coding(fields: Sequence[Field], *, coded: bool, weak: bool) -> list[Field]:
    kept = []
    for name, value in fields:
        lowered = name.lower()
        if lowered in _STAYS or (coded and lowered in _CODED_ONLY and value != b"0"):
            continue
        if (weak and lowered == b"etag") and not value.startswith(b"W/"):
            kept.append((name, b"W/" + value))
        else:
            kept.append((name, value))
    return kept


def _asked_weakly(status: int, named: dict[bytes, bytes], asked: Iterable[Field]) -> bool:
    """Whether a 304 answers to a tag that this made weak: it has to name the same one."""
    tag = named.get(b"etag", b"")
    if status != _NOT_MODIFIED or not tag or tag.startswith(b"W/"):
        return False
    return any(name.lower() == b"if-none-match" and b"W/" + tag in value for name, value in asked)
