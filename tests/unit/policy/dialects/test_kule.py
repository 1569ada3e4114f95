"""Kule's profiles, remembered hosts and flags (POL-15)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.dialects.told import NAMES, PORTS, allowed, became, policy_of, refused, took
from tidegate.model.address_class import Admission
from tidegate.model.destination import parse_authority
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.dialects.imported import ASIDE, DROPPED, EXACTLY, NARROWER
from tidegate.policy.presets.compiled import HOSTS


def rule(host: str, verdict: str, port: int | None = 443) -> dict[str, Any]:
    """Return a rule."""
    return {"effect": "net.connect", "host": host, "verdict": verdict} | ({} if port is None else {"port": port})


def test_a_profile() -> None:
    """POL-15: the registries of its table pass, Go's modules and everything else ask; private addresses never."""
    policy = policy_of(took("profile: balanced\nremembered: []\n"))
    assert (policy.profile, policy.default) == ("balanced", Verdict.ASK)
    assert (policy.private, policy.own) == (Admission.NEVER, Admission.NEVER)

    def verdict(place: str) -> Verdict:
        return decide(policy, parse_authority(place), Phase.RUNTIME).verdict

    for preset in ("npm", "yarn", "crates", "nuget", "pypi", "rubygems", "maven"):
        assert {verdict(f"{host}:443") for host in HOSTS[preset]} == {Verdict.ALLOW}
    assert {verdict(f"{host}:443") for host in HOSTS["go"]} == {Verdict.ASK}
    assert verdict("github.com:443") is verdict("pypi.org:80") is Verdict.ASK


def test_without_a_profile_nothing_is_added() -> None:
    """POL-15: no profile, no preset, default: deny unless said."""
    policy = policy_of(took(json.dumps({"rules": [rule("a.test", "pass")]})))
    assert (policy.profile, policy.default) == (None, Verdict.DENY)
    assert [item.text for item in policy.rules] == ["a.test:443", "a.test:443"]


def test_rules_for_the_effect() -> None:
    """POL-15: pass, ask and refuse, with or without a port; other effects are left out by name."""
    rules = [
        rule("a.test", "pass"),
        rule("b.test", "ask", None),
        rule("c.test", "refuse"),
        {"effect": "fs.write", "path": "/"},
    ]
    imported = took(json.dumps({"rules": rules}))
    assert became(imported) == {
        "a.test": (EXACTLY, ("allow a.test:443",)),
        "b.test": (EXACTLY, ("ask b.test",)),
        "c.test": (EXACTLY, ("deny c.test:443",)),
        "fs.write": (ASIDE, ()),
    }
    assert became(took(json.dumps({"rules": [rule("127.0.0.1", "pass"), rule("10.0.0.1", "pass")]}))) == {
        "127.0.0.1": (DROPPED, ()),
        "10.0.0.1": (DROPPED, ()),
    }


def test_what_is_remembered_holds_on_its_folder_alone() -> None:
    """POL-15: the task's folder, or the one that is selected; an ask for the same host wins here, and it is said."""
    hosts = [{"folder": "/here", "host": "a.test", "port": 443}, {"folder": "/there/", "host": "x.org", "port": 80}]
    text = json.dumps({"remembered": hosts})
    places = ["a.test:443", "x.org:80", "a.test:80"]
    assert allowed(took(text), places) == {"a.test:443"}
    assert allowed(took(text, select="/there"), places) == {"x.org:80"}
    assert not allowed(took(text, folder="/here/below"), places)
    kept = became(took(text))
    assert kept["x.org"] == (DROPPED, ())
    asked = took(json.dumps({"rules": [rule("a.test", "ask")], "remembered": hosts[:1]}))
    assert asked.entries[1].how == NARROWER
    assert not allowed(asked, places)


@pytest.mark.parametrize(("flag", "hold"), [("--no-network", "offline"), ("--open-network", "open")])
def test_flags(flag: str, hold: str) -> None:
    """POL-15: no gate and no policy, by name; other flags are left out, and both together are refused."""
    imported = took(f"flags: [{flag}, --verbose]\n")
    assert imported.without_gate == hold
    assert flag in imported.because
    assert took("flags: [--verbose]\n").without_gate == ""
    (line,) = refused("flags: [--no-network, --open-network]\n")
    assert "together with" in line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("profile: balancd\nrules: []\nremembered: []\n", "write 'balanced'"),
        (json.dumps({"rules": [rule("*.a.test", "pass")]}), "a rule of Kule names one host"),
        (json.dumps({"rules": [rule("a.test", "allow")]}), "'verdict' knows no such value"),
        (json.dumps({"rules": [rule("a.test", "pass", 0)]}), "outside its bounds"),
        (
            json.dumps({"rules": [{"effect": "net.connect", "verdict": "pass"}]}),
            "a rule has an effect, a host and a verdict",
        ),
        (json.dumps({"rules": [rule("a.test", "pass") | {"hots": "x"}]}), "has no such key: 'hots'"),
        ('{"remembered": [{"host": "a.test", "port": 443}]}', "has a folder, a host and a port"),
        ('{"remembered": [{"folder": "/", "host": "*.a.test", "port": 443}]}', "what is remembered is one host"),
        ('{"remembered": [], "rule": []}', "write 'rules'"),
        ('{"remembered": [], "rules": null}', "nothing where a list belongs"),
    ],
)
def test_what_is_wrong_is_an_error_with_its_place(text: str, said: str) -> None:
    """POL-15, POL-2: nothing of the file counts."""
    (line,) = refused(text)
    assert said in line
    assert line[0].isdigit()


@given(
    st.lists(
        st.tuples(st.sampled_from(NAMES), st.sampled_from(("pass", "ask", "refuse")), st.sampled_from((None, *PORTS))),
        max_size=5,
    ),
    st.lists(
        st.tuples(st.sampled_from(("/here", "/there")), st.sampled_from(NAMES), st.sampled_from(PORTS)), max_size=3
    ),
)
def test_it_never_lets_pass_what_kule_does_not(
    rules: list[tuple[str, str, int | None]], remembered: list[tuple[str, str, int]]
) -> None:
    """POL-15: an oracle: what is refused never passes, what is remembered here or passes by a rule may."""
    text = {
        "rules": [rule(*one) for one in rules],
        "remembered": [{"folder": folder, "host": host, "port": port} for folder, host, port in remembered],
    }

    def oracle(place: str) -> bool:
        host, _, port = place.rpartition(":")

        def said(word: str) -> bool:
            return any(
                name == host and verdict == word and wanted in {None, int(port)} for name, verdict, wanted in rules
            )

        return not said("refuse") and (said("pass") or ("/here", host, int(port)) in remembered)

    assert all(oracle(place) for place in allowed(took(json.dumps(text))))


def test_a_refusal_is_not_lost_beside_another_effect() -> None:
    """POL-15: an effect that is there twice, or that names more of the network than ours, is no other effect."""
    refuse = "host: a.test, verdict: refuse}]\n"
    assert "twice" in refused(f"rules: [{{effect: files.write, effect: net.connect, {refuse}")[0]
    for effect in ("net.*", "'*'", "Net.Connect", "network"):
        (line,) = refused(f"profile: balanced\nrules: [{{effect: {effect}, {refuse}", "kule")
        assert "would be lost" in line
    assert not refused_none(f"rules: [{{effect: files.write, {refuse}")


def refused_none(text: str) -> bool:
    """Whether any rule came of a file that is not refused."""
    return bool(took(text).lines)


def test_a_slip_in_a_flag_opens_nothing() -> None:
    """POL-15: what was to be no network is not passed over; a flag of something else is."""
    (line,) = refused("profile: balanced\nflags: [--no-Network]\n", "kule")
    assert line.endswith("write --no-network")
    assert took("profile: balanced\nflags: [--verbose]\n", "kule").without_gate == ""
