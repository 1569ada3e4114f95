"""One-time codes."""

from __future__ import annotations

from itertools import count

from tidegate.server.api.auth import Role
from tidegate.server.api.codes import KEPT, Codes, Offer


def _codes(now: list[float]) -> Codes:
    numbers = count()
    return Codes(clock=lambda: now[0], secret=lambda: f"code {next(numbers)}")


def test_a_code_works_once_and_for_its_time() -> None:
    """SRV-1: a code is good until it is used or its seconds are over, and then for nothing."""
    now = [5.0]
    codes = _codes(now)
    first, second = codes.make(Role.OWNER, "portal", 60), codes.make(Role.VIEWER, "phone", 60)
    now[0] += 59.9
    assert codes.take(first) == Offer(Role.OWNER, "portal", 65.0)
    assert codes.take(first) is None
    now[0] += 0.1
    assert codes.take(second) is None


def test_other_codes_are_not_known() -> None:
    """SRV-1: what was never given out opens nothing, whatever it is made of."""
    codes = _codes([0.0])
    code = codes.make(Role.OWNER, "portal", 60)
    for wrong in ("", code[:-1], code + "x", code.upper(), "\ud800"):
        assert codes.take(wrong) is None
    assert codes.take(code) is not None


def test_the_oldest_code_gives_way() -> None:
    """SRV-1: codes are bounded: of one more than are kept the first is good no more."""
    codes = _codes([0.0])
    made = [codes.make(Role.OWNER, "portal", 60) for _ in range(KEPT + 1)]
    assert codes.take(made[0]) is None
    assert all(codes.take(code) for code in made[1:])
