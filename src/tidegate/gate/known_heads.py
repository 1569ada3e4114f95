"""Heads of answers that an origin sends again and again on one connection, with what was made of them (GAT-4).

Rules of the file:

* What is made of a head depends on its bytes and on nothing else, where the request is an ordinary one: then equal
  bytes are the same answer, and are parsed and judged once.
* Few and small ones are kept, and none that sets a cookie: what is a secret of the task's is not kept for later.
"""

from __future__ import annotations

from tidegate.model.value import Value
from tidegate.wire.framing import Framing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.wire.http1 import ResponseHead

MOST = 32
MOST_BYTES = 1024
_PRIVATE = frozenset((b"set-cookie", b"set-cookie2", b"authentication-info", b"www-authenticate"))


class KnownHead(Value):
    """A final head: its status, what ends its body, and the bytes that the client gets for it."""

    status: int
    framing: Framing
    out: bytes


class KnownHeads:
    """Those of one connection to an origin, by their bytes."""

    __slots__ = ("_heads", "find")

    def __init__(self) -> None:
        self._heads: dict[bytes, KnownHead] = {}
        self.find = self._heads.get

    def keep(self, raw: bytes, head: ResponseHead, framing: Framing, out: bytes) -> None:
        """Keep a head for the next time, if it is one that may be kept."""
        if len(raw) > MOST_BYTES or not _PRIVATE.isdisjoint(head.names):
            return
        if len(self._heads) >= MOST:
            self._heads.clear()
        self._heads[raw] = KnownHead(head.status, framing, out)
