"""Finding rules: the index agrees with reading every rule, and its cost is a handful of probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.written import policy, row, to
from tidegate.model.rule import Layer, Origin, Rule, Shape
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import matches_host
from tidegate.policy.index import Matcher, RuleIndex, packed_literal
from tidegate.policy.rows import rule_of

if TYPE_CHECKING:
    from tidegate.policy.rows import Row

LABELS = st.sampled_from(["a", "b", "c"])
NAMES = st.lists(LABELS, min_size=1, max_size=5).map(".".join)
PORTS = st.sampled_from(["", ":1", ":2"])
PREFIXES = st.sampled_from(["", "*.", "**."])
TEXTS = st.one_of(
    st.tuples(PREFIXES, NAMES, PORTS).map("".join),
    st.sampled_from(["*", "*:1", "1.2.3.4", "1.2.3.4:1", "[::1]:2"]),
)
ROWS = st.lists(
    st.builds(
        row,
        TEXTS,
        st.sampled_from([Verdict.ALLOW, Verdict.ASK]),
        st.just(Phase.RUNTIME),
        st.sampled_from(list(Origin)),
        st.sampled_from([Layer.USER, Layer.FOLDER]),
    ),
    max_size=8,
)
SPECIFIC = {Shape.EXACT: 3, Shape.LITERAL: 3, Shape.ONE_LABEL: 2, Shape.DEEP: 1, Shape.ANY: 0}


def matcher(rows: list[Row]) -> Matcher:
    """Return a matcher of these rows."""
    made = Matcher(tuple(rows), {})
    for position, one in enumerate(rows):
        made.add(position, one)
    return made


def best(rows: list[Row], text: str) -> Rule | None:
    """Return the rule that governs by reading all of them: POL-5 written as an order."""
    destination = to(text)
    matching = [
        (
            SPECIFIC[rule.shape],
            len(rule.key),
            rule.port is not None,
            rule.verdict is Verdict.ASK,
            rule.origin,
            rule.layer,
            at,
        )
        for at, rule in enumerate(map(rule_of, rows))
        if matches_host(rule, destination) and rule.port in {None, destination.port}
    ]
    return rule_of(rows[max(matching)[-1]]) if matching else None


@given(ROWS, st.one_of(NAMES, st.sampled_from(["1.2.3.4", "[::1]"])), st.sampled_from([1, 2, 3]))
def test_index_agrees_with_reading_every_rule(rows: list[Row], host: str, port: int) -> None:
    """The look-up finds exactly the rule that the order of POL-5 puts first, for any set of rules (POL-4, POL-5)."""
    text = f"{host}:{port}"
    host_text = to(text).host.text
    found = matcher(rows)
    got = found.find_literal(host_text, port) if to(text).host.is_literal else found.find(host_text, port)
    assert got == best(rows, text)


@given(ROWS, NAMES)
def test_names_and_ports_agree_with_reading_every_rule(rows: list[Row], host: str) -> None:
    """Whether a rule names a host on some port, and which ports rules give it, is what reading them all says."""
    rules = [rule for rule in map(rule_of, rows) if matches_host(rule, to(host))]
    assert matcher(rows).names(host, literal=False) == any(rule.shape is not Shape.ANY for rule in rules)
    ports = {rule.port for rule in rules if rule.port is not None}
    assert matcher(rows).ports(host, literal=False) == ports


@pytest.mark.parametrize(
    ("covering", "rule", "covered"),
    [
        ("*", "a.test", True),
        ("*", "**.a.test", True),
        ("*", "1.2.3.4", True),
        ("*:443", "a.test", False),
        ("*:443", "a.test:443", True),
        ("a.test", "a.test:443", True),
        ("a.test:443", "a.test", False),
        ("*.test", "a.test", True),
        ("*.test", "b.a.test", False),
        ("*.test", "*.test:1", True),
        ("*.test", "**.test", False),
        ("**.test", "*.test", True),
        ("**.test", "*.a.test", True),
        ("**.a.test", "*.test", False),
        ("**.test", "test", False),
        ("**.4", "1.2.3.4", False),
        ("1.2.3.4", "1.2.3.4:22", True),
        ("1.2.3.5", "1.2.3.4:22", False),
    ],
)
def test_covering(covering: str, rule: str, *, covered: bool) -> None:
    """A rule covers another when nothing the other matches is left over."""
    if covering == "**.4":
        covering = "**.four"  # a wildcard never stands before an address
    assert (matcher([row(covering)]).covering(rule_of(row(rule))) is not None) == covered


def test_cost_does_not_grow_with_rules() -> None:
    """A look-up probes tables a number of times that depends on the labels of the name alone (POL-4)."""

    class Counting(dict[str, int]):
        probes = 0

        def get(self, key: str, default: int | None = None) -> int | None:  # type: ignore[override]
            Counting.probes += 1
            return super().get(key, default)

    counts = []
    for rules in (10, 10_000):
        rows = [row(f"{prefix}h{i}.test:443") for i in range(rules) for prefix in ("", "*.", "**.")]
        made = matcher(rows)
        for table in ("exact", "one", "deep", "everything"):
            setattr(made, table, Counting(getattr(made, table)))
        Counting.probes = 0
        made.find(".".join(["x"] * 127), 443)
        counts.append(Counting.probes)
    assert counts[0] == counts[1]
    assert counts[0] <= 127 + 3


def test_tables_are_built_when_asked_for() -> None:
    """A process that only hands a policy on builds no table, and each phase has its own."""
    index = RuleIndex((row("a.test"), row("b.test", phase=Phase.INSTALL)))
    assert index._runtime is None
    assert index.phase(Phase.RUNTIME).passes.find("a.test", 1) is not None
    assert index.phase(Phase.RUNTIME).passes.find("b.test", 1) is None
    assert index.phase(Phase.INSTALL).passes.find("b.test", 1) is not None
    assert index.phase(Phase.INSTALL) is index.phase(Phase.INSTALL)


def test_index_is_its_rules() -> None:
    """Two indexes are equal when their rows are, and rules come out in order, one object each."""
    rows = (row("a.test"), row("b.test", phase=Phase.INSTALL), row("c.test"))
    index = RuleIndex(rows)
    assert index == RuleIndex(rows)
    assert hash(index) == hash(RuleIndex(rows))
    assert index != RuleIndex(rows[:2])
    assert [rule.text for rule in index.rules()] == ["a.test", "b.test", "c.test"]
    assert [rule.text for rule in index.rules(Phase.RUNTIME)] == ["a.test", "c.test"]
    assert index.phase(Phase.RUNTIME).passes.find("a.test", 1) is next(index.rules())
    assert repr(index) == "<3 rules>"


def test_denied_literals() -> None:
    """Deny rules that name addresses are kept by their bytes, a mapped one as the IPv4 address it is (POL-5)."""
    said = policy(deny=["10.1.1.5", "10.1.1.5:22", "[::ffff:10.1.1.6]", "[fd00::1]:443", "a.test"])
    denied = said.denied_literals(Phase.RUNTIME)
    assert {packed: [rule.text for rule in rules] for packed, rules in denied.items()} == {
        bytes([10, 1, 1, 5]): ["10.1.1.5", "10.1.1.5:22"],
        bytes([10, 1, 1, 6]): ["[::ffff:10.1.1.6]"],
        packed_literal("fd00::1"): ["[fd00::1]:443"],
    }
    assert said.denied_literals(Phase.INSTALL) == {}
