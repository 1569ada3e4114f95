"""Events to write about in the journal's tests."""

from __future__ import annotations

from typing import Any

from tidegate.model.event import Event
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Phase, Verdict

AT = 1795910400.125  # 2026-11-29T00:00:00.125Z


def event(**changes: Any) -> Event:
    """Return an allowed tunnel to a.test:443, with changes."""
    base = Event(
        at=AT,
        task="t1",
        phase=Phase.RUNTIME,
        verdict=Verdict.ALLOW,
        rule="a.test",
        name="policy",
        source="p.yaml:3:5",
        host="a.test",
        port=443,
        reason=Reason.ALLOWED,
        how=How.TUNNELED,
        address="1.2.3.4",
        status=200,
        method="CONNECT",
    )
    return base.replace(**changes)


def refused(**changes: Any) -> Event:
    """Return a refusal of b.test:443, with changes."""
    base = {
        "verdict": Verdict.DENY,
        "how": How.REFUSED,
        "reason": Reason.NO_RULE,
        "rule": "",
        "name": "no-rule",
        "source": "profile closed",
        "host": "b.test",
        "status": 403,
        "address": "",
    }
    return event(**(base | changes))
