"""One-time codes: how a token reaches a browser without ever standing in a URL, an argument or a log (SRV-1).

`tidegate portal` gets a code over the unix socket and opens the portal with it in the URL's fragment, which no browser
sends anywhere; the page exchanges it for a token. Rules of the file: a code has 256 random bits, is kept as its hash,
works once, and for a bounded time; at most `KEPT` wait at once (the oldest goes). Pure: clock and randomness come in.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.server.api.auth import Role

OPENER_SECONDS: Final = 60.0
PAIR_SECONDS: Final = 300.0
KEPT: Final = 16


class Offer(msgspec.Struct, frozen=True):
    """What a code is good for: a token of this role under this name. `until` is in the clock's seconds."""

    role: Role
    name: str
    until: float


class Codes:
    """The codes that were given out and not used yet. `clock` is monotonic, in seconds."""

    def __init__(self, *, clock: Callable[[], float], secret: Callable[[], str]) -> None:
        self._clock = clock
        self._secret = secret
        self._offers: dict[bytes, Offer] = {}

    def make(self, role: Role, name: str, seconds: float) -> str:
        """Return a new code that works once within `seconds`."""
        self._drop_old()
        while len(self._offers) >= KEPT:
            del self._offers[next(iter(self._offers))]
        code = self._secret()
        self._offers[_hash(code)] = Offer(role, name, self._clock() + seconds)
        return code

    def take(self, code: str) -> Offer | None:
        """Use a code up: what it is good for, or None where it is unknown, used or too old."""
        self._drop_old()
        # Looking up by hash tells a guesser nothing by time: the hash of a guess is not near the hash of a code.
        return self._offers.pop(_hash(code), None)

    def _drop_old(self) -> None:
        now = self._clock()
        self._offers = {key: offer for key, offer in self._offers.items() if now < offer.until}


def _hash(code: str) -> bytes:
    return sha256(code.encode("utf-8", "surrogatepass")).digest()
