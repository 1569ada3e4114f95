"""What a front tells a gate, or a server, about a task before there is one: plain data that marshal and JSON carry.

A gate that is a child of the front and a server's take the same message; what only one of them reads is in it all the
same (runtime/channel.py has how it travels).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tidegate.policy.policy import Policy
    from tidegate.runtime.task import Order

_PROXY_VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")


def first_message(
    order: Order,
    policy: Policy,
    hold: str,
    phase: str,
    *,
    names: Iterable[str],
    met: Mapping[str, tuple[tuple[str, int], ...]],
    roots: str,
) -> dict[str, Any]:
    """Return what the gate of this task begins with, in `phase`.

    `names` are those of the task itself, `met` the services of this machine that each phase meets on its loopback, and
    `roots` the certificates (PEM) that destinations are verified against, '' where nothing is read inside TLS.
    """
    from tidegate.policy.snapshot import to_plain

    return {
        "task": order.task,
        "phase": phase,
        "policy": to_plain(policy),
        "log": order.log,
        "rotate": order.rotate,
        "environment": proxies_of(order.environ),
        "protected_ports": (),
        "own_names": lower(names),
        "met": met,
        "publish": tuple((one.addresses, one.port, one.inside, one.named) for one in order.publish),
        "ask": order.ask,
        "state": order.state,
        "home": order.environ.get("HOME", "/"),
        "wait_seconds": order.wait_seconds,
        "roots": roots,
        "secrets": tuple(secret.name for secret in order.secrets),
        "keys": tuple((key.variable, key.hosts, key.place, key.field) for key in order.keys),
        **about(order, hold),
    }


def about(order: Order, hold: str) -> dict[str, Any]:
    """Return what a server shows of a task."""
    return {"command": order.command, "folder": order.folder, "hold": hold, "issue": order.issue}


def proxies_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that name the operator's own upstream proxies (GAT-8), in either case."""
    return {name: value for name, value in environ.items() if name.upper() in _PROXY_VARIABLES}


def lower(names: Iterable[str]) -> tuple[str, ...]:
    """Return names in the form in which the gate compares them."""
    return tuple(name.lower() for name in names)
