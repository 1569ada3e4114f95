"""tidegate.policy.learned."""

from __future__ import annotations

import pytest

from tests.unit.journal.contact_lines import AT, contact, refusal
from tidegate.model.address_class import AddressClass
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Phase
from tidegate.policy.learned import Learned, Place, looks_random

CLASSES = {
    "10.0.0.5": AddressClass.PRIVATE,
    "127.0.0.1": AddressClass.OWN,
    "169.254.169.254": AddressClass.NEVER,
}


def learned(*contacts: object, places: int = 100) -> Learned:
    """Return what these lines add up to."""
    found = Learned(lambda text: CLASSES.get(text, AddressClass.PUBLIC), places=places)
    for one in contacts:
        found.add(one)  # type: ignore[arg-type]
    return found


def only(*contacts: object) -> Place:
    """Return the one place that these lines are about."""
    (place,) = learned(*contacts).places()
    return place


def test_what_passed_is_learned_with_its_count_and_times() -> None:
    """JRN-7: lines of one place add up, in whatever order they come."""
    place = only(contact(at="2026-11-30T00:00:00.000Z", count=2), contact(), contact(at="2026-11-29T12:00:00.000Z"))
    assert (place.text, place.passed, place.first, place.last) == ("a.test:443", 4, AT, "2026-11-30T00:00:00.000Z")
    assert place.learned
    assert not place.offered


def test_places_are_told_apart_by_phase_host_and_port() -> None:
    """JRN-7, POL-7: install and runtime are kept apart, and so are ports."""
    found = learned(contact(), contact(port=80), contact(phase=Phase.INSTALL), contact("b.test")).places()
    assert [(place.phase.value, place.text) for place in found] == [
        ("install", "a.test:443"),
        ("runtime", "a.test:80"),
        ("runtime", "a.test:443"),
        ("runtime", "b.test:443"),
    ]


@pytest.mark.parametrize("reason", list(Reason), ids=lambda reason: reason.word)
def test_no_refusal_alone_is_learned(reason: Reason) -> None:
    """JRN-7: whatever it was refused for, a place to which no byte moved is not learned."""
    assert not only(refusal(reason=reason)).learned


@pytest.mark.parametrize(
    ("reason", "offered"),
    [
        (Reason.NO_RULE, True),
        (Reason.NO_APPROVER, True),
        (Reason.PHASE_CLOSED, True),
        (Reason.LITERAL_NOT_NAMED, True),
        (Reason.DENY_RULE, True),
        (Reason.DENIED_BY_PERSON, True),
        (Reason.PRIVATE_ADDRESS, True),
        (Reason.OWN_ADDRESS, True),
        (Reason.UPSTREAM_NXDOMAIN, True),
        (Reason.NEVER_ALLOWED, False),
        (Reason.NEVER_ADDRESS, False),
        (Reason.PROTECTED_PORT, False),
        (Reason.AROUND_GATE, False),
        (Reason.NOT_TCP, False),
        (Reason.FOREIGN_PEER, False),
        (Reason.MODEL_GUARD, False),
        (Reason.REGISTRY_READ_ONLY, False),
        (Reason.SECRET_MISDIRECTED, False),
        (Reason.BAD_HOST, False),
        (Reason.CLIENT_GONE, False),
    ],
    ids=lambda one: one.word if isinstance(one, Reason) else str(one),
)
def test_only_what_an_entry_would_lift_is_offered(reason: Reason, offered: bool) -> None:
    """JRN-7, ADR-1, INS-8: with --include-refused, too, nothing no policy may allow, nor a request's own refusal."""
    assert only(refusal(reason=reason)).offered is offered


@pytest.mark.parametrize("reason", [Reason.DENY_RULE, Reason.DENIED_BY_PERSON])
def test_a_no_that_was_meant_outweighs_what_passed(reason: Reason) -> None:
    """JRN-7: a place that a rule or a person refused once is not learned, before or after it passed."""
    for lines in (
        (refusal("a.test", reason=reason), contact(count=9)),
        (contact(count=9), refusal("a.test", reason=reason)),
    ):
        place = only(*lines)
        assert not place.learned
        assert place.offered
    assert not only(contact(), contact(reason=reason.word)).learned  # it was open, and was cut
    assert only(contact(), refusal("a.test", reason=Reason.NO_RULE)).learned  # another policy knew it not


def test_a_tasks_tools_are_no_place() -> None:
    """JRN-7, SRV-6: an entry for their name would let a task without tools ask a resolver for it."""
    found = learned(
        contact("tools.tidegate.internal", 80, name="tools", source="--tool", count=2),
        contact("tools.tidegate.internal", 80, how=How.REFUSED, name="tools", source="--tool"),
    )
    assert (found.places(), found.tools, found.contacts) == ([], 3, 3)
    assert only(contact("tools.tidegate.internal", 80)).learned  # a policy's rule let it through


def test_what_a_harness_brought_is_not_learned() -> None:
    """JRN-7, POL-12: the hosts of an agent are its own, and join without a rule; what passed otherwise counts."""
    place = only(contact(name="harness:claude", count=3))
    assert (place.learned, place.by_harness, place.harness) == (False, 3, "harness:claude")
    assert only(contact(name="harness:claude"), contact()).passed == 1


@pytest.mark.parametrize("host", ["metadata.google.internal", "-x.test", "169.254.169.254"])
def test_what_no_rule_may_name_is_never_learned(host: str) -> None:
    """JRN-7, ADR-1: a line that says it passed does not help, whoever wrote it."""
    place = only(contact(host))
    assert place.never
    assert not place.learned
    assert not place.offered


def test_a_look_up_has_no_port_and_is_not_offered() -> None:
    """JRN-7: a name that was only looked up is no place to go."""
    place = only(refusal("x.test", 0))
    assert (place.never, place.learned, place.offered) == (True, False, False)


@pytest.mark.parametrize(
    "host", ["A.test", "a.test.", "a_\x1b[31m", "bad host", "a/b", "*", "0x7f.1", "", "DNS lookups (port 53)"]
)
def test_what_is_no_canonical_host_is_kept_aside(host: str) -> None:
    """JRN-7, POL-3: what a gate would not write is no place, and its text is bounded."""
    found = learned(contact(host), contact(host))
    assert found.places() == []
    assert found.odd == {host: 2}
    assert not learned(contact("x " * 500)).odd.keys() & {"x " * 500}


def test_the_strictest_address_counts_when_it_passed() -> None:
    """JRN-7, ADR-2: one connection to a private address is enough to say so; one that was refused says nothing."""
    place = only(contact(address="1.2.3.4"), contact(address="10.0.0.5"), contact(address="1.2.3.4"))
    assert (place.address, place.address_class) == ("10.0.0.5", AddressClass.PRIVATE)
    place = only(contact(address="1.2.3.4"), refusal("a.test", reason=Reason.PRIVATE_ADDRESS, address="10.0.0.5"))
    assert (place.address_class, place.wanted_class) == (AddressClass.PUBLIC, AddressClass.PRIVATE)
    assert only(contact("127.0.0.1")).address_class is AddressClass.OWN


def _read(host: str = "a.test", method: str = "GET", **changes: object) -> object:
    return contact(host, how=How.INSPECTED, method=method, **changes)


def test_methods_are_known_where_all_of_it_was_read() -> None:
    """JRN-7, INS-6: what was read inside TLS keeps its methods, exactly; one tunnel beside it and nothing is known."""
    assert only(_read(), _read(method="POST")).narrowed == ((("GET", "POST"), ()),)
    assert only(_read(), contact()).narrowed == ()
    assert only(contact(method="GET", how=How.FORWARDED)).narrowed == ()
    assert only(_read(method="")).narrowed == ()
    assert only(_read(), _read(method="x y")).narrowed == ()
    assert only(*(_read(method=f"M{'A' * at}") for at in range(40))).narrowed == ()


def test_a_registry_keeps_to_what_reads() -> None:
    """JRN-7, INS-7: what a preset let through as a read is no plain rule, which would let a publish through."""
    get = _read("registry.npmjs.org", source="preset npm")
    assert only(get).narrowed == ((("GET", "HEAD"), ()),)
    (_, post) = only(get, _read("registry.npmjs.org", "POST", source="preset npm")).narrowed
    assert post[0] == ("POST",)
    assert all(path.startswith("/-/npm/v1/security/") for path in post[1])
    assert only(_read("registry.npmjs.org", "PUT", source="p.yaml:1:1")).narrowed == ((("PUT",), ()),)


def test_a_forge_is_held_to_fetch_where_it_may_have_been() -> None:
    """JRN-7, INS-7: a POST to a forge may be a fetch or a push, and the record does not say which."""
    assert only(_read("github.com", "POST")).git
    assert not only(_read("github.com")).git
    assert not only(contact("github.com")).git
    assert only(_read("git.a.test", "POST"), refusal("git.a.test", reason=Reason.GIT_READ_ONLY)).git


def test_what_is_kept_is_bounded() -> None:
    """JRN-7: a task that reaches ever new hosts makes no process grow; what is not kept is counted and not learned."""
    found = learned(*(contact(f"h{at}.test") for at in range(9)), contact("h0.test"), places=3)
    assert [place.host.text for place in found.places()] == ["h0.test", "h1.test", "h2.test"]
    assert (found.more, found.contacts, found.places()[0].passed) == (6, 10, 2)
    assert len(learned(*(contact(f"no host {at}") for at in range(500))).odd) < 500
    words = only(*(contact(how=How.REFUSED, reason=f"word-{at}") for at in range(50)))
    assert words.refused == {"another-reason": 50}
    assert "does not know" in words.why_refused()[0]


def test_what_comes_in_is_no_place() -> None:
    """JRN-7, HLD-10: a connection to the task's own server is no destination of the task."""
    found = learned(contact(how=How.PUBLISHED))
    assert (found.places(), found.inward) == ([], 1)


@pytest.mark.parametrize(
    ("host", "odd"),
    [
        (f"{'a' * 40}.x.test", True),
        ("x9a8b7c6d5e4f3g2h1i0.x.test", True),
        ("deadbeef0123456789abcdef01234567.x.test", True),
        (".".join(["abcdefghijklmnopq"] * 6) + ".x.test", True),
        ("deadbeefdeadbeef.x.test", False),
        ("api.example.com", False),
        ("ec2-1-2-3-4.compute-1.amazonaws.com", False),
        ("mail2024archive.x.test", False),
        ("objects-origin.githubusercontent.com", False),
        ("d1a2b3c4.cloudfront.net", False),
    ],
)
def test_names_that_look_like_data_are_for_review(host: str, odd: bool) -> None:
    """JRN-7, B29: a long random label may carry what a task knows; what people name hosts is none."""
    assert bool(looks_random(host)) is odd
