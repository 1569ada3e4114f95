"""Who asks: an owner over the unix socket, or whoever holds a token.

Rules of the file: a token has 256 random bits and is shown once; only its SHA-256 is kept (a random secret of that
length needs no slow hash). It has a role, can end by time, and is revoked by its id, which ends its open streams too.
All comparisons take the same time whichever token was meant. Wrong tokens are answered 401, and 429 once they come
faster than `Failures` lets them; a right one always passes, so that nobody can lock the owner out. Thread-safe.
"""

from __future__ import annotations

import threading
from enum import Enum
from hashlib import sha256
from hmac import compare_digest, digest
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from tidegate.server.api.errors import ApiError
from tidegate.state.store import Token

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TOKEN_PREFIX: Final = "tg_"  # noqa: S105  lets secret scanners and people tell what it is
MAX_TOKENS: Final = 100
TOUCH_SECONDS: Final = 60.0
FAILURES_AT_ONCE: Final = 10
FAILURES_PER_SECOND: Final = 0.5
_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="tidegate"'}


class Role(Enum):
    """What a caller may do: an owner everything, a viewer look."""

    OWNER = "owner"
    VIEWER = "viewer"


class Caller(msgspec.Struct, frozen=True):
    """Who asks. `by` is what the record says of who did it; `token` is 0 over the unix socket."""

    role: Role
    by: str
    token: int = 0

    @property
    def is_owner(self) -> bool:
        """Whether this caller may change things."""
        return self.role is Role.OWNER


class Failures:
    """How many wrong tokens and codes may come: `FAILURES_AT_ONCE`, then `FAILURES_PER_SECOND`. One bucket for all.

    All callers of loopback look alike, so there is nobody to count by.
    """

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left = float(FAILURES_AT_ONCE)
        self._at = clock()

    def count(self) -> None:
        """Count one.

        Raises:
            ApiError: 429 where there were too many.
        """
        now = self._clock()
        self._left = min(FAILURES_AT_ONCE, self._left + (now - self._at) * FAILURES_PER_SECOND)
        self._at = now
        if self._left < 1:
            raise ApiError(429, "too many wrong tokens", fix="try later", headers={"Retry-After": "2"})
        self._left -= 1


class TokenStore(Protocol):
    """The part of the store that keeps tokens (state/store.py). All of it blocks."""

    def tokens(self) -> tuple[Token, ...]:
        """Return all tokens."""

    def add_token(self, token: Token) -> Token:
        """Keep a new one and return it with its id."""

    def touch_token(self, id: int, at: float) -> None:  # noqa: A002  the store's name
        """Note when it was used."""

    def revoke_token(self, id: int, at: float) -> bool:  # noqa: A002  the store's name
        """End it."""


class Auth:
    """The tokens, checked from memory and kept in the store. `wall` is Unix time, `clock` monotonic; seconds."""

    def __init__(
        self,
        store: TokenStore,
        *,
        wall: Callable[[], float],
        clock: Callable[[], float],
        secret: Callable[[], str],
    ) -> None:
        self._store = store
        self._wall = wall
        self._secret = secret
        self._lock = threading.Lock()
        self._tokens = {token.id: token for token in store.tokens()}
        self.failures = Failures(clock=clock)

    def check(self, headers: Mapping[str, str]) -> Caller:
        """Return who asks, by the Authorization header.

        Raises:
            ApiError: 401 without a token that is good, 429 where too many were wrong.
        """
        kind, _, secret = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not secret:
            fix = "send Authorization: Bearer TOKEN; tidegate token create makes one"
            raise ApiError(401, "this needs a token", fix=fix, headers=_CHALLENGE)
        token = self._find(secret)
        if token is None:
            self.failures.count()
            fix = "tidegate token list shows those that are"
            raise ApiError(401, "this token is not known", fix=fix, headers=_CHALLENGE)
        return Caller(Role(token.role), f"{token.role} {token.name!r}", token.id)

    def alive(self, token_id: int) -> bool:
        """Whether a token is still good; 0 is the unix socket's, which always is."""
        if not token_id:
            return True
        with self._lock:
            token = self._tokens.get(token_id)
        return token is not None and _good(token, self._wall())

    def listed(self) -> list[Token]:
        """Return the tokens that are good, oldest first."""
        now = self._wall()
        with self._lock:
            return sorted((token for token in self._tokens.values() if _good(token, now)), key=lambda token: token.id)

    def create(self, name: str, role: Role, expires: float | None) -> tuple[Token, str]:
        """Make a token and keep it: the token, and its secret, which nobody can read again. Blocks.

        Raises:
            ApiError: 409 where there are `MAX_TOKENS` already or one of this name, 400 where it would be over already.
        """
        now = self._wall()
        if expires is not None and expires <= now:
            raise ApiError(400, "this token would have ended already", fix="give a later time")
        if len(self.listed()) >= MAX_TOKENS:
            raise ApiError(409, f"there are {MAX_TOKENS} tokens already", fix="revoke one")
        secret = TOKEN_PREFIX + self._secret()
        try:
            token = self._store.add_token(Token(0, name, role.value, _hash(secret), now, expires=expires))
        except ValueError:
            raise ApiError(409, f"there already is a token {name!r}", fix="give another name") from None
        with self._lock:
            self._tokens[token.id] = token
        return token, secret

    def revoke(self, token_id: int) -> Token:
        """End a token. It is good for nothing from here on, even where that could not be kept. Blocks.

        Raises:
            ApiError: 404 where there is no such token that is good.
            NotSavedError: where it could not be kept.
        """
        now = self._wall()
        with self._lock:
            token = self._tokens.get(token_id)
            if token is None or not _good(token, now):
                raise ApiError(404, f"there is no token {token_id}", fix="tidegate token list shows them")
            self._tokens[token_id] = revoked = token.replace(revoked=now)
        self._store.revoke_token(token_id, now)
        return revoked

    def prove(self, token_id: int, text: bytes) -> bytes | None:
        """Return what only who keeps this token can say of a text: an HMAC-SHA-256; None where it is not good.

        The key is the token's SHA-256, which opens nothing.
        """
        with self._lock:
            token = self._tokens.get(token_id)
        if token is None or not _good(token, self._wall()):
            return None
        return digest(token.hash, text, "sha256")

    def used(self, token_id: int) -> bool:
        """Note that a token is used now; whether that is worth keeping, which is once in `TOUCH_SECONDS`."""
        now = self._wall()
        with self._lock:
            token = self._tokens.get(token_id)
            if token is None or (token.last_used is not None and now - token.last_used < TOUCH_SECONDS):
                return False
            self._tokens[token_id] = token.replace(last_used=now)
        return True

    def keep_use(self, token_id: int) -> None:
        """Keep when a token was used last. Blocks.

        Raises:
            NotSavedError: where it could not be kept.
        """
        self._store.touch_token(token_id, self._wall())

    def _find(self, secret: str) -> Token | None:
        given = _hash(secret)
        now = self._wall()
        found = None
        with self._lock:
            for token in self._tokens.values():
                if compare_digest(token.hash, given) and _good(token, now):
                    found = token
        return found


def _good(token: Token, now: float) -> bool:
    return token.revoked is None and (token.expires is None or now < token.expires)


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
