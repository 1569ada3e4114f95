"""Rules as rows and back."""

from __future__ import annotations

import marshal

import pytest

from tidegate.model.rule import Layer, Origin, RuleLimits, Shape, only
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.rows import KEY, LAYER, ORIGIN, PHASE, PORT, SHAPE, VERDICT, limits_row, row_of, rule_of, rule_row
from tidegate.policy.rules import RuleError

LIMITS = RuleLimits(1000, 60, only(("GET", "HEAD"), ("/repos/**",)))


@pytest.mark.parametrize("text", ["a.test", "*.a.test:443", "**.a.test", "*", "1.2.3.4:22", "[::1]:80"])
@pytest.mark.parametrize("limits", [RuleLimits(), LIMITS])
def test_there_and_back(text: str, limits: RuleLimits) -> None:
    """A row is plain data and holds all of a rule, its limits too (POL-6)."""
    row = rule_row(text, Verdict.ASK, Phase.INSTALL, "policy", "p.yaml:3:9", Origin.WRITTEN, Layer.FOLDER, limits)
    assert marshal.loads(marshal.dumps(row)) == row
    rule = rule_of(row)
    assert (rule.text, rule.verdict, rule.phase, rule.limits) == (text, Verdict.ASK, Phase.INSTALL, limits)
    assert (rule.name, rule.source, rule.origin, rule.layer) == ("policy", "p.yaml:3:9", Origin.WRITTEN, Layer.FOLDER)
    assert row_of(rule) == row


def test_columns() -> None:
    """The named columns are where the index looks for them."""
    row = rule_row("*.a.test:443", Verdict.DENY, Phase.RUNTIME, "policy", "x", Origin.PRESET, Layer.USER)
    assert (row[SHAPE], row[KEY], row[PORT]) == (Shape.ONE_LABEL.value, "a.test", 443)
    assert (row[VERDICT], row[PHASE], row[ORIGIN], row[LAYER]) == ("deny", "runtime", Origin.PRESET, Layer.USER)


def test_no_limits_is_none() -> None:
    """Limits that bound nothing are not kept, however they were made."""
    assert limits_row(RuleLimits()) is None
    assert limits_row(LIMITS) == (1000, 60, only(("GET", "HEAD"), ("/repos/**",)))


def test_bad_text() -> None:
    """A text that is no rule makes no row."""
    with pytest.raises(RuleError):
        rule_row("10.0.0.0/8", Verdict.ALLOW, Phase.RUNTIME, "policy", "x", Origin.WRITTEN, Layer.USER)
