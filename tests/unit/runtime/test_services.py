"""tidegate.runtime.services."""

from __future__ import annotations

import pytest

from tidegate.holds.inside import MOST_MET
from tidegate.model.address_class import Admission
from tidegate.model.rule import Layer, Origin
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.policy import Policy, make_policy
from tidegate.policy.rows import rule_row
from tidegate.runtime.services import Services, destinations, places

ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY


def policy(
    *rules: tuple[str, Verdict],
    layer: Layer = Layer.COMMAND_LINE,
    origin: Origin = Origin.WRITTEN,
    phase: Phase = Phase.RUNTIME,
    own: Admission = Admission.EXACT_HOST_PORT,
    protected: tuple[int, ...] = (),
) -> Policy:
    """A policy of these rules."""
    rows = [rule_row(text, verdict, phase, "n", "s", origin, layer) for text, verdict in rules]
    return make_policy(rows, own=own, protected_ports=protected)


def met(policy: Policy, *published: int) -> tuple[tuple[str, int], ...]:
    """What is met of it at runtime."""
    return Services(policy, Phase.RUNTIME, published).met


@pytest.mark.parametrize(
    ("text", "verdict", "expected"),
    [
        ("localhost:5432", ALLOW, (("localhost", 5432),)),
        ("localhost:5432", ASK, (("localhost", 5432),)),
        ("localhost:5432", DENY, ()),
        ("127.0.0.1:5432", ALLOW, (("127.0.0.1", 5432),)),
        ("127.9.9.9:5432", ALLOW, (("127.9.9.9", 5432),)),
        ("[::1]:5432", ALLOW, (("::1", 5432),)),
        ("localhost", ALLOW, ()),
        ("*:5432", ALLOW, ()),
        ("**.localhost:5432", ALLOW, ()),
        ("db.test:5432", ALLOW, ()),
        ("128.0.0.1:5432", ALLOW, ()),
        ("10.0.0.1:5432", ALLOW, ()),
        ("localhost:3128", ALLOW, ()),
        ("localhost:3129", ALLOW, (("localhost", 3129),)),
    ],
)
def test_which_rules_are_met(text: str, verdict: Verdict, expected: tuple[tuple[str, int], ...]) -> None:
    """HLD-10, ADR-2: exactly this host and port of loopback, allowed or asked; not the gate's own port inside."""
    assert met(policy((text, verdict))) == expected


def test_what_the_gate_would_refuse_is_not_met() -> None:
    """ADR-1, ADR-2, POL-5, POL-9: protected and published ports, `own: never`, denies, presets, folders."""
    rule = ("localhost:5432", ALLOW)
    assert met(policy(rule)) == (("localhost", 5432),)
    assert met(policy(rule), 5432) == ()
    assert met(policy(rule), 5433) == (("localhost", 5432),)
    assert met(policy(rule, protected=(5432,))) == ()
    assert met(policy(rule, own=Admission.NEVER)) == ()
    assert met(policy(rule, ("localhost", DENY))) == ()
    assert met(policy(rule, ("127.0.0.1:5432", DENY))) == ()
    assert met(policy(rule, ("127.0.0.1:5433", DENY))) == (("localhost", 5432),)
    assert met(policy(rule, layer=Layer.FOLDER)) == ()
    assert met(policy(rule, origin=Origin.PRESET)) == ()
    assert met(policy(rule, phase=Phase.INSTALL)) == ()


def test_what_a_person_is_told() -> None:
    """HLD-10: the start names what is met, that the command's own listener wins, and rules that admit nothing."""
    services = Services(policy(("localhost:5432", ALLOW), ("[::1]:6379", ALLOW), ("localhost", ALLOW)), Phase.RUNTIME)
    assert services.notes() == [
        "met inside by the gate, unless the command listens there itself: localhost:5432, [::1]:6379",
        "the rule localhost admits nothing: name the port, localhost:PORT",
    ]
    assert Services(policy(("a.test:80", ALLOW)), Phase.RUNTIME).notes() == []


def test_there_is_a_bound_and_it_is_told() -> None:
    """GAT-6: so many are met, the rest is counted; one fewer is all of them."""
    rules = [(f"localhost:{port}", ALLOW) for port in range(5000, 5001 + MOST_MET)]
    assert Services(policy(*rules[:-1]), Phase.RUNTIME).more == 0
    services = Services(policy(*rules), Phase.RUNTIME)
    assert (len(services.met), services.more) == (MOST_MET, 1)
    assert services.notes()[1].startswith("1 more services of this machine")


def test_places_stand_for_destinations() -> None:
    """HLD-10: both loopbacks are localhost's, but where a literal has a rule of its own it is the literal's."""
    found = {key: str(value) for key, value in places((("localhost", 1024), ("127.0.0.1", 1024), ("::1", 9))).items()}
    four, six = b"\x7f\0\0\1", bytes(15) + b"\1"
    assert found == {(four, 1024): "127.0.0.1:1024", (six, 1024): "localhost:1024", (six, 9): "[::1]:9"}
    assert [str(one) for one in destinations((("localhost", 1024), ("::1", 9)))] == ["localhost:1024", "[::1]:9"]
