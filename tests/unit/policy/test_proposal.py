"""tidegate.policy.proposal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.journal.contact_lines import contact, refusal
from tests.unit.policy.test_learned import learned
from tidegate.addresses.admission import admit
from tidegate.addresses.classify import classify
from tidegate.addresses.surroundings import NOWHERE
from tidegate.model.address_class import AddressClass
from tidegate.model.destination import Destination, parse_authority
from tidegate.model.host import bracketed, canonical_host
from tidegate.model.reason import Reason
from tidegate.model.rule import Layer
from tidegate.model.verdict import How, Phase
from tidegate.policy.decide import decide
from tidegate.policy.layers import join
from tidegate.policy.learned import Learned
from tidegate.policy.loader import load_policy
from tidegate.policy.proposal import Proposal, Wish, fresh, not_learned, propose
from tidegate.policy.suffixes import Suffixes

if TYPE_CHECKING:
    from tidegate.model.decision import Decision
    from tidegate.policy.policy import Policy

SUFFIXES = Suffixes(["com", "test", "github.io", "s3.amazonaws.com"])


def judge(policy: Policy, decision: Decision, address: str) -> Decision:
    """Return a decision as an address leaves it."""
    packed = canonical_host(bracketed(address)).packed
    assert packed is not None
    return admit(decision, (packed,), NOWHERE, policy.modes, policy.denied_literals(decision.phase))


def proposed(*contacts: Any, known: str = "", of: Learned | None = None, **wish: bool) -> tuple[Proposal, str]:
    """Return what these lines become, and the policy's text."""
    found = of or learned(*contacts)
    policy = join(load_policy(known.encode(), "known", Layer.COMMAND_LINE)) if known else None
    made = propose(found, Wish(**wish), judge=judge, domain=SUFFIXES.wildcard_domain, known=policy)
    return made, fresh(made, found, of=["a task"])


def policy_of(text: str) -> Policy:
    """Return the policy that a text makes."""
    return join(load_policy(text.encode(), "learned", Layer.COMMAND_LINE))


def rules(text: str) -> list[str]:
    """Return the texts of a policy's rules."""
    return [rule.text for rule in policy_of(text).rules]


def test_a_policy_of_what_passed_and_of_nothing_else() -> None:
    """JRN-7: entries by name and port with count and day; a refusal is a comment, and the rest is denied."""
    _made, text = proposed(contact(count=12), refusal(count=3), contact("deps.test", phase=Phase.INSTALL))
    assert text == (
        "# Learned from 16 connections of 1 record, 2026-11-29 00:00Z to 2026-11-29 00:00Z:\n"
        "#   a task\n"
        "# It lets through what was done, right or wrong: look at each entry before you use it.\n"
        "# What is under 'install' is for a set-up command: 'setup: COMMAND', which no record has.\n"
        "default: deny\n"
        "private: never  # nothing was seen to lead to an address of a private network\n"
        "own: never  # nothing was seen to lead to an address of this machine\n"
        "network:\n  install:\n    allow:\n"
        "      - deps.test:443  # x1, last 2026-11-29 00:00Z\n"
        "  runtime:\n    allow:\n"
        "      - a.test:443  # x12, last 2026-11-29 00:00Z\n"
        "# Not learned:\n"
        "#   b.test:443 in runtime: only tried: x3 no rule allows it\n"
    )
    policy = policy_of(text)
    assert decide(policy, parse_authority("a.test:443"), Phase.RUNTIME).allowed
    assert not decide(policy, parse_authority("a.test:443"), Phase.INSTALL).allowed
    assert not decide(policy, parse_authority("b.test:443"), Phase.RUNTIME).allowed


def test_nothing_passed_is_a_policy_too() -> None:
    """JRN-7: an empty record makes a policy that denies all, and says why; not one that falls back to a profile."""
    _made, text = proposed(refusal())
    policy = policy_of(text)
    assert "# Nothing passed, so nothing is allowed.\n" in text
    assert not policy.rules
    assert not decide(policy, parse_authority("registry.npmjs.org:443"), Phase.RUNTIME).allowed


def test_an_exact_entry_opens_no_private_network() -> None:
    """JRN-7, ADR-2: an entry for a host and port would admit private addresses; nothing led there, so none do."""
    _made, text = proposed(contact(address="1.2.3.4"))
    policy = policy_of(text)
    decision = decide(policy, parse_authority("a.test:443"), Phase.RUNTIME)
    assert judge(policy, decision, "1.2.3.4").allowed
    assert judge(policy, decision, "10.0.0.5").reason is Reason.PRIVATE_ADDRESS
    assert judge(policy, decision, "127.0.0.1").reason is Reason.OWN_ADDRESS


@pytest.mark.parametrize(("address", "kind"), [("10.0.0.5", "private"), ("127.0.0.1", "own")])
def test_what_led_to_a_private_address_still_does(address: str, kind: str) -> None:
    """JRN-7, ADR-2: a service of the own network stays in reach, by exactly its host and port, and says where it is."""
    _made, text = proposed(contact(address=address, port=8443))
    policy = policy_of(text)
    assert f"a.test:8443  # x1, last 2026-11-29 00:00Z; leads to {address} ({kind})" in text
    assert judge(policy, decide(policy, parse_authority("a.test:8443"), Phase.RUNTIME), address).allowed
    assert f"{'own' if kind == 'private' else 'private'}: never" in text


def test_a_refused_private_address_opens_nothing() -> None:
    """JRN-7, ADR-2: that a name was refused for leading inside is no reason to let every entry lead there."""
    _made, text = proposed(contact(), refusal("b.test", reason=Reason.PRIVATE_ADDRESS, address="10.0.0.5"))
    assert "private: never" in text
    _made, text = proposed(
        contact(), refusal("b.test", reason=Reason.PRIVATE_ADDRESS, address="10.0.0.5"), include_refused=True
    )
    assert "private: exact-host-port" in text
    assert "b.test:443  # was refused: x1 it leads to a private address" in text


def test_an_address_is_named_as_one() -> None:
    """JRN-7, ADR-6: a literal is there only with its address, in quotes, and says that it is no name."""
    _made, text = proposed(contact("8.8.8.8", 53), contact("2600:beef::1"))
    assert '- "8.8.8.8:53"  # x1, last 2026-11-29 00:00Z; an address, not a name\n' in text
    assert '- "[2600:beef::1]:443"' in text
    assert sorted(rules(text)) == ["8.8.8.8:53", "[2600:beef::1]:443"]


def test_what_was_refused_comes_in_only_when_asked_for() -> None:
    """JRN-7: --include-refused adds what a policy may allow, and nothing else."""
    lines = (
        refusal("new.test"),
        refusal("person.test", reason=Reason.DENIED_BY_PERSON),
        contact("person.test"),
        refusal("metadata", 80, Reason.NEVER_ALLOWED),
        refusal("169.254.169.254", 80, Reason.NEVER_ADDRESS),
        refusal("5.5.5.5", 443, Reason.NOT_TCP),
        refusal("api.anthropic.com", reason=Reason.MODEL_GUARD),
        refusal("x\x1b[31m\nallow: [evil.test]", reason=Reason.BAD_HOST),
    )
    _made, text = proposed(*lines)
    assert "network:" not in text
    assert "person.test:443 in runtime: it passed x1, and a person refused it" in text
    _made, text = proposed(*lines, include_refused=True)
    assert rules(text) == ["new.test:443", "person.test:443"]
    assert "x\\x1b[31m\\nallow: [evil.test] x1" in text
    assert text.isascii()


def test_presets_come_only_when_asked_for() -> None:
    """JRN-7, POL-11: a preset has more hosts than were seen, so it is a choice; without it the entry says so."""
    lines = (contact("pypi.org", count=2), contact("pypi.org", 80))
    _made, text = proposed(*lines)
    assert rules(text) == ["pypi.org:80", "pypi.org:443"]
    assert "nothing holds to reading here; --presets writes @pypi" in text
    _made, text = proposed(*lines, presets=True)
    assert '- "@pypi"  # x2, last 2026-11-29 00:00Z: pypi.org; 1 more host with it; only what reads\n' in text
    assert rules(text)[0] == "pypi.org:80"
    _made, text = proposed(contact("pypi.org", address="10.0.0.5"), presets=True)
    assert rules(text) == ["pypi.org:443"]  # a preset admits no private address


def test_what_was_read_keeps_its_methods() -> None:
    """JRN-7, INS-6, INS-7: an inspected host keeps its methods, a registry what reads, a forge is held to fetch."""

    def read(host: str, method: str, **changes: Any) -> Any:
        return contact(host, how=How.INSPECTED, method=method, **changes)

    _made, text = proposed(
        read("api.test", "PATCH"),
        read("registry.npmjs.org", "GET", source="preset npm"),
        read("registry.npmjs.org", "POST", source="preset npm"),
        read("github.com", "POST"),
    )
    assert '- {host: "api.test:443", methods: [PATCH]}' in text
    assert '- {host: "registry.npmjs.org:443", methods: [GET, HEAD]}' in text
    assert '- {host: "registry.npmjs.org:443", methods: [POST], paths: ["/-/npm/' in text
    assert '- {host: "github.com:443", git: read}' in text
    assert decide(policy_of(text), parse_authority("registry.npmjs.org:443"), Phase.RUNTIME).allowed


def test_names_are_grouped_only_when_asked_for() -> None:
    """JRN-7: three names below one domain are one wildcard, the narrowest that has them; two are two entries."""
    lines = [contact(f"{name}.cdn.a.com") for name in "xyz"]
    assert rules(proposed(*lines)[1]) == ["x.cdn.a.com:443", "y.cdn.a.com:443", "z.cdn.a.com:443"]
    assert rules(proposed(*lines, group=True)[1]) == ["*.cdn.a.com:443"]
    assert rules(proposed(*lines[:2], group=True)[1]) == ["x.cdn.a.com:443", "y.cdn.a.com:443"]
    assert rules(proposed(*lines, contact("p.q.a.com"), group=True)[1]) == ["**.a.com:443"]
    apex = proposed(*lines, contact("cdn.a.com"), group=True)[1]
    assert sorted(rules(apex)) == ["*.cdn.a.com:443", "cdn.a.com:443"]
    assert "3 names (x, y, z)" in apex


@pytest.mark.parametrize(
    "lines",
    [
        [contact(f"{name}.com") for name in "xyz"],
        [contact(f"{name}.github.io") for name in "xyz"],
        [contact(f"{name}.amazonaws.com") for name in "xyz"],
        [contact(f"{name}.a.com", address="10.0.0.5") for name in "xyz"],
        [contact(f"{name * 40}.a.com") for name in "xyz"],
        [contact(f"{name}.a.com", at) for at, name in enumerate("xyz", 1)],
        [contact(f"{name}.a.com", phase=phase) for name, phase in zip("xyz", (*Phase, Phase.RUNTIME), strict=True)],
        [contact(f"1.2.3.{at}") for at in range(3)],
        [refusal(f"{name}.a.com") for name in "xyz"],
        [contact(f"{name}.a.com", how=How.INSPECTED, method="GET") for name in "xyz"],
    ],
    ids=[
        "suffix",
        "private-suffix",
        "suffixes-below",
        "private",
        "data",
        "ports",
        "phases",
        "literals",
        "refused",
        "read",
    ],
)
def test_what_no_wildcard_may_stand_for(lines: list[Any]) -> None:
    """JRN-7: never over a public suffix, ports or phases, private addresses, odd names, refusals, narrowed ones."""
    made, _text = proposed(*lines, group=True, include_refused=True)
    assert not [item.rule for entry in made.entries for item in entry.items if "*" in item.rule]
    assert len({item.rule for entry in made.entries for item in entry.items}) == 3


def test_names_that_look_like_data_are_marked() -> None:
    """JRN-7, B29: they are in the policy, since they passed, and say loudly that somebody has to look."""
    made, text = proposed(
        contact(f"{'a1' * 25}.x.test"), *(contact(f"n{at}.y.test") for at in range(12)), contact("z.test")
    )
    assert "REVIEW: a label of 50 characters, which may be data in disguise" in text
    assert "REVIEW: one of 12 names under y.test" in text
    assert [bool(entry.review) for entry in made.entries].count(False) == 1


@pytest.mark.parametrize("parent", ["com", "test", "co.uk", "com.au"])
def test_many_domains_are_no_crowd(parent: str) -> None:
    """JRN-7: a dozen domains of one country or kind are not one owner's names."""
    made, _text = proposed(*(contact(f"name{at}.{parent}") for at in range(20)))
    assert not any(entry.review for entry in made.entries)


def test_a_known_policy_is_not_said_again() -> None:
    """JRN-7: what it allows is left out; what it asks for or denies stays, and is said."""
    known = "default: ask\nnetwork: {runtime: {allow: ['*.ok.test', 'in.test'], ask: [ask.test], deny: [no.test]}}\n"
    made, _text = proposed(
        contact("a.ok.test"),
        contact("ask.test"),
        contact("no.test"),
        contact("new.test"),
        contact("in.test"),
        known=known,
    )
    assert [item.rule for entry in made.entries for item in entry.items] == ["new.test:443"]
    assert not_learned(made) == [
        "Not learned:",
        "  ask.test:443 in runtime: the policy asks for it (known:2:60), and still does",
        "  no.test:443 in runtime: the policy denies it (known:2:78), and still does",
    ]


def test_a_wildcard_that_does_not_admit_is_no_word() -> None:
    """JRN-7, ADR-2: what led to a private address needs an entry of its own beside a wildcard, unless none may."""
    lines = [contact("a.ok.test", address="10.0.0.5")]
    known = "network: {runtime: {allow: ['*.ok.test']}}\n"
    made, _text = proposed(*lines, known=known)
    assert [item.rule for entry in made.entries for item in entry.items] == ["a.ok.test:443"]
    made, _text = proposed(*lines, known=f"private: never\n{known}")
    assert made.entries == ()
    assert "the policy says 'private: never'" in not_learned(made)[1]


def test_what_was_left_out_is_bounded() -> None:
    """JRN-7: a task that tries ten thousand hosts makes no file of ten thousand comments."""
    _made, text = proposed(of=learned(*(refusal(f"h{at}.test") for at in range(400)), places=1000))
    assert text.count("only tried") == 200
    assert "and 200 more" in text


HOSTS = st.sampled_from(
    ["a.test", "b.a.test", "c.b.a.test", "_x.test", "xn--bcher-kva.example", "true", "no", "1.2.3.4", "10.0.0.5",
     "127.0.0.1", "2600:beef::1", "fd00::5", "pypi.org", "registry.npmjs.org", "github.com", "-bad.test", "metadata",
     "A.test", "x y", "a\nb"]
)  # fmt: skip
CONTACTS = st.builds(
    contact,
    HOSTS,
    st.sampled_from([22, 80, 443, 8443]),
    phase=st.sampled_from(list(Phase)),
    how=st.sampled_from(list(How)),
    reason=st.sampled_from([reason.word for reason in Reason]),
    name=st.sampled_from(["policy", "no-rule", "harness:claude"]),
    source=st.sampled_from(["p.yaml:1:1", "preset npm"]),
    address=st.sampled_from(["", "1.2.3.4", "10.0.0.9", "127.0.0.1"]),
    method=st.sampled_from(["", "GET", "POST", "CONNECT"]),
    count=st.integers(1, 9),
)


def _classify(text: str) -> AddressClass:
    packed = canonical_host(bracketed(text)).packed
    assert packed is not None
    return classify(packed)


@settings(max_examples=150, deadline=None)
@given(st.lists(CONTACTS, max_size=25), st.booleans())
def test_what_was_learned_passes_and_nothing_else_does(contacts: list[Any], include: bool) -> None:
    """JRN-7: of any record, each place that was learned passes again, addresses and all, and every other is denied."""
    found = Learned(_classify)
    for one in contacts:
        found.add(one)
    made, text = proposed(of=found, include_refused=include)
    policy = policy_of(text)
    wanted = {(place.phase, place.host.text, place.port) for entry in made.entries for place in entry.places}
    for place in found.places():
        key = (place.phase, place.host.text, place.port)
        assert (key in wanted) is (place.learned or (include and place.offered))
        if key in wanted:
            decision = decide(policy, Destination(place.host, place.port), place.phase)
            assert decision.allowed
            address = place.address if place.passed else place.wanted
            said = judge(policy, decision, address) if address else decision
            assert said.allowed or said.reason is Reason.NEVER_ADDRESS, said.sentence()
    for host in ("a.test", "new.test", "x.a.test", "9.9.9.9", "pypi.org", "metadata"):
        for port in (22, 80, 443, 8443, 9):
            for phase in Phase:
                if (phase, host, port) not in wanted:
                    assert not decide(policy, parse_authority(f"{host}:{port}"), phase).allowed


@settings(max_examples=60, deadline=None)
@given(st.lists(CONTACTS, max_size=25), st.randoms())
def test_it_is_minimal_and_does_not_hang_on_the_order(contacts: list[Any], random: Any) -> None:
    """JRN-7: no entry is there twice or inside another, and the same lines in any order give the same text."""
    _made, text = proposed(of=_learned(contacts))
    texts = [(rule.phase, rule.text, rule.limits) for rule in policy_of(text).rules]
    assert len(set(texts)) == len(texts)
    assert not any("*" in rule for _phase, rule, _limits in texts)
    again = list(contacts)
    random.shuffle(again)
    assert proposed(of=_learned(again))[1] == text


def _learned(contacts: list[Any]) -> Learned:
    found = Learned(_classify)
    for one in contacts:
        found.add(one)
    return found
