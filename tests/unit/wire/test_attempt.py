"""The values of an attempt."""

from __future__ import annotations

from tidegate.wire.attempt import NAMES, NOBODY, PORTS, Attempt


def test_an_attempt_is_nobodys_until_the_kernel_says_whose() -> None:
    """JRN-3: without a user there is no task; protocols with ports are the two that have them."""
    assert Attempt("tcp", bytes(4), 1).uid == NOBODY
    assert {name for name in NAMES.values() if name in PORTS} == {"tcp", "udp"}
