"""Fixtures of the gate's tests."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.gate.captive import Captive
from tests.unit.gate.kit import Serving, policy_of
from tidegate.gate.capture import CaptureSockets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.api import Lab

_POLICY = (
    "ask",
    "deny",
    "limit",
    "default",
    "limits",
    "tls",
    "upstream_resolve",
    "private",
    "own",
    "protected_ports",
    "never_inspected",
)


@pytest.fixture
def serve() -> Iterator[Callable[..., Serving]]:
    """Start gates: `serve("a.test:80", deny=("b.test",), limits=…, asker=…)`; stopped and checked at the end."""
    with contextlib.ExitStack() as running:  # one that does not stop keeps no other from it

        def start(*allow: str, **options: Any) -> Serving:
            policy = policy_of(*allow, **{name: options.pop(name) for name in _POLICY if name in options})
            serving = Serving(policy, **options)
            running.callback(serving.stop)
            return serving

        yield start


@pytest.fixture
def capture(lab: Lab, serve: Callable[..., Serving]) -> Iterator[Callable[..., tuple[Serving, Captive]]]:
    """Start gates with a captive namespace: `capture("a.test:80")`; `ports` are for `redirect=False`."""
    with contextlib.ExitStack() as open_:

        def start(
            *allow: str, redirect: bool = True, ports: tuple[int, ...] = (), **options: Any
        ) -> tuple[Serving, Captive]:
            named = ("most_names", "own_names", "ranges", "ipv6")
            more = {name: options.pop(name) for name in named if name in options}
            captive = open_.enter_context(Captive(redirect=redirect, ipv6=lab.ipv6))
            gate = serve(*allow, **options)
            sockets = CaptureSockets(**captive.sockets(*ports), **more)
            captive.handle = gate.on_thread(lambda: gate.gate.add_capture(sockets, gate.task))
            return gate, captive

        yield start
