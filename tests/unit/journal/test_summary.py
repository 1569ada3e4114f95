"""tidegate.journal.summary."""

from __future__ import annotations

from tests.unit.journal.events import AT, event, refused
from tidegate.journal.summary import KINDS, Summary, net_lines, printable
from tidegate.model.reason import Reason
from tidegate.model.verdict import Phase, Verdict


def _lines(*events: object) -> list[str]:
    summary = Summary()
    for one in events:
        summary.add(one)  # type: ignore[arg-type]
    return net_lines(summary.rows(), summary.more)


def test_a_tunnel_and_a_refusal_read_as_the_contract_has_them() -> None:
    """JRN-1: the two lines of the contract, word for word."""
    tunnel = event(host="registry.npmjs.org", name="package-registries")
    asked = refused(host="example.com", reason=Reason.NO_APPROVER)
    assert _lines(tunnel, asked) == [
        "net: registry.npmjs.org:443 · tunneled (package-registries)",
        "net: example.com:443 · refused, would wait for approval; the command line asks no one (no-rule)",
    ]


def test_equal_connections_are_one_line_with_a_count() -> None:
    """JRN-1: a count above one; another port is another line."""
    assert _lines(event(), event(), event(port=80), event()) == [
        "net: a.test:443 · tunneled (policy) ×3",
        "net: a.test:80 · tunneled (policy)",
    ]


def test_the_phase_is_said_where_it_is_not_the_usual_one() -> None:
    """POL-7, JRN-1: the same host in the set-up and after it is two lines."""
    assert _lines(event(phase=Phase.INSTALL), event(), event(), event(phase=Phase.INSTALL)) == [
        "net: a.test:443 · tunneled (policy) · install ×2",
        "net: a.test:443 · tunneled (policy) ×2",
    ]


def test_what_would_let_them_through_is_said_once() -> None:
    """ADR-2: where an address is the reason, the line that lets it through is printed."""
    fix = "--allow pypi.org:443"
    lines = _lines(refused(host="pypi.org", reason=Reason.PRIVATE_ADDRESS, fix=fix), refused(host="pypi.org", fix=fix))
    assert lines[-1] == "net: to let it through: --allow pypi.org:443"
    assert len(lines) == 3


def test_ipv6_and_odd_hosts_are_safe_to_print() -> None:
    """B07, ASK-6: control and direction characters never reach a terminal; IPv6 stands in brackets."""
    assert _lines(event(host="2600:beef::1"))[0].startswith("net: [2600:beef::1]:443 ")
    assert printable("a\x1b[2J\u202eb") == "a\\x1b[2J\\u202eb"
    assert len(printable("x" * 5000)) < 300


def test_kinds_are_bounded_and_the_rest_is_counted() -> None:
    """A task that tries a million hosts does not flood the terminal."""
    lines = _lines(*(refused(host=f"h{number}.test") for number in range(KINDS + 7)))
    assert len(lines) == KINDS + 1
    assert lines[-1].startswith("net: and 7 more")


def test_an_end_worth_knowing_is_said() -> None:
    """GAT-7: an upstream failure is told apart from a refusal by policy."""
    assert _lines(refused(reason=Reason.UPSTREAM_NXDOMAIN, name="policy"))[0] == (
        "net: b.test:443 · refused, the name does not exist (policy)"
    )


def test_lines_stand_in_the_order_of_beginnings() -> None:
    """JRN-1: pip's index comes before the file it led to, though its connection ended later."""
    assert _lines(event(host="files.test", at=AT + 2), event(host="index.test", at=AT + 1)) == [
        "net: index.test:443 · tunneled (policy)",
        "net: files.test:443 · tunneled (policy)",
    ]


def test_a_request_that_names_nothing_is_still_named() -> None:
    """JRN-1: a malformed request has no host; its line says so instead of showing an empty place."""
    (line,) = _lines(refused(host="", port=0, reason=Reason.BAD_REQUEST, name="malformed"))
    assert line == "net: a request without a destination · refused, the request is malformed (malformed)"


def test_an_allowed_client_that_went_away_is_not_called_refused() -> None:
    """JRN-1, RFC 8305: the loser of a race of addresses is on record, but nothing kept it from its host."""
    gone = refused(verdict=Verdict.ALLOW, reason=Reason.CLIENT_GONE, name="command-line", fix="")
    assert _lines(gone) == ["net: b.test:443 · not connected, the client went away (command-line)"]
    asked = refused(verdict=Verdict.ASK, reason=Reason.CLIENT_GONE, fix="")
    assert _lines(asked) == ["net: b.test:443 · not connected, the client went away while a person was asked (no-rule)"]
    stopped = refused(verdict=Verdict.ASK, reason=Reason.STOPPING, fix="")
    assert _lines(stopped)[0].startswith("net: b.test:443 · refused, ")
