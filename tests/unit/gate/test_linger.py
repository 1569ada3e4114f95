"""The last answer, and closing so that it can be read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.unit.gate.kit import policy_of, read_exactly, wait
from tidegate.gate import linger
from tidegate.gate.linger import refusal_line, render
from tidegate.gate.task import GateTask
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]

REFUSED = b"CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test:443\r\n\r\n"


def test_an_answer_survives_what_is_still_sent(serve: Serve) -> None:
    """B37, B47: megabytes behind a refused CONNECT do not eat its 403."""
    gate = serve()
    for _ in range(5):
        assert gate.raw(REFUSED + b"x" * 2_000_000).startswith(b"HTTP/1.1 403 ")
    gate.idle()


def test_a_client_that_never_closes_is_closed(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """GAT-3: bounded in time and in bytes."""
    monkeypatch.setattr(linger, "LINGER_SECONDS", 0.2)
    gate = serve()
    with gate.connect() as sock:
        sock.sendall(REFUSED)
        assert read_exactly(sock, 10_000).startswith(b"HTTP/1.1 403 ")
        gate.idle()
    monkeypatch.setattr(linger, "LINGER_LONGEST", 0.5)
    _sends_until_closed(gate)
    monkeypatch.setattr(linger, "LINGER_SECONDS", 60.0)
    monkeypatch.setattr(linger, "LINGER_BYTES", 1000)
    _sends_until_closed(gate)


def _sends_until_closed(gate: Serving) -> None:
    with gate.connect() as sock:
        sock.sendall(REFUSED)
        read_exactly(sock, 10_000)

        def closed() -> bool:
            try:
                sock.sendall(b"x" * 100)
            except OSError:
                return True
            time.sleep(0.01)
            return False

        wait(closed)


def test_an_upload_goes_on_to_its_end(serve: Serve) -> None:
    """B37, B46, B47: a client that reads only when all is sent gets its answer, and others are served meanwhile."""
    gate = serve()
    block = bytes(1 << 20)
    with gate.connect() as sock:
        sock.sendall(REFUSED)
        for number in range(200):
            sock.sendall(block)
            if number % 50 == 0:
                assert gate.raw(REFUSED).startswith(b"HTTP/1.1 403 ")
        assert read_exactly(sock, 10_000).startswith(b"HTTP/1.1 403 ")
    gate.idle()


def test_a_storm_of_refusals_leaves_nothing(serve: Serve) -> None:
    """B40: each is answered, none is left open."""
    gate = serve()
    for _ in range(300):
        assert gate.raw(REFUSED).startswith(b"HTTP/1.1 403 ")
    assert len(gate.events(300)) == 300
    gate.idle()


def test_lines_say_what_was_tried() -> None:
    """B68, GAT-7: for what was allowed and not reached, the addresses; no fix is offered, since none would help."""
    decision = GateTask("t", policy_of("a.test")).plan(parse_authority("a.test:443")).decision
    line = refusal_line(decision, Reason.UPSTREAM_REFUSED, ("1.2.3.4", "1.2.3.5"))
    assert "refused the connection" in line
    assert line.endswith("(tried 1.2.3.4, 1.2.3.5)")
    answer = render(decision, Reason.UPSTREAM_REFUSED, ("1.2.3.4",))
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"fix=" not in answer
    assert render(decision, Reason.UPSTREAM_REFUSED, (), body=False).endswith(b"\r\n\r\n")
