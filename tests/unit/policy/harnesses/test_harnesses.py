"""Harnesses in a joined policy: what their hosts allow, and what they never do."""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_pton

import pytest

from tests.unit.policy.written import say, to
from tidegate.addresses.admission import admit
from tidegate.addresses.surroundings import Surroundings
from tidegate.model.reason import Reason
from tidegate.model.rule import Layer, Origin
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import also_matched
from tidegate.policy.harnesses import (
    HARNESS_NAMES,
    Harness,
    HarnessHost,
    built_in,
    built_in_for,
    harness_layer,
)
from tidegate.policy.layers import PolicyLayer, command_line, join
from tidegate.policy.loader import load_policy
from tidegate.policy.rows import rule_of
from tidegate.policy.snapshot import from_plain, to_plain


def agent(*rules: str, **fields: object) -> Harness:
    """Return a harness with these hosts, all verified."""
    hosts = tuple(HarnessHost(rule, verified=True, source=f"h.yaml: {rule}") for rule in rules)
    return Harness("agent", "agent", hosts=hosts, **fields)  # type: ignore[arg-type]


def file(text: str) -> PolicyLayer:
    """Return the layer of a --policy file."""
    return load_policy(text.encode(), "p.yaml", Layer.COMMAND_LINE)


def test_its_rules_carry_its_name_and_place() -> None:
    """A decision by a harness's host says `harness:NAME` and where the host stands (POL-6, POL-12)."""
    layer = harness_layer(agent("api.test:443", "*.cdn.test"))
    rules = [rule_of(row) for row in layer.rows]
    assert [(rule.text, rule.name, rule.source, rule.phase, rule.origin, rule.layer) for rule in rules] == [
        ("api.test:443", "harness:agent", "h.yaml: api.test:443", Phase.RUNTIME, Origin.HARNESS, Layer.HARNESS),
        ("*.cdn.test", "harness:agent", "h.yaml: *.cdn.test", Phase.RUNTIME, Origin.HARNESS, Layer.HARNESS),
    ]
    said = say(join(layer), "api.test:443")
    assert (said.verdict, said.name) == (Verdict.ALLOW, "harness:agent")
    assert say(from_plain(to_plain(join(layer))), "api.test:443") == said


@pytest.mark.parametrize(
    ("target", "verdict"),
    [
        ("api.test:443", Verdict.ALLOW),
        ("api.test:80", Verdict.ASK),
        ("x.api.test:443", Verdict.ASK),
        ("a.one.test:1", Verdict.ALLOW),
        ("one.test:1", Verdict.ASK),
        ("a.b.one.test:1", Verdict.ASK),
        ("a.b.deep.test:1", Verdict.ALLOW),
        ("deep.test:1", Verdict.ASK),
        ("notdeep.test:1", Verdict.ASK),
    ],
)
def test_its_hosts_mean_what_rules_mean(target: str, verdict: Verdict) -> None:
    """Ports, `*.` and `**.` of a harness's hosts follow POL-1, apex and neighbours included (POL-12)."""
    policy = join(harness_layer(agent("api.test:443", "*.one.test", "**.deep.test")))
    assert say(policy, target).verdict is verdict
    assert say(policy, target, Phase.INSTALL).verdict is Verdict.ASK


def test_a_deny_wins_and_so_does_ask_among_equals() -> None:
    """A deny of any layer wins over a harness's host, also a wider one; an equal ask does too (POL-5, POL-12)."""
    layer = harness_layer(agent("api.test:443", "b.test:443"))
    assert say(join(command_line(deny=["*.test"]), layer), "api.test:443").reason is Reason.DENY_RULE
    user = load_policy(b"network: {runtime: {deny: [api.test]}}", "u.yaml", Layer.USER)
    said = join(user, layer)
    assert say(said, "api.test:443").reason is Reason.DENY_RULE
    assert say(said, "b.test:443").allowed
    assert say(join(command_line(ask=["api.test:443"]), layer), "api.test:443").verdict is Verdict.ASK


def test_among_equals_the_written_rule_governs() -> None:
    """The same host allowed by a person stays theirs; explain says why the harness's lost (POL-5, POL-14)."""
    policy = join(command_line(allow=["api.test:443"]), harness_layer(agent("api.test:443")))
    assert say(policy, "api.test:443").name == "command-line"
    lost = also_matched(policy, to("api.test:443"), Phase.RUNTIME)
    assert [(rule.name, why) for rule, why in lost] == [
        ("harness:agent", "a rule that a person wrote wins over one that came with a harness")
    ]
    preset = join(harness_layer(agent("pypi.org:443")))
    assert say(preset, "pypi.org:443").name == "harness:agent"
    lost = also_matched(preset, to("pypi.org:443"), Phase.RUNTIME)
    assert [why for _, why in lost] == ["one of a harness wins over one that came with a preset"]


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "192.168.1.9", "fd00::1", "64:ff9b::a00:1"])
def test_it_never_admits_a_private_address(address: str) -> None:
    """However exact, it leads to no private or own address; a written rule does, and public ones pass (ADR-2)."""
    around = Surroundings(frozenset({inet_pton(AF_INET, "192.168.1.9")}), frozenset(), frozenset())
    packed = inet_pton(AF_INET6 if ":" in address else AF_INET, address)
    policy = join(harness_layer(agent("api.test:443", "10.0.0.1:443")))
    said = say(policy, "api.test:443")
    assert said.allowed
    assert not admit(said, [packed], around, policy.modes, ()).allowed
    assert admit(said, [inet_pton(AF_INET, "93.184.216.34")], around, policy.modes, ()).allowed
    written = join(command_line(allow=["api.test:443"]))
    assert admit(say(written, "api.test:443"), [packed], around, written.modes, ()).allowed
    literal = say(policy, "10.0.0.1:443")
    assert not admit(literal, [inet_pton(AF_INET, "10.0.0.1")], around, policy.modes, ()).allowed


def test_a_lock_lets_it_in() -> None:
    """A locked policy takes harness hosts and nothing else from above; its denies win over them (POL-8)."""
    locked = file("locked: true\nnetwork: {runtime: {allow: [a.test], deny: [d.test]}}\n")
    policy = join(locked, command_line(allow=["c.test"]), harness_layer(agent("api.test", "d.test")))
    assert say(policy, "api.test:443").allowed
    assert say(policy, "d.test:443").reason is Reason.DENY_RULE
    assert not say(policy, "c.test:443").allowed


def test_a_closed_phase_stays_closed() -> None:
    """A runtime phase without an entry allows nothing, a harness's host neither, and that is said (POL-7)."""
    layer = harness_layer(agent("api.test"))
    closed = join(file("network: {install: {allow: [a.test]}, runtime: {}}"), layer)
    assert say(closed, "api.test:443").reason is Reason.PHASE_CLOSED
    assert closed.notes == ("p.yaml closes the phase in which harness agent needs its hosts",)
    opened = join(file("network: {runtime: {allow: [a.test]}}"), layer)
    assert say(opened, "api.test:443").allowed
    assert opened.notes == ()


def test_some_of_its_hosts() -> None:
    """A layer of the model API alone leaves the other hosts out; only a verified host counts as one (POL-10)."""
    harness = Harness(
        "agent",
        "agent",
        hosts=(HarnessHost("api.test", verified=True), HarnessHost("new.test"), HarnessHost("log.test", verified=True)),
        model_api=("api.test", "new.test"),
    )
    assert [host.rule for host in harness.own_model_api] == ["api.test"]
    policy = join(harness_layer(harness, harness.own_model_api))
    assert say(policy, "api.test:443").allowed
    assert say(policy, "new.test:443").verdict is Verdict.ASK
    assert say(policy, "log.test:443").verdict is Verdict.ASK
    assert say(join(harness_layer(harness)), "log.test:443").allowed


def test_those_that_come_along() -> None:
    """Each is found by its name and by its command, and by nothing else."""
    assert HARNESS_NAMES == ("aider", "claude", "codex", "cursor", "droid", "gemini", "opencode")
    for name in HARNESS_NAMES:
        harness = built_in(name)
        assert harness is not None
        assert harness.name == name
        assert built_in_for(harness.command) == harness
    for other in ("", "Claude", "claude2", "claude.exe", "/usr/bin/claude"):
        assert built_in(other) is None
        assert built_in_for(other) is None


def test_one_without_hosts_and_one_that_knows_no_proxies_come_along() -> None:
    """POL-12: OpenCode's depend on its provider; Cursor's agent finds its way by capture alone."""
    opencode, cursor, claude = built_in("opencode"), built_in("cursor"), built_in("claude")
    assert opencode is not None
    assert cursor is not None
    assert claude is not None
    assert (opencode.hosts, opencode.model_api, opencode.proxy_aware) == ((), (), True)
    assert (cursor.command, cursor.proxy_aware, claude.proxy_aware) == ("cursor-agent", False, True)
    assert harness_layer(opencode).rows == ()
    assert [host for one in (cursor, built_in("aider"), built_in("droid")) for host in one.hosts if host.verified] == []  # type: ignore[union-attr]
