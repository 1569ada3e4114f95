"""tidegate.model.decision."""

from __future__ import annotations

from tidegate.model.decision import Decision
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.model.rule import Rule, Shape
from tidegate.model.verdict import Phase, Verdict

RULE = Rule(
    "*.a.test:443", Shape.ONE_LABEL, "a.test", 443, Verdict.ALLOW, Phase.RUNTIME, "policy", "p.yaml:3:9"
)  # fmt: skip


def _decision(**changes: object) -> Decision:
    base = Decision(
        Verdict.ALLOW,
        parse_authority("x.a.test:443"),
        Phase.RUNTIME,
        Reason.ALLOWED,
        RULE,
        RULE.name,
        RULE.source,
        fix="--allow x.a.test:443",
    )
    return base.replace(**changes)


def test_one_line_says_what_by_which_rule_and_what_to_do() -> None:
    """POL-6, GAT-7: the 403 text is this sentence."""
    refused = _decision().refuse(Reason.PRIVATE_ADDRESS, address="10.0.0.1")
    line = refused.sentence()
    assert line.startswith("x.a.test:443: ")
    for part in ("private-address", "'*.a.test:443'", "policy", "p.yaml:3:9", "10.0.0.1", "--allow x.a.test:443"):
        assert part in line
    assert "\n" not in line


def test_a_note_is_for_a_refusal() -> None:
    """POL-6: before what would allow it, and not where it is allowed."""
    assert _decision(note="see there").refuse(Reason.OWN_ADDRESS).sentence().count("; see there; to allow it:") == 1
    assert "see there" not in _decision(note="see there").sentence()


def test_a_refusal_keeps_what_governed_it() -> None:
    """POL-6: verdict, rule, name, source and phase stay one object through admission."""
    refused = _decision().refuse(Reason.OWN_ADDRESS, fix="")
    assert not refused.allowed
    assert refused.verdict is Verdict.DENY
    assert (refused.rule, refused.name, refused.source) == (RULE, "policy", "p.yaml:3:9")
    assert "to allow it" not in refused.sentence()
    assert _decision().allowed


def test_without_a_rule_there_is_no_rule_text() -> None:
    """POL-6: `no-rule` is a name, not a rule."""
    nothing = _decision(rule=None, name="no-rule", source="profile closed", reason=Reason.NO_RULE, fix="")
    assert nothing.rule_text == ""
    assert "no-rule" in nothing.sentence()
