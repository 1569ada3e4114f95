"""tidegate.journal.sinks.otlp: the JSON of OTLP, and its partial success."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.sinks.receivers import Otlp, until
from tests.sinks.rig import Log, rig
from tests.unit.journal.sinks.test_record import record
from tidegate.journal.sinks.otlp import _partial, log_record
from tidegate.journal.sinks.sink import LATER, TAKEN
from tidegate.journal.sinks.target import Reply

if TYPE_CHECKING:
    from pathlib import Path


def test_a_log_record() -> None:
    """JRN-6: the ProtoJSON of OTLP: 64-bit numbers as texts, lowerCamelCase, severities of the data model."""
    one = record(host="h.test:443", count=7, durable=True, parts=["a", 1], seconds=1.5)
    found = log_record(one)
    assert found["timeUnixNano"] == found["observedTimeUnixNano"] == "1795910400125000000"
    assert (found["severityNumber"], found["severityText"], found["eventName"]) == (13, "WARN", "net.blocked")
    assert found["body"] == {"stringValue": one.raw.decode()}
    values = {each["key"]: each["value"] for each in found["attributes"]}
    assert values == {
        "log.record.uid": {"stringValue": one.id},
        "tidegate.seq": {"intValue": "1"},
        "tidegate.task": {"stringValue": "t1"},
        "tidegate.host": {"stringValue": "h.test:443"},
        "tidegate.count": {"intValue": "7"},
        "tidegate.durable": {"boolValue": True},
        "tidegate.parts": {"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}]}},
        "tidegate.seconds": {"doubleValue": 1.5},
    }


@pytest.mark.parametrize(
    ("body", "state", "lost"),
    [
        ("", TAKEN, 0),
        ("{}", TAKEN, 0),
        ('{"partialSuccess":{}}', TAKEN, 0),
        ('{"partialSuccess":null}', TAKEN, 0),
        ('{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"no"}}', TAKEN, 2),
        ('{"partialSuccess":{"rejectedLogRecords":2}}', TAKEN, 2),
        ('{"partialSuccess":{"rejectedLogRecords":"99"}}', TAKEN, 3),
        ('{"partialSuccess":{"rejectedLogRecords":-5}}', TAKEN, 0),
        ("<html>", LATER, 0),
        ("[]", LATER, 0),
        ('{"partialSuccess":{"rejectedLogRecords":"x"}}', LATER, 0),
    ],
)
def test_partial_success(body: str, state: str, lost: int) -> None:
    """JRN-6: what was rejected is not sent again; what is no answer of OTLP confirms nothing."""
    outcome = _partial(Reply(200, body=body.encode()), 3)
    assert (outcome.state, outcome.lost) == (state, lost)


def test_an_export(tmp_path: Path) -> None:
    """JRN-6: one resource and one scope, at /v1/logs, with the key as a bearer token."""
    log = Log(tmp_path / "a")
    wanted = log.blocked(2)
    with Otlp() as otlp:
        with rig(log, otlp):
            until(lambda: otlp.seqs == wanted)
        _, path, headers, body = otlp.got[0]
    assert (path, headers["Content-Type"]) == ("/v1/logs", "application/json")
    assert headers["Authorization"] == f"Bearer {otlp.key.decode()}"
    (whole,) = json.loads(body)["resourceLogs"]
    assert whole["resource"]["attributes"] == [
        {"key": "service.name", "value": {"stringValue": "tidegate"}},
        {"key": "host.name", "value": {"stringValue": "box"}},
    ]
    assert whole["scopeLogs"][0]["scope"] == {"name": "tidegate.journal"}
