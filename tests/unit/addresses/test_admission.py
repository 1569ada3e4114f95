"""Stage two of POL-5: which addresses a decision may lead to."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.addresses.admission import address_text, admit, admit_unresolved
from tidegate.addresses.surroundings import NOWHERE, Surroundings
from tidegate.model.address_class import AddressClass, Admission, Modes
from tidegate.model.decision import Decision
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.model.rule import Layer, Origin, Rule, Shape
from tidegate.model.verdict import Phase, Verdict

MODES = Modes()
MACHINE = Surroundings(
    frozenset({bytes([9, 9, 9, 9]), ipaddress.IPv6Address("2600:beef::9").packed}),
    frozenset({8080}),
    frozenset({"box.test"}),
)
PUBLIC, PRIVATE, LOOPBACK, METADATA = "1.2.3.4", "10.0.0.1", "127.0.0.1", "169.254.169.254"


def rule(text: str, origin: Origin = Origin.WRITTEN, verdict: Verdict = Verdict.ALLOW) -> Rule:
    """Return a rule; the shape is read off the text."""
    host, _, port = text.rpartition(":") if text[-1] != "]" and ":" in text else (text, "", "")
    key = host.strip("[]")
    if key == "*":
        shape = Shape.ANY
    elif key.startswith("**."):
        shape = Shape.DEEP
    elif key.startswith("*."):
        shape = Shape.ONE_LABEL
    else:
        shape = Shape.LITERAL if key[-1].isdigit() or ":" in key else Shape.EXACT
    return Rule(text, shape, key.lstrip("*."), int(port) if port else None, verdict, Phase.RUNTIME, "policy", "p:1:1",
                origin, Layer.COMMAND_LINE)  # fmt: skip


def decision(target: str, by: Rule | None, verdict: Verdict = Verdict.ALLOW) -> Decision:
    """Return a decision of stage one."""
    reason = {Verdict.ALLOW: Reason.ALLOWED, Verdict.ASK: Reason.WAITING, Verdict.DENY: Reason.NO_RULE}[verdict]
    fix = "" if verdict is Verdict.ALLOW else f"--allow {target}"
    return Decision(verdict, parse_authority(target), Phase.RUNTIME, reason, by, "policy", "p:1:1", fix=fix)


def packed(*texts: str) -> list[bytes]:
    """Return addresses as bytes."""
    return [ipaddress.ip_address(text).packed for text in texts]


def test_public_is_the_same_object() -> None:
    """A decision that leads to public addresses only comes back untouched, whatever rule made it."""
    for by in (rule("a.test"), rule("*"), None):
        for verdict in (Verdict.ALLOW, Verdict.ASK):
            one = decision("a.test:443", by, verdict)
            assert admit(one, packed(PUBLIC, "2600:beef::1", "64:ff9b::1.2.3.4"), MACHINE, MODES) is one


@pytest.mark.parametrize("by", ["*", "*:443", "**.test:443", "*.test:443", "a.test"])
@pytest.mark.parametrize(
    ("address", "reason", "address_class"),
    [
        (PRIVATE, Reason.PRIVATE_ADDRESS, AddressClass.PRIVATE),
        (LOOPBACK, Reason.OWN_ADDRESS, AddressClass.OWN),
        ("9.9.9.9", Reason.OWN_ADDRESS, AddressClass.OWN),
        ("::ffff:127.0.0.1", Reason.OWN_ADDRESS, AddressClass.OWN),
        ("64:ff9b::a00:1", Reason.PRIVATE_ADDRESS, AddressClass.PRIVATE),
        ("::ffff:100.64.0.1", Reason.PRIVATE_ADDRESS, AddressClass.PRIVATE),
    ],
)
def test_what_wide_rules_do_not_admit(by: str, address: str, reason: Reason, address_class: AddressClass) -> None:
    """Wildcards, and exact rules without a port, admit nothing but public addresses (ADR-2, B16, B17)."""
    refused = admit(decision("a.test:443", rule(by)), packed(address), MACHINE, MODES)
    assert (refused.verdict, refused.reason, refused.address_class) == (Verdict.DENY, reason, address_class)
    assert refused.address == address
    assert refused.fix == "--allow a.test:443"
    assert refused.rule_text == by


@pytest.mark.parametrize("address", [PRIVATE, LOOPBACK, "9.9.9.9", "2600:beef::9", "fd00::1", "64:ff9b::a00:1"])
def test_exact_host_and_port_admits(address: str) -> None:
    """A written rule for exactly this host and port admits private and own addresses, and says so (ADR-2)."""
    admitted = admit(decision("a.test:443", rule("a.test:443")), packed(address), MACHINE, MODES)
    assert (admitted.verdict, admitted.reason, admitted.address) == (Verdict.ALLOW, Reason.ALLOWED, address)
    assert admitted.address_class in {AddressClass.PRIVATE, AddressClass.OWN}


@pytest.mark.parametrize("origin", [Origin.PRESET, Origin.REMEMBERED, Origin.HARNESS])
def test_only_written_rules_admit(origin: Origin) -> None:
    """A preset, a harness host or a remembered answer never admits, however exact (ADR-2)."""
    for address in (PRIVATE, LOOPBACK):
        refused = admit(decision("a.test:443", rule("a.test:443", origin)), packed(address), MACHINE, MODES)
        assert not refused.allowed
        assert refused.fix == "--allow a.test:443"


def test_no_rule_admits_nothing() -> None:
    """What passes or is asked by default never leads to a private address (ADR-2, POL-10)."""
    for verdict in (Verdict.ALLOW, Verdict.ASK):
        assert admit(decision("a.test:443", None, verdict), packed(PRIVATE), MACHINE, MODES).verdict is Verdict.DENY


@pytest.mark.parametrize(
    ("modes", "by", "private", "own"),
    [
        (Modes(), "a.test:443", True, True),
        (Modes(), "a.test", False, False),
        (Modes(private=Admission.EXACT_HOST), "a.test", True, False),
        (Modes(private=Admission.EXACT_HOST), "a.test:443", True, True),
        (Modes(private=Admission.EXACT_HOST), "*.test:443", False, False),
        (Modes(private=Admission.NEVER), "a.test:443", False, True),
        (Modes(own=Admission.NEVER), "a.test:443", True, False),
        (Modes(own=Admission.EXACT_HOST), "a.test:443", True, False),
    ],
)
def test_modes(modes: Modes, by: str, *, private: bool, own: bool) -> None:
    """`private` and `own` say what admits each class; `own: exact-host` does not exist and admits nothing (ADR-2)."""
    for address, expected in ((PRIVATE, private), (LOOPBACK, own)):
        got = admit(decision("a.test:443", rule(by)), packed(address), MACHINE, modes)
        assert got.allowed == expected


def test_no_fix_where_none_helps() -> None:
    """A refusal offers `--allow` only where that would admit the address (POL-14)."""
    one = decision("a.test:443", rule("a.test"))
    assert admit(one, packed(PRIVATE), MACHINE, Modes(private=Admission.NEVER)).fix == ""
    assert admit(one, packed(LOOPBACK), MACHINE, Modes(own=Admission.NEVER)).fix == ""
    assert admit(one, packed(PRIVATE), MACHINE, Modes(locked=True)).fix == ""
    assert admit(one, packed(METADATA), MACHINE, MODES).fix == ""


@pytest.mark.parametrize("address", [METADATA, "fe80::1", "224.0.0.1", "0.0.0.0", "::", "255.255.255.255", "ff02::1",
                                     "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254",
                                     "::ffff:169.254.169.254", "64:ff9b::169.254.169.254"])  # fmt: skip
def test_never(address: str) -> None:
    """No rule opens link-local, metadata, multicast, broadcast or unspecified addresses (ADR-1, B16)."""
    refused = admit(decision("a.test:80", rule("a.test:80")), packed(address), MACHINE, MODES)
    assert (refused.verdict, refused.reason) == (Verdict.DENY, Reason.NEVER_ADDRESS)


@pytest.mark.parametrize("address", [LOOPBACK, "127.8.8.8", "::1", "9.9.9.9", "2600:beef::9", "::ffff:9.9.9.9"])
def test_protected_ports(address: str) -> None:
    """A protected port is refused on every address of this machine, whatever rule names it; others pass (ADR-1)."""
    for port, modes in ((8080, MODES), (7070, Modes(protected_ports=frozenset({7070})))):
        target = f"a.test:{port}"
        refused = admit(decision(target, rule(target)), packed(address), MACHINE, modes)
        assert (refused.verdict, refused.reason, refused.fix) == (Verdict.DENY, Reason.PROTECTED_PORT, "")
    assert admit(decision("a.test:8081", rule("a.test:8081")), packed(address), MACHINE, MODES).allowed


def test_protected_ports_elsewhere_are_ordinary() -> None:
    """The same port on another machine is no concern of this one."""
    for address in (PUBLIC, PRIVATE):
        assert admit(decision("a.test:8080", rule("a.test:8080")), packed(address), MACHINE, MODES).allowed


@pytest.mark.parametrize("bad", [PRIVATE, LOOPBACK, METADATA])
def test_one_inadmissible_address_refuses_the_name(bad: str) -> None:
    """A name with one inadmissible address among public ones is refused whole, in any order (ADR-4, B23)."""
    one = decision("a.test:443", rule("a.test"))
    for answers in ([PUBLIC, bad], [bad, PUBLIC], [PUBLIC, "2600:beef::1", bad]):
        refused = admit(one, packed(*answers), MACHINE, MODES)
        assert not refused.allowed
        assert refused.address == bad


def test_mixed_but_admitted() -> None:
    """Where the rule admits them, public and private answers may stand beside one another; the strictest is noted."""
    admitted = admit(decision("a.test:443", rule("a.test:443")), packed(PUBLIC, PRIVATE, LOOPBACK), MACHINE, MODES)
    assert (admitted.allowed, admitted.address) == (True, LOOPBACK)


def test_no_address() -> None:
    """A name without any address is refused, not dialled; a refusal keeps its own reason."""
    assert admit(decision("a.test:443", rule("a.test")), [], MACHINE, MODES).reason is Reason.NO_ADDRESS
    refused = decision("a.test:443", None, Verdict.DENY)
    assert admit(refused, [], MACHINE, MODES) is refused


def test_the_narrow_exception() -> None:
    """A written `127.0.0.1:8081` opens that address and port, and nothing beside it (B28)."""
    exact = rule("127.0.0.1:8081")
    assert admit(decision("127.0.0.1:8081", exact), packed(LOOPBACK), MACHINE, MODES).allowed
    by_range = decision("127.0.0.2:8081", rule("*"))
    assert admit(by_range, packed("127.0.0.2"), MACHINE, MODES).reason is Reason.OWN_ADDRESS
    by_name = decision("localhost:8081", rule("*"))
    assert admit(by_name, packed(LOOPBACK), MACHINE, MODES).reason is Reason.OWN_ADDRESS
    assert admit(decision("localhost:8081", rule("localhost:8081")), packed(LOOPBACK, "::1"), MACHINE, MODES).allowed


@pytest.mark.parametrize("address", ["10.1.1.5", "::ffff:10.1.1.5", "64:ff9b::10.1.1.5", "2002:a01:105::"])
def test_denied_addresses_in_every_form(address: str) -> None:
    """A deny rule for an address counts for every name that leads there, in any form (POL-5, ADR-3, B16)."""
    deny = rule("10.1.1.5", verdict=Verdict.DENY)
    denied = {bytes([10, 1, 1, 5]): (deny,)}
    one = decision("a.test:443", rule("a.test:443"))
    refused = admit(one, packed(address), MACHINE, MODES, denied)
    assert (refused.verdict, refused.reason, refused.rule, refused.fix) == (Verdict.DENY, Reason.DENY_RULE, deny, "")
    assert (refused.name, refused.source) == (deny.name, deny.source)
    assert admit(one, packed("10.1.1.6"), MACHINE, MODES, denied).allowed


def test_denied_addresses_by_port() -> None:
    """A deny rule with a port denies that port; a public address can be denied as well."""
    denied = {bytes([1, 2, 3, 4]): (rule("1.2.3.4:22", verdict=Verdict.DENY),)}
    assert not admit(decision("a.test:22", rule("*")), packed(PUBLIC), MACHINE, MODES, denied).allowed
    assert admit(decision("a.test:443", rule("*")), packed(PUBLIC), MACHINE, MODES, denied).allowed


def test_asked_literals_are_judged_before_the_question() -> None:
    """An `ask` for an address that is not admitted is refused at once; one that is admitted stays asked (POL-5)."""
    by = rule("10.0.0.1:22", verdict=Verdict.ASK)
    asked = admit(decision("10.0.0.1:22", by, Verdict.ASK), packed(PRIVATE), MACHINE, MODES)
    assert (asked.verdict, asked.reason, asked.address_class) == (Verdict.ASK, Reason.WAITING, AddressClass.PRIVATE)
    wide = decision("10.0.0.1:22", rule("*", verdict=Verdict.ASK), Verdict.ASK)
    assert admit(wide, packed(PRIVATE), MACHINE, MODES).verdict is Verdict.DENY


def test_refused_literals_keep_their_reason() -> None:
    """A literal that no rule names stays refused for that; a fix that cannot help goes, and never-addresses say so."""
    refused = decision("10.0.0.1:22", None, Verdict.DENY)
    kept = admit(refused, packed(PRIVATE), MACHINE, MODES)
    assert (kept.reason, kept.fix, kept.address_class) == (refused.reason, refused.fix, AddressClass.PRIVATE)
    assert admit(refused, packed(PRIVATE), MACHINE, Modes(private=Admission.NEVER)).fix == ""
    never = admit(decision("169.254.169.254:80", None, Verdict.DENY), packed(METADATA), MACHINE, MODES)
    assert (never.reason, never.fix) == (Reason.NEVER_ADDRESS, "")
    denied = decision("10.0.0.1:22", rule("10.0.0.1"), Verdict.DENY).replace(reason=Reason.DENY_RULE, fix="")
    assert admit(denied, packed(METADATA), MACHINE, MODES).reason is Reason.DENY_RULE


ADDRESSES = st.sampled_from([PUBLIC, PRIVATE, LOOPBACK, METADATA, "::ffff:10.0.0.1", "64:ff9b::1.2.3.4", "9.9.9.9"])
RULES = st.one_of(st.none(), st.builds(rule, st.sampled_from(["a.test", "a.test:443", "*", "*.test:443"]),
                                       st.sampled_from(list(Origin))))  # fmt: skip
ALL_MODES = st.builds(Modes, st.sampled_from(list(Admission)), st.sampled_from(list(Admission)))
WEIGHT = {Verdict.DENY: 0, Verdict.ASK: 1, Verdict.ALLOW: 2}


@given(RULES, st.sampled_from(list(Verdict)), st.lists(ADDRESSES, max_size=4), ALL_MODES)
def test_never_widens(by: Rule | None, verdict: Verdict, answers: list[str], modes: Modes) -> None:
    """Admission keeps a verdict or refuses, and each address alone decides as it does among others (ADR-4)."""
    one = decision("a.test:443", by, verdict)
    got = admit(one, packed(*answers), MACHINE, modes)
    assert got.verdict in {one.verdict, Verdict.DENY}
    assert WEIGHT[got.verdict] <= WEIGHT[one.verdict]
    if answers:
        alone = [admit(one, packed(answer), MACHINE, modes).verdict for answer in answers]
        assert got.verdict is (Verdict.DENY if Verdict.DENY in alone else one.verdict)


def test_unresolved() -> None:
    """Where only an upstream resolves, own names and inadmissible literals are still refused (ADR-5)."""
    for target in ("localhost:443", "a.localhost:443", "box.test:443"):
        assert admit_unresolved(decision(target, rule("*")), MACHINE, MODES).reason is Reason.OWN_ADDRESS
        assert admit_unresolved(decision(target, rule(target)), MACHINE, MODES).allowed
    for target in ("10.0.0.1:443", "169.254.169.254:80", "127.0.0.1:1", "[::ffff:169.254.169.254]:80"):
        assert not admit_unresolved(decision(target, rule("*")), MACHINE, MODES).allowed
    for target in ("a.test:443", "xlocalhost:443", "localhost.test:443", "1.2.3.4:443"):
        one = decision(target, rule("*"))
        assert admit_unresolved(one, MACHINE, MODES) is one


def test_nothing_known_of_the_machine() -> None:
    """Loopback is own even where nothing is known of the machine."""
    assert admit(decision("a.test:443", rule("*")), packed("127.9.9.9"), NOWHERE, MODES).reason is Reason.OWN_ADDRESS


def test_address_text() -> None:
    """Addresses are written canonically, without brackets."""
    assert [address_text(one) for one in packed("1.2.3.4", "2600:BEEF:0::1")] == ["1.2.3.4", "2600:beef::1"]


@pytest.mark.parametrize(("layer", "own"), [(Layer.FOLDER, False), (Layer.COMMAND_LINE, True), (Layer.USER, True)])
def test_a_folders_file_never_opens_this_machine(layer: Layer, own: bool) -> None:
    """POL-9: the exact rule of a folder's file admits a private address, but none of this machine's own."""
    for target, allowed in (("127.0.0.1:8081", own), ("10.0.0.1:8081", True)):
        destination = parse_authority(target)
        governing = rule(target).replace(layer=layer)
        decision = Decision(
            Verdict.ALLOW, destination, Phase.RUNTIME, Reason.ALLOWED, governing, "policy", "tidegate.yaml:1:1"
        )
        assert destination.host.packed is not None
        assert admit(decision, (destination.host.packed,), NOWHERE, MODES).allowed is allowed


@pytest.mark.parametrize("worse", [METADATA, "::ffff:169.254.169.254"])
def test_what_nothing_opens_is_said_before_what_an_option_opens(worse: str) -> None:
    """A refusal offers no option that would only lead to the next refusal, in whichever order the addresses come."""
    for addresses in ((PRIVATE, worse), (worse, PRIVATE)):
        said = admit(decision("a.test:80", rule("*")), packed(*addresses), NOWHERE, MODES)
        assert (said.reason, said.fix, said.address) == (Reason.NEVER_ADDRESS, "", worse)
    said = admit(decision("a.test:80", rule("*")), packed(PRIVATE, PUBLIC), NOWHERE, MODES)
    assert (said.reason, said.fix) == (Reason.PRIVATE_ADDRESS, "--allow a.test:80")


def test_no_option_is_offered_that_would_not_help() -> None:
    """Not for a name that no rule can hold, and not beside an equal ask rule, which would still govern."""
    assert admit(decision("-a.test:80", rule("*")), packed(PRIVATE), NOWHERE, MODES).fix == ""
    asked = rule("a.test:80", Origin.PRESET, Verdict.ASK)
    assert admit(decision("a.test:80", asked, Verdict.ASK), packed(PRIVATE), NOWHERE, MODES).fix == ""
    wider = rule("a.test", Origin.PRESET, Verdict.ASK)
    assert admit(decision("a.test:80", wider, Verdict.ASK), packed(PRIVATE), NOWHERE, MODES).fix == "--allow a.test:80"
