"""Heads of answers that an origin sends again and again on one connection, with what was made of them (GAT-4).

Rules of the file:

* What is made of a head depends on its bytes and on nothing else, where the request is an ordinary one: then equal
  bytes are the same answer, and are parsed and judged once.
* A head that differs from an earlier one in values that nobody reads is judged by these alone (wire/head_shape.py). A
  shape is learned when a second head of its kind was read: a connection with one answer pays for none.
* Few and small ones are kept, and none that sets a cookie: what is a secret of the task's is not kept for later. Nor is
  one with a challenge: `heard` (ends.py) looks at each of those.
"""

from __future__ import annotations

from tidegate.model.value import Value
from tidegate.wire.framing import Framing
from tidegate.wire.head_shape import HeadShape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.wire.http1 import ResponseHead

MOST = 32
MOST_BYTES = 1024
SHAPES = 4
SHAPE_BYTES = 4096
LESSONS = 64  # shapes that are learned on one connection: an origin that never does the same again costs no more
_PRIVATE = frozenset((b"set-cookie", b"set-cookie2", b"authentication-info", b"www-authenticate"))


class KnownHead(Value, hot=True):
    """A final head: its status, what ends its body, and the bytes that the client gets for it."""

    status: int
    framing: Framing
    out: bytes


class _Shape:
    """A shape, the status of its heads, and the last of them."""

    __slots__ = ("raw", "shape", "status")

    def __init__(self, raw: bytes, shape: HeadShape, status: int) -> None:
        self.raw = raw
        self.shape = shape
        self.status = status


class KnownHeads:
    """Those of one connection to an origin, by their bytes."""

    __slots__ = ("_heads", "_lessons", "_once", "_shapes")

    def __init__(self) -> None:
        self._heads: dict[bytes, KnownHead] = {}
        self._shapes: dict[tuple[bytes, int], _Shape] | None = None
        self._once: tuple[bytes, int] | None = None  # the kind of the last head that was read
        self._lessons = LESSONS

    def find(self, raw: bytes) -> KnownHead | None:
        """Return what was made of a head, or what would be; None where it has to be read."""
        known = self._heads.get(raw)
        if known is not None or self._shapes is None or len(raw) > SHAPE_BYTES:
            return known
        found = self._shapes.get(_kind(raw))
        if found is None:
            return None
        out = found.shape.again(raw)
        if out is None:
            return None
        known = KnownHead(found.status, found.shape.framing, out)
        if len(raw) <= MOST_BYTES:  # in place of the one before: many answers of a second have the same head
            self._heads.pop(found.raw, None)
            self._heads[raw] = known
            found.raw = raw
        return known

    def keep(self, raw: bytes, head: ResponseHead, framing: Framing, out: bytes) -> None:
        """Keep a head for the next time, if it is one that may be kept."""
        if len(raw) > SHAPE_BYTES or not _PRIVATE.isdisjoint(head.names):
            return
        kind = _kind(raw)
        if kind == self._once and self._lessons:
            self._learn(kind, raw, head.status, framing, out)
        self._once = kind
        if len(raw) > MOST_BYTES:
            return
        if len(self._heads) >= MOST:
            self._heads.clear()
        self._heads[raw] = KnownHead(head.status, framing, out)

    def _learn(self, kind: tuple[bytes, int], raw: bytes, status: int, framing: Framing, out: bytes) -> None:
        self._lessons -= 1
        if self._shapes is None:
            self._shapes = {}
        elif len(self._shapes) >= SHAPES and kind not in self._shapes:
            self._shapes.clear()
        try:
            self._shapes[kind] = _Shape(raw, HeadShape(raw, out, framing), status)
        except ValueError:
            self._lessons = 0  # something is added to its answers


def _kind(raw: bytes) -> tuple[bytes, int]:
    """Return what heads of one shape have in common at a glance: the status line, and how many lines there are."""
    return raw[: raw.find(b"\r\n")], raw.count(b"\n")
