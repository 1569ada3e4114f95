"""The journal's line in the making."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.unit.gate.kit import Recording, policy_of
from tidegate.gate.gate import Gate, GateTask
from tidegate.gate.record import Entry
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.gate.kit import Serving


def test_an_entry_is_written_once_with_all_it_knows() -> None:
    """JRN-1: rule, address, bytes, status, duration; a second write says nothing."""
    recording = Recording()
    now = [10.0]
    gate = Gate(recorder=recording, wall=lambda: 1000.0, clock=lambda: now[0])
    task = GateTask("t1", policy_of("a.test"))
    entry = Entry(gate, task, task.plan(parse_authority("a.test:443")).decision, "CONNECT")
    entry.address, entry.status, entry.up, entry.down, entry.detail = "1.2.3.4", 200, 5, 7, "tls"
    now[0] = 12.5
    entry.write(How.TUNNELED, Reason.ALLOWED)
    entry.write(How.REFUSED, Reason.INTERNAL)
    (event,) = recording.events
    assert (event.at, event.duration, event.task) == (1000.0, 2.5, "t1")
    assert (event.rule, event.name, event.source, event.verdict) == ("a.test", "command-line", "--allow", Verdict.ALLOW)
    assert (event.host, event.port, event.address, event.status) == ("a.test", 443, "1.2.3.4", 200)
    assert (event.bytes_up, event.bytes_down, event.detail, event.fix) == (5, 7, "tls", "")
    gate.close()


def test_what_never_became_a_decision_is_recorded_too() -> None:
    """JRN-1: malformed requests have their raw host, escaped by whoever read it; a refusal carries its fix."""
    recording = Recording()
    gate = Gate(recorder=recording, wall=time.monotonic)
    task = GateTask("t1", policy_of())
    entry = Entry(gate, task, None, "")
    entry.host = "a\\x0ab"
    entry.write(How.REFUSED, Reason.BAD_HOST)
    Entry(gate, task, task.plan(parse_authority("b.test:1")).decision, "CONNECT").write(How.REFUSED, Reason.NO_RULE)
    first, second = recording.events
    assert (first.host, first.verdict, first.name) == ("a\\x0ab", Verdict.DENY, "malformed")
    assert second.fix == "--allow b.test:1"
    gate.close()


def test_a_malformed_request_names_what_it_wanted(serve: Callable[..., Serving]) -> None:
    """JRN-1: a Host that disagrees leaves the host and port of the request line in the line."""
    gate = serve("a.test:443")
    assert b" 400 " in gate.raw(b"CONNECT a.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n")
    assert b" 400 " in gate.raw(b"GET http://a.test:81/?secret HTTP/1.1\r\nHost: b.test\r\n\r\n")
    assert [(event.host, event.port, event.reason) for event in gate.events(2)] == [
        ("a.test", 443, Reason.HOST_MISMATCH),
        ("a.test", 81, Reason.HOST_MISMATCH),
    ]
