"""tidegate.journal.refusals."""

from __future__ import annotations

from tests.unit.journal.events import AT, event, refused
from tidegate.journal.fold import FIRST, WINDOW
from tidegate.journal.refusals import HOSTS, RefusalLines
from tidegate.model.reason import Reason
from tidegate.model.verdict import Verdict


def test_a_refusal_is_a_line_and_its_host_one_more_once() -> None:
    """JRN-3, JRN-4: each refusal is net.blocked with name:port; egress.refused comes once for a host."""
    lines = RefusalLines()
    first = lines.take(refused())
    assert [kind for kind, _ in first] == ["net.blocked", "egress.refused"]
    assert first[0][1]["host"] == "b.test:443"
    assert first[1][1] == {"host": "b.test", "port": 443, "phase": "runtime", "reason": "no-rule"}
    assert [kind for kind, _ in lines.take(refused(port=80))] == ["net.blocked"]
    assert [kind for kind, _ in lines.take(refused(host="c.test"))] == ["net.blocked", "egress.refused"]


def test_a_refused_call_to_a_model_service_has_its_path() -> None:
    """INS-8: host and path; calls of other paths are not folded into one."""
    lines = RefusalLines()
    told = [lines.take(refused(path=path)) for path in ("/v1/files", "/v1/batches")]
    assert [fields["path"] for found in told for word, fields in found if word == "net.blocked"] == [
        "/v1/files",
        "/v1/batches",
    ]


def test_what_was_let_through_is_no_refusal() -> None:
    """JRN-3: only refusals go into the joined log."""
    assert RefusalLines().take(event()) == []


def test_an_allowed_client_that_went_away_was_not_refused() -> None:
    """RFC 8305, ASK-3: what lost a race of addresses is no refusal, nor is who left a question that the retry joins."""
    gone = refused(verdict=Verdict.ALLOW, reason=Reason.CLIENT_GONE)
    assert RefusalLines().take(gone) == []
    assert RefusalLines().take(gone.replace(reason=Reason.STOPPING)) == []
    assert RefusalLines().take(gone.replace(verdict=Verdict.ASK)) == []
    assert len(RefusalLines().take(refused(verdict=Verdict.ASK, reason=Reason.NOT_ANSWERED))) == 2
    assert len(RefusalLines().take(refused(verdict=Verdict.ALLOW, reason=Reason.UPSTREAM_NXDOMAIN))) == 2


def test_an_address_is_bracketed() -> None:
    """JRN-3: name and port can be told apart."""
    assert RefusalLines().take(refused(host="2600:beef::1"))[0][1]["host"] == "[2600:beef::1]:443"


def test_look_ups_around_the_gate_are_no_one_place() -> None:
    """JRN-3: they come as `DNS lookups (port 53)`, without a port of their own."""
    event_ = refused(host="DNS lookups (port 53)", port=0, reason=Reason.DNS_AROUND)
    assert RefusalLines().take(event_)[0][1]["host"] == "DNS lookups (port 53)"


def test_a_burst_is_folded_and_none_is_lost() -> None:
    """JRN-3: 1,000 refusals of one kind are a few lines whose counts add up."""
    lines = RefusalLines()
    written = [line for _ in range(1000) for line in lines.take(refused())]
    written += lines.due(AT + WINDOW) + lines.rest()
    blocked = [fields for kind, fields in written if kind == "net.blocked"]
    assert len(blocked) == FIRST + 1
    assert sum(fields.get("count", 1) for fields in blocked) == 1000


def test_after_a_hundred_hosts_one_last_line_says_suppressed() -> None:
    """JRN-4: the 100th host has its line, the 101st says that the rest is left out, the 102nd has none."""
    lines = RefusalLines()
    told = []
    for number in range(HOSTS + 2):
        told += [fields for kind, fields in lines.take(refused(host=f"h{number}.test")) if kind == "egress.refused"]
    assert len(told) == HOSTS + 1
    assert [fields.get("suppressed", False) for fields in told[-2:]] == [False, True]
