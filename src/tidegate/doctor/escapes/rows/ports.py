"""Ports of this machine: published ones, which no rule reaches, and services, which need a rule.

The policy of the trial names three of them exactly: `localhost` with the port that another task publishes, with the one
that this task publishes itself, and with that of a service.
"""

from __future__ import annotations

import socket

from tidegate.doctor.escapes.rows.asked import connect, gate, say
from tidegate.doctor.escapes.table import CAPTURED, GATED, HELD, NETNS, escape, neighbour
from tidegate.doctor.escapes.tools import PATIENCE, SaidError, word, wrong

_STAYS = 0.3  # seconds; who is refused hears so at once


def _met(port: int) -> None:
    """Connect to the task's own loopback, where the gate meets what a rule names."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as wire:
        wire.sendall(word().encode())
        raise SaidError("closed" if not wire.recv(1) else "answered")


@escape("403", holds=GATED)
def another_tasks_published_port() -> None:
    """By a rule that names it (ADR-1)."""
    say(connect(f"localhost:{HELD['published']}"))


@escape("403", holds=GATED)
def another_tasks_published_port_by_address() -> None:
    """By the address that the name leads to."""
    say(connect(f"127.0.0.1:{HELD['published']}"))


@escape("403", holds=GATED)
def another_tasks_published_port_in_clear_text() -> None:
    """By an absolute URL."""
    host = f"localhost:{HELD['published']}"
    say(f"GET http://{host}/{word()} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())


@escape("ECONNRESET", "closed", "answered", "ECONNREFUSED", holds=GATED)
def another_tasks_published_port_where_it_is_met() -> None:
    """Without the proxy, where a service with such a rule is met: its canary hears nothing."""
    _met(HELD["published"])


@escape("403", holds=(NETNS, CAPTURED))
def its_own_published_port_by_the_gate() -> None:
    """The way in is no way out."""
    say(connect(f"localhost:{HELD['own_published']}"))


@escape("403", holds=GATED)
def a_service_without_a_rule() -> None:
    """A service of this machine that no rule names."""
    say(connect(f"localhost:{HELD['tcp4']}"))


@neighbour(holds=GATED)
def a_service_with_a_rule() -> None:
    """By the proxy and, without it, on the task's own loopback."""
    with gate() as wire:
        wire.sendall(connect(f"localhost:{HELD['open_tcp4']}"))
        if not wire.recv(99).startswith(b"HTTP/1.1 200"):
            wrong("the proxy refused it")
    with socket.create_connection(("127.0.0.1", HELD["open_tcp4"]), PATIENCE) as wire:
        wire.settimeout(_STAYS)
        try:
            wire.recv(1)
        except TimeoutError:
            return
        wrong("it was ended")
