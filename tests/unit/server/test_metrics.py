"""tidegate.server.metrics: what is counted, under labels of closed sets only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.server.kit import Front, policy, served, until
from tidegate.model.event import Event
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Phase, Verdict
from tidegate.server.exposition import PROMETHEUS, text
from tidegate.server.metrics import ConnectionCounts, families

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.server.serve import Server


def event(host: str, *, count: int = 1) -> Event:
    """Return a refusal, or many that were folded."""
    return Event(
        0.0, "t", Phase.RUNTIME, Verdict.DENY, "", "no-rule", "", host, 443, Reason.NO_RULE, How.REFUSED,
        bytes_up=3, bytes_down=5, count=count,
    )  # fmt: skip


def test_hosts_are_no_labels() -> None:
    """JRN-6: ten thousand hosts are one line: cardinality is that of verdict, how and reason."""
    counts = ConnectionCounts()
    for number in range(10_000):
        counts.add(event(f'h{number}"\n.test'))
    counts.add(event("x", count=7))
    connections, moved = counts.families()
    assert connections.samples == (({"verdict": "deny", "how": "refused", "reason": "no_rule"}, 10_007),)
    assert moved.samples == (({"direction": "up"}, 30_003), ({"direction": "down"}, 50_005))


def test_a_server_counts_what_its_tasks_do(tmp_path: Path) -> None:
    """JRN-6: a refusal of a living task is there, no name of its host, folder or task; each family is there once."""

    async def go(server: Server) -> str:
        front = await Front.open(server, tmp_path, rules=policy("a.test:80"))
        await front.asks("secret-host.test:443")
        await until(lambda: bool(server.ledger.counts.families()[0].samples))
        return text(families(server), PROMETHEUS).decode()

    found = served(tmp_path, go)
    assert 'tidegate_connections_total{verdict="deny",how="refused",reason="no_rule"} 1\n' in found
    assert "tidegate_tasks_living 1\n" in found
    assert "tidegate_questions_open 0\n" in found
    assert "secret-host" not in found
    assert str(tmp_path) not in found
    types = [line.split()[2] for line in found.splitlines() if line.startswith("# TYPE")]
    assert len(types) == len(set(types))
