"""Fixtures of the gate's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.gate.kit import Serving, policy_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_POLICY = ("ask", "deny", "limit", "default", "limits", "tls", "upstream_resolve", "private", "own", "protected_ports")


@pytest.fixture
def serve() -> Iterator[Callable[..., Serving]]:
    """Start gates: `serve("a.test:80", deny=("b.test",), limits=…, asker=…)`; stopped and checked at the end."""
    running: list[Serving] = []

    def start(*allow: str, **options: Any) -> Serving:
        policy = policy_of(*allow, **{name: options.pop(name) for name in _POLICY if name in options})
        serving = Serving(policy, **options)
        running.append(serving)
        return serving

    yield start
    for serving in running:
        serving.stop()
