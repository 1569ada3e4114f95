"""Where names of an imported policy may lead: the products' own words on private addresses and on this machine."""

from __future__ import annotations

import json

import pytest

from tests.unit.policy.dialects.told import policy_of, took
from tidegate.addresses.admission import admit
from tidegate.addresses.surroundings import Surroundings
from tidegate.model.destination import parse_authority
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide

PUBLIC, PRIVATE, OWN, LINK = b"\x08\x08\x08\x08", b"\x0a\x00\x00\x01", b"\x7f\x00\x00\x01", b"\xa9\xfe\xa9\xfe"
EXACT, PORT, BELOW = "exact.test", "port.test:80", "x.below.test"
ALLOW = ["exact.test", "port.test:80", "*.below.test"]

FILES = {
    "kraft": f"repos: [{{path: /a, sandbox: {{network: {{runtime: {{allow: {json.dumps(ALLOW)}}}}}}}}}]",
    "gurtos": json.dumps({"hosts": ALLOW}),
    "kule": json.dumps(
        {
            "rules": [
                {"effect": "net.connect", "host": "exact.test", "verdict": "pass"},
                {"effect": "net.connect", "host": "port.test", "port": 80, "verdict": "pass"},
                {"effect": "net.connect", "host": "x.below.test", "verdict": "pass"},
            ]
        }
    ),
    "sandbox-runtime": json.dumps({"network": {"allowedDomains": ALLOW}}),
    "claude": json.dumps({"sandbox": {"network": {"allowedDomains": ALLOW}}}),
    "codex": "default_permissions = 'w'\n[permissions.w.network]\nenabled = true\nallowed_domains = "
    + json.dumps(ALLOW),
    "smokescreen": "services: [{name: s, action: enforce, allowed_domains: [exact.test, port.test, '*.below.test']}]",
    "gh-aw": "on: push\nnetwork: {allowed: [exact.test, port.test, '*.below.test']}\n",
}
# Which of the three lead to a private address, and which to this machine.
REACH: dict[str, tuple[set[str], set[str]]] = {
    "kraft": ({EXACT, PORT}, set()),
    "gurtos": ({PORT}, {PORT}),
    "kule": (set(), set()),
    "sandbox-runtime": ({EXACT, PORT}, set()),
    "claude": ({EXACT, PORT}, set()),
    "codex": (set(), set()),
    "smokescreen": (set(), set()),
    "gh-aw": (set(), set()),
}


def reached(name: str, address: bytes) -> set[str]:
    """Return which of the places an address is reached by."""
    policy = policy_of(took(FILES[name]))
    surroundings = Surroundings(own=frozenset({OWN}))
    found = set()
    for place in (EXACT, PORT, BELOW):
        decision = decide(policy, parse_authority(place, 80), Phase.RUNTIME)
        assert decision.verdict is Verdict.ALLOW, place
        if admit(decision, (address,), surroundings, policy.modes).verdict is Verdict.ALLOW:
            found.add(place)
    return found


@pytest.mark.parametrize("name", FILES)
def test_where_a_name_may_lead(name: str) -> None:
    """POL-15, ADR-1, ADR-2: public always, link-local never, the rest as the product has it or narrower."""
    private, own = REACH[name]
    assert reached(name, PUBLIC) == {EXACT, PORT, BELOW}
    assert reached(name, PRIVATE) == private
    assert reached(name, OWN) == own
    assert reached(name, LINK) == set()


@pytest.mark.parametrize(("name", "said"), [("kraft", "interfaces"), ("gurtos", "host:port"), ("claude", "wildcard")])
def test_where_a_product_means_more_it_is_said(name: str, said: str) -> None:
    """POL-15: of addresses no entry speaks, so a note does."""
    (note,) = took(FILES[name]).notes
    assert said in note
    assert took(FILES["smokescreen"]).notes == ()
