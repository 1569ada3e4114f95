"""Stage one of POL-5: which rule governs, and what is said where none does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.written import policy, row, say, to
from tidegate.addresses.admission import admit
from tidegate.addresses.surroundings import NOWHERE
from tidegate.model.decision import NO_RULE_NAME, Decision
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.model.rule import Layer, Origin
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import also_matched, decide
from tidegate.policy.layers import PolicyLayer, command_line, join
from tidegate.policy.policy import make_policy

ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY


@pytest.mark.parametrize(
    ("rule", "inside", "outside"),
    [
        ("a.test", ["a.test", "A.Test."], ["b.a.test", "xa.test", "a.test.evil.test", "test"]),
        ("*.a.test", ["x.a.test"], ["a.test", "x.y.a.test", "evila.test", "xa.test", "x.a.test.evil.test"]),
        ("**.a.test", ["x.a.test", "x.y.a.test"], ["a.test", "evila.test", "a.test.evil.test"]),
        ("*", ["a.test", "x.y.z", "localhost"], []),
        ("a.test:443", ["a.test:443"], ["a.test:444", "b.test:443"]),
        ("*.a.test:443", ["x.a.test:443"], ["x.a.test:80"]),
        ("*:443", ["a.test:443"], ["a.test:80"]),
    ],
)
def test_what_a_rule_covers(rule: str, inside: list[str], outside: list[str]) -> None:
    """Wildcards match at label boundaries only and never the apex; spelling does not matter (POL-1, B01, B02)."""
    said = policy([rule])
    assert all(say(said, text).verdict is ALLOW for text in inside)
    assert all(say(said, text).verdict is DENY for text in outside)


@pytest.mark.parametrize(
    ("allow", "ask", "target", "governs"),
    [
        (["a.test", "a.test:443"], [], "a.test", "a.test:443"),
        (["a.test:443", "a.test"], [], "a.test:80", "a.test"),
        (["*.test:443", "a.test"], [], "a.test", "a.test"),
        (["**.test:443", "*.test"], [], "a.test", "*.test"),
        (["**.b.test", "**.test:443"], [], "a.b.test", "**.b.test"),
        (["**.test", "**.test:443"], [], "a.b.test", "**.test:443"),
        (["*:443", "**.test"], [], "a.test", "**.test"),
        (["*", "*:443"], [], "a.test", "*:443"),
        (["**.test"], ["a.test"], "a.test", "a.test"),
        (["a.test"], ["**.test", "*"], "a.test", "a.test"),
        (["a.test:443"], ["a.test"], "a.test", "a.test:443"),
        (["*", "1.2.3.4"], [], "1.2.3.4", "1.2.3.4"),
        (["*.test", "x.test:80"], [], "x.test", "*.test"),
    ],
)
def test_the_most_specific_rule_governs(allow: list[str], ask: list[str], target: str, governs: str) -> None:
    """Exact, then one label, then the longest suffix, then everything; each with a port before without (POL-5)."""
    decision = say(policy(allow, ask), target)
    assert decision.rule_text == governs
    assert decision.verdict is (ASK if governs in ask else ALLOW)


@pytest.mark.parametrize("deny", ["a.test", "a.test:443", "*.test", "**.test", "*", "*:443"])
def test_deny_wins_over_every_allow(deny: str) -> None:
    """Any deny rule that matches wins, whatever layer and however specific the allow is (POL-5, B13, B16)."""
    rows = [row("a.test:443", layer=Layer.COMMAND_LINE), row(deny, DENY, layer=Layer.ADMINISTRATOR)]
    for order in (rows, rows[::-1]):
        decision = say(make_policy(order), "a.test")
        assert (decision.verdict, decision.reason, decision.rule_text) == (DENY, Reason.DENY_RULE, deny)
        assert decision.fix == ""


def test_a_deny_for_another_port_does_not_count() -> None:
    """The neighbour of a deny rule passes."""
    said = policy(["a.test", "**.test"], deny=["a.test:80", "b.test"])
    assert say(said, "a.test:443").allowed
    assert not say(said, "a.test:80").allowed
    assert say(said, "x.b.test").allowed


def test_among_equals() -> None:
    """Ask wins over allow, a written rule over a preset's, then the layer nearest the command line (POL-5)."""
    user = row("a.test", layer=Layer.USER)
    folder = row("a.test", layer=Layer.FOLDER)
    preset = row("a.test", origin=Origin.PRESET, layer=Layer.COMMAND_LINE)
    ask = row("a.test", ASK, origin=Origin.PRESET, layer=Layer.BUILTIN)
    for rows, wins in (
        ([user, folder], folder),
        ([user, preset], user),
        ([preset, ask, folder], ask),
    ):
        for order in (rows, rows[::-1]):
            governing = say(make_policy(order), "a.test").rule
            assert governing is not None
            assert (governing.verdict.value, governing.origin, governing.layer) == (wins[4], wins[8], wins[9])


def test_nothing_matches() -> None:
    """Without a rule the default speaks, as no-rule, with where it comes from and what would help (POL-6)."""
    denied = say(policy(default_source="p.yaml"), "a.test:8443")
    assert (denied.verdict, denied.reason, denied.name) == (DENY, Reason.NO_RULE, NO_RULE_NAME)
    assert (denied.source, denied.rule, denied.fix) == ("p.yaml", None, "--allow a.test:8443")
    asked = say(policy(default=ASK), "a.test")
    assert (asked.verdict, asked.reason, asked.fix) == (ASK, Reason.WAITING, "--allow a.test:443")


def test_tools_are_given_by_tool_and_not_by_a_rule() -> None:
    """SRV-6: a task that asks for tools and has none is told what gives them, at the one port that they have."""
    assert say(policy(), "tools.tidegate.internal:80").fix == "--tool NAME"
    assert say(policy(), "tools.tidegate.internal:443").fix == "--allow tools.tidegate.internal:443"


def test_apex_under_a_wildcard() -> None:
    """The apex is refused and the fix names it, so that nobody takes `*.x` for `x` (B11)."""
    decision = say(policy(["*.a.test"]), "a.test")
    assert (decision.reason, decision.fix) == (Reason.NO_RULE, "--allow a.test:443")


@pytest.mark.parametrize("rule", ["a.test:443", "*.test:443", "**.test:443"])
def test_another_port(rule: str) -> None:
    """A rule for the host with another port is told apart from no rule at all."""
    decision = say(policy([rule]), "a.test:80")
    assert (decision.verdict, decision.reason) == (DENY, Reason.PORT_NOT_ALLOWED)
    assert decision.fix == "--allow a.test:80"
    assert say(policy([rule]), "b.example:80").reason is Reason.NO_RULE
    assert say(policy(["*:443"]), "a.test:80").reason is Reason.NO_RULE


def test_closed_phase() -> None:
    """A closed phase denies what no rule of it names, and asks nobody, whatever the default (POL-7)."""
    closed = frozenset({Phase.INSTALL})
    for default in Verdict:
        said = policy(["a.test"], default=default, closed_phases=closed)
        decision = say(said, "a.test", Phase.INSTALL)
        assert (decision.verdict, decision.reason) == (DENY, Reason.PHASE_CLOSED)
        assert say(said, "a.test").allowed


def test_phases_are_apart() -> None:
    """A rule counts in its own phase only (POL-7)."""
    said = make_policy([row("a.test", phase=Phase.INSTALL), row("b.test", DENY, Phase.INSTALL), row("b.test")])
    assert say(said, "a.test", Phase.INSTALL).allowed
    assert not say(said, "a.test").allowed
    assert say(said, "b.test").allowed
    assert not say(said, "b.test", Phase.INSTALL).allowed


def test_literals_need_their_own_rule() -> None:
    """An address is matched by a rule that names it, or by `*`; no name wildcard and no default opens it (ADR-6)."""
    assert say(policy(["1.2.3.4"]), "1.2.3.4").allowed
    assert say(policy(["[2600:beef::1]:443"]), "[2600:BEEF:0::1]").allowed
    for said in (policy(["**.example"]), policy(default=ASK)):
        decision = say(said, "1.2.3.4:22")
        assert (decision.verdict, decision.reason) == (DENY, Reason.LITERAL_NOT_NAMED)
        assert decision.fix == "--allow 1.2.3.4:22"
    assert say(policy(["*"]), "1.2.3.4").rule_text == "*"
    assert say(policy(["1.2.3.4:443"]), "1.2.3.4:22").reason is Reason.PORT_NOT_ALLOWED
    assert say(policy(["*"], deny=["1.2.3.4"]), "1.2.3.4").reason is Reason.DENY_RULE


def test_audit_allows_by_default() -> None:
    """Under `audit` everything passes, and the decision says that no rule did it (POL-10)."""
    said = join(command_line(profile="audit", deny=["evil.test"]))
    for target in ("a.test", "1.2.3.4:22"):
        decision = say(said, target)
        assert (decision.verdict, decision.reason) == (ALLOW, Reason.ALLOWED_BY_DEFAULT)
        assert (decision.name, decision.source) == (NO_RULE_NAME, "profile audit")
    assert say(said, "evil.test").reason is Reason.DENY_RULE


@given(
    st.lists(st.sampled_from(["a.test", "*.test", "**.test", "a.test:443", "*", "*:443"]), max_size=4),
    st.lists(st.sampled_from(["a.test", "*.test", "a.test:443", "*"]), max_size=2),
    st.lists(st.sampled_from(["a.test:443", "b.test", "*:80"]), max_size=2),
    st.sampled_from([ASK, DENY]),
    st.sampled_from(["a.test", "a.test:80", "b.test", "x.a.test:1"]),
)
def test_the_fix_works(allow: list[str], ask: list[str], deny: list[str], default: Verdict, target: str) -> None:
    """Where a decision offers `--allow`, exactly that makes it pass; where it offers nothing, it would not (POL-14)."""
    rows = [row(text) for text in allow] + [row(text, ASK) for text in ask] + [row(text, DENY) for text in deny]
    decision = say(make_policy(rows, default=default), target)
    exact = row(str(to(target)), layer=Layer.COMMAND_LINE)
    after = say(make_policy([*rows, exact], default=default), target)
    if decision.fix:
        assert decision.fix == f"--allow {exact[0]}"
        assert after.allowed
    elif not decision.allowed:
        assert not after.allowed


def test_a_locked_policy_offers_no_allow() -> None:
    """Where `--allow` would change nothing the refusal does not offer it (POL-8)."""
    assert say(policy(locked=True), "a.test").fix == ""
    assert say(policy(locked=True, default=ASK), "a.test").fix == ""


def test_also_matched_says_why_each_rule_lost() -> None:
    """Every rule that covers the host and does not govern is named, with the reason (POL-14)."""
    rows = [
        row("a.test"),
        row("a.test", layer=Layer.USER),
        row("a.test", origin=Origin.PRESET),
        row("a.test:443", DENY, Phase.INSTALL),
        row("*.test:443"),
        row("**.test", ASK),
        row("a.test:80"),
        row("*"),
        row("b.test"),
    ]
    said = make_policy(rows)
    why = [(rule.text, rule.layer, text) for rule, text in also_matched(said, to("a.test"), Phase.RUNTIME)]
    assert why == [
        ("a.test", Layer.USER, "the layer nearest the command line wins"),
        ("a.test", Layer.FOLDER, "a rule that a person wrote wins over one that came with a preset"),
        ("*.test:443", Layer.FOLDER, "a.test is more specific"),
        ("**.test", Layer.FOLDER, "a.test is more specific"),
        ("a.test:80", Layer.FOLDER, "it is for port 80"),
        ("*", Layer.FOLDER, "a.test is more specific"),
    ]
    denied = also_matched(policy(["a.test"], deny=["*", "**.test"]), to("a.test"), Phase.RUNTIME)
    assert [(rule.text, text) for rule, text in denied] == [
        ("a.test", "a deny rule wins over every allow, whatever layer it is from"),
        ("*", "**.test is more specific"),
    ]
    equals = also_matched(policy(["a.test", "b.test"], ["a.test", "a.test"]), to("a.test"), Phase.RUNTIME)
    assert [text for _, text in equals] == ["among equals ask wins", "the same rule stands again later"]
    never = also_matched(policy(["metadata.goog"]), to("metadata.goog"), Phase.RUNTIME)
    assert [text for _, text in never] == ["cloud metadata is never reached, by any rule"]


_RULES = [
    "a.test",
    "*.a.test",
    "**.test",
    "*",
    "a.test:443",
    "*:443",
    "1.2.3.4",
    "10.0.0.1:443",
    "[::ffff:10.0.0.1]",
    "@npm",
]
_HOSTS = [
    "a.test",
    "x.a.test",
    "-x.test",
    "x-.a.test",
    "1.2.3.4",
    "10.0.0.1",
    "[::ffff:10.0.0.1]",
    "registry.npmjs.org",
]
_ADDRESSES = [bytes([1, 2, 3, 4]), bytes([10, 0, 0, 1]), bytes([127, 0, 0, 1]), bytes([169, 254, 169, 254])]
_LISTS = st.lists(st.sampled_from(_RULES), max_size=3)


@given(
    _LISTS,
    _LISTS,
    _LISTS,
    st.sampled_from([None, "balanced", "closed", "audit"]),
    st.sampled_from(_HOSTS),
    st.sampled_from([443, 80]),
    st.lists(st.sampled_from(_ADDRESSES), min_size=1, max_size=3),
)
def test_every_fix_that_is_offered_works(
    allow: list[str], ask: list[str], deny: list[str], profile: str | None, host: str, port: int, names: list[bytes]
) -> None:
    """POL-6: whoever adds the option that a refusal or a question names is let through, address and all."""
    destination = parse_authority(f"{host}:{port}")
    packed = destination.host.packed
    addresses = names if packed is None else [packed]

    def said(*more: PolicyLayer) -> Decision:
        joined = join(command_line(allow=allow, ask=ask, deny=deny, profile=profile), *more)
        denied = joined.denied_literals(Phase.RUNTIME)
        return admit(decide(joined, destination, Phase.RUNTIME), addresses, NOWHERE, joined.modes, denied)

    fix = said().fix
    if fix:
        assert said(command_line(allow=[fix.removeprefix("--allow ")])).allowed
