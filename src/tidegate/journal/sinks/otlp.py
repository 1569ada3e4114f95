"""The log as OpenTelemetry log records: OTLP 1.x over HTTP, in its JSON encoding.

As the OTLP specification has it: 64-bit numbers are texts, field names are lowerCamelCase, an answer of 200 may say how
many records were rejected (`partialSuccess`), which are not to be sent again and are set aside as a number. Severities
are those of syslog, as the log data model maps them (appendix B).
"""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any, Final

from tidegate.journal.sinks.sink import LATER, TAKEN, Outcome, judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.journal.sinks.record import Record
    from tidegate.journal.sinks.target import Reply, Target

PATH: Final = "/v1/logs"
SEVERITIES: Final = {2: (18, "CRITICAL"), 3: (17, "ERROR"), 4: (13, "WARN"), 5: (10, "NOTICE"), 6: (9, "INFO")}
_ANSWER: Final = 1 << 16
_OWN: Final = frozenset(("seq", "at", "type", "prev", "seal"))


class OtlpSink:
    """See the head of the file. `resource` is what sends: attributes by name; `headers` say who we are."""

    def __init__(self, target: Target, headers: dict[str, str], resource: dict[str, str]) -> None:
        self._target = target
        self._path = target.path if target.path != "/" else PATH
        self._headers = headers | {"Content-Type": "application/json", "User-Agent": "tidegate"}
        self._resource = attributes(resource)

    def send(self, batch: Sequence[Record]) -> Outcome:
        """Export a batch."""
        logs = {"scope": {"name": "tidegate.journal"}, "logRecords": [log_record(record) for record in batch]}
        whole = {"resourceLogs": [{"resource": {"attributes": self._resource}, "scopeLogs": [logs]}]}
        body = json.dumps(whole, separators=(",", ":")).encode("ascii")
        reply = self._target.post(body, self._headers, path=self._path, keep=_ANSWER)
        outcome = judged(reply)
        return _partial(reply, len(batch), outcome.why) if outcome.state == TAKEN else outcome

    def abort(self) -> None:
        """End what is on its way."""
        self._target.abort()

    def close(self) -> None:
        """Nothing stays open."""


def log_record(record: Record) -> dict[str, Any]:
    """Return a record as a LogRecord."""
    number, text = SEVERITIES[record.severity]
    nanoseconds = str(_nanoseconds(record.at))
    more = {name: value for name, value in record.fields.items() if name not in _OWN}
    return {
        "timeUnixNano": nanoseconds,
        "observedTimeUnixNano": nanoseconds,
        "severityNumber": number,
        "severityText": text,
        "eventName": record.kind,
        "body": {"stringValue": record.raw.decode("ascii", "replace")},
        "attributes": attributes({"log.record.uid": record.id, "tidegate.seq": record.seq})
        + attributes({f"tidegate.{name}": value for name, value in more.items()}),
    }


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return values by name as KeyValues."""
    return [{"key": name, "value": _any(value)} for name, value in values.items()]


def _any(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any(one) for one in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": attributes(value)}}
    return {"stringValue": "" if value is None else str(value)}


def _nanoseconds(at: str) -> int:
    try:
        when = dt.datetime.fromisoformat(at)
    except ValueError:
        return 0  # unknown, as the data model has it
    return int(when.timestamp()) * 1_000_000_000 + when.microsecond * 1000


def _partial(reply: Reply, count: int, why: str = "") -> Outcome:
    try:
        answer = json.loads(reply.body or b"{}")
        partial = answer.get("partialSuccess") or {}
        rejected = int(partial.get("rejectedLogRecords") or 0)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return Outcome(LATER, "it answers with something that is not OTLP's answer in JSON")
    lost = min(max(rejected, 0), count)
    return Outcome(TAKEN, f"it rejected {rejected} of them" if lost else why, lost=lost)
