"""tidegate.gate.own_servers: who asks the proxy for a loopback, and what a refusal adds."""

from __future__ import annotations

import pytest

from tests.unit.gate.kit import policy_of
from tidegate.gate.own_servers import NOTE, is_own, noted
from tidegate.model.destination import parse_authority
from tidegate.model.verdict import Phase
from tidegate.policy.decide import decide


@pytest.mark.parametrize(
    ("host", "own"),
    [
        *((host, True) for host in ("localhost", "a.localhost", "127.0.0.1", "127.0.0.5", "0.0.0.0")),
        *((host, True) for host in ("[::1]", "[::]", "[::ffff:127.0.0.1]")),
        *((host, False) for host in ("localhost.test", "notlocalhost", "a.test", "10.0.0.1", "1.2.3.4", "[fd00::1]")),
    ],
)
def test_what_a_task_means_by_its_own(host: str, own: bool) -> None:
    """HLD-10, GAT-10: every form of loopback, and of no address, and nothing that only looks like it."""
    destination = parse_authority(f"{host}:80")
    assert is_own(destination.host) is own
    refused = decide(policy_of(), destination, Phase.RUNTIME)
    assert noted(refused).sentence().count(NOTE) == own


def test_what_is_let_through_has_no_note() -> None:
    """HLD-10: a rule for a service of this machine means this machine."""
    allowed = decide(policy_of("localhost:80"), parse_authority("localhost:80"), Phase.RUNTIME)
    assert allowed.allowed
    assert noted(allowed) is allowed
