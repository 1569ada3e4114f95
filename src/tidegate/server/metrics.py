"""What the server counts, as metrics (JRN-6): connections and bytes, tasks, questions, look-ups, the gate, the sinks.

Rules of the file: labels are closed sets of the model (verdict, how, reason), the two directions, and the names that
the owner gave to sinks, of which there are at most `sinks.MOST`. No host, no task, no folder: cardinality is bounded,
and whoever reads metrics learns of no destination. Counts begin with the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.questions.table import OPEN
from tidegate.server.exposition import COUNTER, GAUGE, Family, gauge

if TYPE_CHECKING:
    from typing import Any

    from tidegate.model.event import Event
    from tidegate.server.serve import Server

_SINKS = (
    ("sink_lag_lines", GAUGE, "Lines of the action log that a sink has not confirmed", "lag"),
    ("sink_sent", COUNTER, "Records that a sink's receiver confirmed", "sent"),
    ("sink_set_aside", COUNTER, "Records that a sink's receiver refused for ever", "set_aside"),
    ("sink_lost", COUNTER, "Lines that were gone from the log before a sink had them", "lost"),
)


class ConnectionCounts:
    """Connections that ended, by verdict, how and reason. Counted on the gate's thread, read on any."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], int] = {}
        self._up = self._down = 0

    def add(self, event: Event) -> None:
        """Count one event."""
        key = (event.verdict.value, event.how.value, event.reason.metric)
        self._counts[key] = self._counts.get(key, 0) + event.count
        self._up += event.bytes_up
        self._down += event.bytes_down

    def families(self) -> list[Family]:
        """Return them as metrics."""
        connections = tuple(
            ({"verdict": verdict, "how": how, "reason": reason}, count)
            for (verdict, how, reason), count in sorted(self._counts.copy().items())
        )
        moved = (({"direction": "up"}, self._up), ({"direction": "down"}, self._down))
        return [
            Family("tidegate_connections", COUNTER, "Connections that ended, and refusals", connections),
            Family("tidegate_bytes", COUNTER, "Bytes that connections moved; up is away from the task", moved),
        ]


def families(server: Server) -> list[Family]:
    """Return all metrics of a server. On the loop's thread; reads what sinks keep, which blocks for a moment."""
    gate = server.gate
    lookups = tuple(({"outcome": outcome}, count) for outcome, count in sorted(gate.lookups().items()))
    asked = sum(question.state in OPEN for question in server.desk.questions())
    sinks = server.sinks.shown()
    return [
        Family("tidegate_build", GAUGE, "The version that serves", (({"version": server.version}, 1),)),
        gauge("tidegate_start_time_seconds", "When the server began, in Unix seconds", server.started),
        gauge("tidegate_tasks_living", "Tasks that live", len(server.registry.living())),
        gauge("tidegate_questions_open", "Questions that wait for a person", asked),
        gauge("tidegate_connections_open", "Connections that the gate serves now", gate.gate.connections),
        *server.ledger.counts.families(),
        Family("tidegate_dns_lookups", COUNTER, "Look-ups that the gate made, by outcome", lookups),
        gauge("tidegate_gate_loop_lag_seconds", "How late the gate's loop was at its last beat", round(gate.lag, 6)),
        Family("tidegate_gate_faults", COUNTER, "Connections that were closed by a bug", (({}, gate.gate.faults),)),
        gauge("tidegate_action_log_lines", "The number of the action log's last line", server.log.head.seq),
        *(Family(f"tidegate_{name}", kind, text, _by_sink(sinks, key)) for name, kind, text, key in _SINKS),
        Family(
            "tidegate_sink_failing", GAUGE, "Whether a sink cannot send now",
            tuple((labels, int(bool(one["error"]))) for labels, one in _labelled(sinks)),
        ),
    ]  # fmt: skip


def _labelled(sinks: list[dict[str, Any]]) -> list[tuple[dict[str, str], dict[str, Any]]]:
    return [({"sink": one["name"], "kind": one["kind"]}, one) for one in sinks]


def _by_sink(sinks: list[dict[str, Any]], key: str) -> tuple[tuple[dict[str, str], int], ...]:
    return tuple((labels, one[key]) for labels, one in _labelled(sinks))
