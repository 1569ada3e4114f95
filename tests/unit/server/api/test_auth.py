"""Tokens: made, checked, listed, revoked."""

from __future__ import annotations

import hmac
from hashlib import sha256
from itertools import count

import pytest

from tests.unit.server.api.running import Tokens
from tidegate.server.api.auth import FAILURES_AT_ONCE, MAX_TOKENS, TOKEN_PREFIX, TOUCH_SECONDS, Auth, Failures, Role
from tidegate.server.api.errors import ApiError


class World:
    def __init__(self) -> None:
        self.now = 1000.0
        self.store = Tokens()
        numbers = count()
        self.secret = lambda: f"secret {next(numbers)}"
        self.auth = self.again()

    def again(self) -> Auth:
        return Auth(self.store, wall=lambda: self.now, clock=lambda: self.now, secret=self.secret)


def _bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def test_a_token_opens_with_its_role_and_only_its_hash_is_kept() -> None:
    """SRV-1: the secret opens, with the role it was made with; what is kept does not hold it."""
    world = World()
    token, secret = world.auth.create("laptop", Role.VIEWER, None)
    assert secret.startswith(TOKEN_PREFIX)
    caller = world.auth.check(_bearer(secret))
    assert (caller.role, caller.by, caller.token, caller.is_owner) == (Role.VIEWER, "viewer 'laptop'", token.id, False)
    assert secret.removeprefix(TOKEN_PREFIX) not in repr(world.store.kept)
    assert len(world.store.kept[0].hash) == 32


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic eDp5", "Bearer wrong", "Bearer {secret}x", "Token {secret}", "{secret}"]
)
def test_anything_else_opens_nothing(header: str) -> None:
    """SRV-1: no header, another scheme, or another secret is 401."""
    world = World()
    _, secret = world.auth.create("laptop", Role.OWNER, None)
    with pytest.raises(ApiError) as caught:
        world.auth.check({"authorization": header.format(secret=secret)})
    assert caught.value.status == 401
    assert world.auth.check({"authorization": f"bearer {secret}"}).is_owner


def test_a_revoked_token_is_good_for_nothing_from_then_on() -> None:
    """SRV-1: revoking holds at once, for what is open (alive) and after a restart; another token stays good."""
    world = World()
    token, secret = world.auth.create("one", Role.OWNER, None)
    other, _ = world.auth.create("two", Role.OWNER, None)
    assert world.auth.alive(token.id)
    world.auth.revoke(token.id)
    for auth in (world.auth, world.again()):
        assert not auth.alive(token.id)
        assert auth.alive(other.id)
        assert [kept.name for kept in auth.listed()] == ["two"]
        with pytest.raises(ApiError) as caught:
            auth.check(_bearer(secret))
        assert caught.value.status == 401
    with pytest.raises(ApiError) as again:
        world.auth.revoke(token.id)
    assert again.value.status == 404


def test_a_token_ends_with_its_time() -> None:
    """SRV-1: a token with an end is good until then, and one whose end is over is not made."""
    world = World()
    token, secret = world.auth.create("one", Role.OWNER, world.now + 10)
    world.now += 9.9
    assert world.auth.check(_bearer(secret)).token == token.id
    world.now += 0.1
    assert not world.auth.alive(token.id)
    assert world.auth.listed() == []
    with pytest.raises(ApiError) as caught:
        world.auth.check(_bearer(secret))
    assert caught.value.status == 401
    with pytest.raises(ApiError) as over:
        world.auth.create("two", Role.OWNER, world.now)
    assert over.value.status == 400


def test_the_unix_socket_is_always_alive() -> None:
    """A caller without a token is never cut off by one."""
    assert World().auth.alive(0)


def test_tokens_are_bounded_and_their_names_are_one_s_own() -> None:
    """SRV-1: a name is given once among those that are good, and there are at most so many."""
    world = World()
    first, _ = world.auth.create("0", Role.OWNER, None)
    with pytest.raises(ApiError) as same:
        world.auth.create("0", Role.OWNER, None)
    assert same.value.status == 409
    for number in range(1, MAX_TOKENS):
        world.auth.create(str(number), Role.VIEWER, None)
    with pytest.raises(ApiError) as full:
        world.auth.create("more", Role.OWNER, None)
    assert full.value.status == 409
    world.auth.revoke(first.id)
    world.auth.create("0", Role.OWNER, None)


def test_wrong_tokens_are_slowed_down() -> None:
    """SRV-1: so many at once, then one each two seconds; more are 429 and cost nothing of what is left."""
    now = [0.0]
    failures = Failures(clock=lambda: now[0])
    for _ in range(FAILURES_AT_ONCE):
        failures.count()
    for _ in range(3):
        with pytest.raises(ApiError) as caught:
            failures.count()
        assert caught.value.status == 429
        assert caught.value.headers["Retry-After"] == "2"
    now[0] += 2.0
    failures.count()
    with pytest.raises(ApiError):
        failures.count()


def test_use_is_kept_once_a_minute() -> None:
    """SRV-2: the list shows when a token was used; the disk hears of it once a minute."""
    world = World()
    token, _ = world.auth.create("one", Role.OWNER, None)
    assert [world.auth.used(token.id), world.auth.used(token.id)] == [True, False]
    assert world.auth.listed()[0].last_used == world.now
    world.now += TOUCH_SECONDS
    assert world.auth.used(token.id)
    assert not world.auth.used(99)
    world.auth.keep_use(token.id)
    assert world.store.touched == [(token.id, world.now)]


def test_a_proof_is_of_a_token_that_is_good_and_gives_nothing_of_it_away() -> None:
    """SRV-1: an HMAC with the token's hash as its key; another token's differs, and one that is over proves nothing."""
    world = World()
    token, secret = world.auth.create("a", Role.OWNER, None)
    other, _ = world.auth.create("b", Role.OWNER, 1010.0)
    proof = world.auth.prove(token.id, b"text")
    assert proof == hmac.digest(sha256(secret.encode()).digest(), b"text", "sha256")
    assert world.again().prove(token.id, b"text") == proof  # the next server is the same one to a page
    assert len({proof, world.auth.prove(token.id, b"texu"), world.auth.prove(other.id, b"text")}) == 3
    assert world.auth.prove(other.id + 1, b"text") is None
    world.now = 1011.0
    assert world.auth.prove(other.id, b"text") is None
    world.auth.revoke(token.id)
    assert world.auth.prove(token.id, b"text") is None
