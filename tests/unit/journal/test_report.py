"""tidegate.journal.report."""

from __future__ import annotations

import json

from tests.unit.journal.events import event, refused
from tidegate.journal.report import report_text
from tidegate.journal.summary import Summary


def test_the_report_says_what_the_net_lines_say() -> None:
    """JRN-1: --report writes the same for machines: each host:port, verdict and rule with its count."""
    summary = Summary()
    for one in (event(bytes_up=5), event(), refused(fix="--allow b.test:443")):
        summary.add(one)
    report = json.loads(report_text(summary.rows(), 2, exit_status=0))
    assert (report["exit"], report["refused"], report["more"]) == (0, 1, 2)
    assert report["connections"][0] == {
        "host": "a.test",
        "port": 443,
        "verdict": "allow",
        "how": "tunneled",
        "reason": "allowed",
        "rule": "a.test",
        "name": "policy",
        "source": "p.yaml:3:5",
        "fix": "",
        "phase": "runtime",
        "count": 2,
        "bytes_up": 5,
        "bytes_down": 0,
    }
    assert report["connections"][1]["fix"] == "--allow b.test:443"
