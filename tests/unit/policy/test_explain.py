"""What `policy explain` says, and the warnings about rules that a deny leaves nothing of."""

from __future__ import annotations

from tests.unit.policy.written import policy, row, to
from tidegate.addresses.admission import admit
from tidegate.addresses.surroundings import Surroundings
from tidegate.model.decision import Decision
from tidegate.model.rule import Origin
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.explain import Explanation, explain, shadowed
from tidegate.policy.layers import command_line, join
from tidegate.policy.policy import Policy, make_policy


def at(said: Policy, target: str, *addresses: bytes) -> Explanation:
    """Explain a destination as the command does, with the addresses of a name or those of a literal."""
    destination = to(target)
    known = addresses or ((destination.host.packed,) if destination.host.packed else ())

    def judge(decision: Decision) -> Decision:
        return admit(decision, known, Surroundings(), said.modes, said.denied_literals(Phase.RUNTIME))

    return explain(said, destination, Phase.RUNTIME, judge if known else None)


def test_json() -> None:
    """The keys of --json are those of POL-14, and a name has no address class without a look-up."""
    said = policy(["a.test"], deny=["**.test:80"])
    assert at(said, "a.test").as_json() == {
        "verdict": "allow",
        "rule": "a.test",
        "name": "policy",
        "source": "at a.test",
        "phase": "runtime",
        "host": "a.test",
        "port": 443,
        "reason": "allowed",
        "address": None,
        "address_class": None,
        "inspected": False,
        "inspected_why": "a tunnel, its bytes are not read; no method or path is named",
        "fix": None,
        "policy_line": None,
        "also_matched": [
            {
                "verdict": "deny",
                "rule": "**.test:80",
                "name": "policy",
                "source": "at **.test:80",
                "why": "it is for port 80",
            }
        ],
    }


def test_the_line_that_would_allow_it() -> None:
    """A refusal carries the option and the policy line; a deny carries neither (POL-14)."""
    refused = at(policy(), "a.test:8443")
    assert refused.decision.fix == "--allow a.test:8443"
    assert refused.policy_line == 'network: {runtime: {allow: ["a.test:8443"]}}'
    assert at(policy(deny=["a.test"]), "a.test").policy_line == ""
    assert at(policy(["a.test"]), "a.test").policy_line == ""
    assert at(policy(), "[fd00::1]:22").policy_line == 'network: {runtime: {allow: ["[fd00::1]:22"]}}'


def test_addresses() -> None:
    """With addresses the decision is the one the gate would come to."""
    said = policy(["a.test"], deny=["10.1.1.5"])
    assert at(said, "a.test", bytes([1, 2, 3, 4])).as_json()["address_class"] == "public"
    private = at(said, "a.test", bytes([10, 0, 0, 1])).as_json()
    assert (private["verdict"], private["reason"], private["address"]) == ("deny", "private-address", "10.0.0.1")
    assert private["fix"] == "--allow a.test:443"
    denied = at(said, "a.test", bytes([10, 1, 1, 5]))
    assert denied.decision.rule_text == "10.1.1.5"
    assert [(rule.text, why) for rule, why in denied.also_matched] == [
        ("a.test", "a deny rule names the address it leads to"),
    ]
    assert at(policy(["*"]), "169.254.169.254:80").as_json()["reason"] == "never-address"
    assert at(policy(["*"]), "169.254.169.254:80").policy_line == ""


def test_deny_everything_names_what_it_shadows() -> None:
    """A `deny *` beside allows is warned about once, naming the rules that nothing is left of (B13)."""
    said = policy(["a.test"], ["**.b.test"], ["*"])
    (warning,) = shadowed(said)
    assert warning.startswith("the deny rule '*' (at *) wins over every allow; nothing is left of 'a.test' (at a.test)")
    assert warning.endswith(", '**.b.test' (at **.b.test)")
    both = make_policy(
        [
            row(text, verdict, phase)
            for phase in Phase
            for text, verdict in (("a.test", Verdict.ALLOW), ("*", Verdict.DENY))
        ]
    )
    assert len(shadowed(both)) == 1


def test_partly_denied_is_no_warning() -> None:
    """A rule of which something is left is what denies are for; so is denying a preset's host."""
    assert shadowed(policy(["**.test", "a.test"], deny=["b.test", "a.test:80"])) == ()
    assert shadowed(join(command_line(deny=["pypi.org"]))) == ()
    assert shadowed(make_policy([row("a.test", origin=Origin.REMEMBERED), row("*", Verdict.DENY)])) == ()
    assert shadowed(policy(["a.test"])) == ()


def test_a_long_list_is_cut() -> None:
    """The warning stays one readable line."""
    (warning,) = shadowed(policy([f"h{i}.test" for i in range(50)], deny=["*.test"]))
    assert warning.endswith("'h4.test' (at h4.test) and 45 more")
