"""What follows an accepted WebSocket inside TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.inside import Inside, get, inside
from tests.unit.gate.kit import read_exactly, read_head, small
from tests.unit.gate.test_inner_exchange import SWITCH
from tidegate.model.reason import Reason
from tidegate.model.rule import RuleLimits, only
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.lab.api import Lab

    Start = Callable[..., Inside]

__all__ = ["inside"]

OFFER = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")


def switched(lab: Lab, gate: Inside, *steps: list[Any]) -> Any:
    """A client's TLS socket behind a 101; then the server plays these steps."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=[["head"], ["send", SWITCH], *steps])
    sock = gate.tunnel("a.test:443")
    sock.sendall(get("a.test", "/", *OFFER))
    assert read_head(sock).startswith(b"HTTP/1.1 101 ")
    return sock


def test_much_passes_both_ways(lab: Lab, inside: Start) -> None:
    """INS-3: more than every buffer on the way, up and then down."""
    size = 3_000_000
    with switched(lab, inside("a.test:443"), ["read", size], ["send", "y" * size], ["drain"]) as sock:
        sock.sendall(bytes(size))
        left = size
        while left:
            left -= len(read_exactly(sock, min(left, 65536)))


@pytest.mark.parametrize("side", ["client", "server"])
def test_the_end_of_one_side_ends_the_other(lab: Lab, inside: Start, side: str) -> None:
    """INS-3: an end travels, and both sockets are closed in the end; one line is in the journal."""
    gate = inside("a.test:443")
    sock = switched(lab, gate, *([["drain"]] if side == "client" else [["send", "bye"]]))
    if side == "server":
        assert read_exactly(sock, 4) == b"bye"
    sock.close()
    gate.gate.idle()
    event = gate.gate.event()
    assert (event.how, event.status) == (How.INSPECTED, 101)


def test_bytes_count_against_the_rule(lab: Lab, inside: Start) -> None:
    """GAT-6: what is sent in a WebSocket counts as in every tunnel, and cuts it when it is too much."""
    gate = inside("a.test:443", limit=RuleLimits(bytes_up=5000, requests=only(paths=("/**",))))
    with switched(lab, gate, ["drain"]) as sock:
        sock.sendall(bytes(10_000))
        assert read_exactly(sock, 1) == b""
    assert gate.gate.event().reason is Reason.BYTES_LIMIT


def test_one_that_is_idle_for_too_long_ends(lab: Lab, inside: Start) -> None:
    """GAT-5: the one idle clock of both directions, where the policy has one."""
    gate = inside("a.test:443", limits=small(idle_seconds=0.5))
    with switched(lab, gate, ["drain"]) as sock:
        assert read_exactly(sock, 1) == b""
    assert gate.gate.event().reason is Reason.IDLE_TIMEOUT
