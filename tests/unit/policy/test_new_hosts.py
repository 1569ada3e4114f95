"""tidegate.policy.new_hosts."""

from __future__ import annotations

import pytest

from tests.unit.journal.contact_lines import contact, refusal
from tests.unit.policy.written import policy, row
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Phase, Verdict
from tidegate.policy import new_hosts
from tidegate.policy.new_hosts import NewHosts
from tidegate.policy.policy import Policy, make_policy


def checked(of: Policy, *contacts: object, tried: bool = False) -> NewHosts:
    """Return a check that has seen these lines."""
    check = NewHosts(of, tried=tried)
    for one in contacts:
        check.add(one)  # type: ignore[arg-type]
    return check


@pytest.mark.parametrize(
    ("of", "host", "port", "why"),
    [
        (policy(["a.test:443"]), "a.test", 443, ""),
        (policy(["a.test"]), "a.test", 8443, ""),
        (policy(["**.test"]), "a.test", 443, ""),
        (policy(["*"]), "a.test", 443, ""),
        (policy(ask=["a.test"]), "a.test", 443, ""),
        (policy(["[2600:beef::1]:443"]), "2600:beef::1", 443, ""),
        (policy(["a.test:443"]), "a.test", 80, "a rule names this host, but with another port"),
        (policy(["b.test"]), "a.test", 443, "no rule allows it"),
        (policy([], default=Verdict.ALLOW), "a.test", 443, "no rule names it"),
        (policy([], default=Verdict.ASK), "a.test", 443, "no rule names it"),
        (policy(["a.test"], deny=["**.test"]), "a.test", 443, "a rule denies it"),
        (policy(["**.test"]), "1.2.3.4", 443, "an address needs a rule that names it exactly"),
        (policy(["*"]), "metadata.google.internal", 80, "cloud metadata is never reached, whatever a policy says"),
        (policy(["*"]), "A b", 443, "no host: it has ' ', and a host holds only letters, digits, '.', '-' and '_'"),
    ],
)
def test_what_names_a_host(of: Policy, host: str, port: int, why: str) -> None:
    """JRN-7: an allow or ask rule on that port names a host; a default names none, and a deny is no name."""
    rows = checked(of, contact(host, port)).rows()
    assert [new.why for new in rows] == ([why] if why else [])


def test_phases_are_told_apart() -> None:
    """JRN-7, POL-7: what a policy names for one phase is new in the other."""
    of = make_policy([row("a.test", phase=Phase.INSTALL)])
    check = checked(of, contact(phase=Phase.INSTALL), contact())
    assert [(new.text, new.phase) for new in check.rows()] == [("a.test:443", Phase.RUNTIME)]


def test_only_what_was_reached_counts_unless_tries_do() -> None:
    """JRN-7: a refusal reached nothing; with --tried it counts, and so does a look-up; what came in never does."""
    lines = (
        refusal("x.test"),
        refusal("y.test", 0, method="DNS"),
        refusal("a.test", 0, method="DNS"),
        refusal("10.0.0.1", 53, Reason.NOT_TCP),
        contact("z.test", how=How.PUBLISHED),
    )
    of = policy(["a.test:443"])
    assert checked(of, *lines).rows() == []
    found = checked(of, *lines, tried=True).rows()
    assert [new.text for new in found] == ["10.0.0.1:53", "x.test:443", "y.test"]
    assert found[1].as_json()["how"] == {"refused (no-rule)": 1}


def test_a_look_up_of_what_is_denied_is_new() -> None:
    """JRN-7: a rule for any port denies or names a name without one."""
    of = policy(["*"], deny=["x.test", "y.test:443"])
    lines = (refusal("x.test", 0), refusal("y.test", 0), refusal("metadata", 0))
    assert [new.host for new in checked(of, *lines, tried=True).rows()] == ["metadata", "x.test"]


def test_a_new_host_says_how_often_how_and_since_when() -> None:
    """JRN-7: one row for a place, with what a person needs to find it; the first seen comes first."""
    lines = (
        contact("b.test", at="2026-11-30T00:00:00.000Z"),
        contact("b.test", at="2026-11-28T00:00:00.000Z", how=How.CAPTURED, count=2),
        contact("a.test", at="2026-11-29T00:00:00.000Z"),
    )
    first, second = checked(policy(), *lines).rows()
    assert (second.host, first.count, first.first) == ("a.test", 3, "2026-11-28T00:00:00.000Z")
    assert first.as_json() == {
        "host": "b.test",
        "port": 443,
        "phase": "runtime",
        "count": 3,
        "how": {"tunneled": 1, "captured": 2},
        "first": "2026-11-28T00:00:00.000Z",
        "why": "no rule allows it",
    }


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-7: past the bound new places are counted, and none of them is taken for named."""
    monkeypatch.setattr(new_hosts, "PLACES", 2)
    check = checked(
        policy(["**.ok"]), *(contact(f"h{at}.test") for at in range(5)), *(contact(f"h{at}.ok") for at in range(5))
    )
    assert (len(check.rows()), check.more, check.connections) == (2, 3, 10)
    check.add(contact("h0.test"))
    assert check.rows()[0].count == 2
