"""Whether a decision may lead to these addresses: stage two of POL-5 (ADR-1 to ADR-4).

Rules of the file:

* All addresses of a name are judged; one that is not admitted refuses the whole name (ADR-4).
* Never-reached addresses and protected ports are refused whatever a rule says; a deny rule for an address counts for
  every name that leads to it, in whatever form the address is written.
* A private address, or one of this machine, is admitted only by the governing rule, if a person wrote it in a policy or
  on the command line, it names exactly this host, and the policy's mode for that class says so.
* Nothing is widened: a decision comes back unchanged, or with its address and class, or as a refusal.

A literal destination is judged here right after `decide`, whatever its verdict: before any question, and so that a
refusal says what the address is. What this does not do: it neither resolves nor dials.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_ntop

from tidegate.addresses.classify import judged
from tidegate.addresses.surroundings import Surroundings
from tidegate.model.address_class import AddressClass, Admission, Modes
from tidegate.model.decision import Decision
from tidegate.model.reason import Reason
from tidegate.model.rule import Layer, Origin, Rule, Shape
from tidegate.model.verdict import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOTHING_DENIED: Mapping[bytes, tuple[Rule, ...]] = {}


def admit(
    decision: Decision,
    addresses: Sequence[bytes],
    surroundings: Surroundings,
    modes: Modes,
    denied: Mapping[bytes, tuple[Rule, ...]] = NOTHING_DENIED,
) -> Decision:
    """Return the decision as these packed addresses leave it; the same object where all of them are public.

    `denied` are the policy's deny rules that name an address (`Policy.denied_literals`). A refusal carries the address
    that decided and its class.
    """
    admitted: Decision | None = None
    refused: Decision | None = None
    own = surroundings.own
    for packed in addresses:
        address_class, forms = judged(packed)
        if address_class is not AddressClass.NEVER and not own.isdisjoint(forms):
            address_class = AddressClass.OWN
        if denied:
            rule = _denying(forms, decision.destination.port, denied)
            if rule is not None and decision.rule is not rule:
                return _denied(decision, rule, packed, address_class)
        if address_class is AddressClass.PUBLIC:
            continue
        reason, fix = _judge(decision, address_class, surroundings, modes)
        if reason is not None:
            worse = _refused(decision, reason, fix, packed, address_class)
            if not fix:
                return worse
            refused = refused or worse  # an option would open this address; perhaps not the others
        elif admitted is None or address_class is AddressClass.OWN:
            admitted = decision.replace(address=address_text(packed), address_class=address_class)
    if refused is not None:
        return refused
    if admitted is not None:
        return admitted
    if addresses or decision.verdict is Verdict.DENY:
        return decision
    return decision.refuse(Reason.NO_ADDRESS, fix="")


def admit_unresolved(
    decision: Decision,
    surroundings: Surroundings,
    modes: Modes,
    denied: Mapping[bytes, tuple[Rule, ...]] = NOTHING_DENIED,
) -> Decision:
    """Return the decision where only an upstream proxy resolves (`upstream.resolve: skip`, ADR-5).

    Names of this machine count as its addresses, and a literal is judged as always; the name of any other host passes,
    because nothing here knows where it leads.
    """
    host = decision.destination.host
    if host.packed is not None:
        return admit(decision, (host.packed,), surroundings, modes, denied)
    name = host.text
    if name == "localhost" or name.endswith(".localhost") or name in surroundings.names:
        return admit(decision, (b"\x7f\x00\x00\x01",), surroundings, modes, denied)
    return decision


def address_text(packed: bytes) -> str:
    """Return the canonical text of a packed address, without brackets."""
    return inet_ntop(AF_INET if len(packed) == 4 else AF_INET6, packed)


def _judge(
    decision: Decision, address_class: AddressClass, surroundings: Surroundings, modes: Modes
) -> tuple[Reason | None, str]:
    """Return why an address that is not public is refused and what would help, or (None, '')."""
    port = decision.destination.port
    if address_class is AddressClass.NEVER:
        return Reason.NEVER_ADDRESS, ""
    if address_class is AddressClass.OWN:
        if port in surroundings.protected_ports or port in modes.protected_ports:
            return Reason.PROTECTED_PORT, ""
        reason = Reason.OWN_ADDRESS
        # There is no `own: exact-host`; should one get here, it admits nothing.
        with_port = True
        open_to_rules = modes.own is Admission.EXACT_HOST_PORT
        if decision.rule is not None and decision.rule.layer is Layer.FOLDER:
            # A folder's file lies where tasks write: it never opens this machine to them (POL-9).
            return reason, _fix(decision, modes) if open_to_rules else ""
    else:
        reason = Reason.PRIVATE_ADDRESS
        with_port = modes.private is Admission.EXACT_HOST_PORT
        open_to_rules = modes.private is not Admission.NEVER
    if open_to_rules and _names_exactly(decision.rule, with_port=with_port):
        return None, ""
    return reason, _fix(decision, modes) if open_to_rules else ""


def _fix(decision: Decision, modes: Modes) -> str:
    destination, rule = decision.destination, decision.rule
    if modes.locked or not destination.host.fits_a_rule:
        return ""
    if rule is not None and rule.verdict is Verdict.ASK and rule.port is not None and _is_exact(rule):
        return ""  # among equals ask wins, so that rule would still govern
    return f"--allow {destination}"


def _is_exact(rule: Rule) -> bool:
    return rule.shape is Shape.EXACT or rule.shape is Shape.LITERAL


def _names_exactly(rule: Rule | None, *, with_port: bool) -> bool:
    return (
        rule is not None
        and rule.origin is Origin.WRITTEN
        and _is_exact(rule)
        and (rule.port is not None or not with_port)
    )


def _refused(decision: Decision, reason: Reason, fix: str, packed: bytes, address_class: AddressClass) -> Decision:
    if decision.verdict is Verdict.DENY and reason is not Reason.NEVER_ADDRESS and reason is not Reason.PROTECTED_PORT:
        # Already refused for a reason of its own; only its fix may turn out to be none.
        return decision.replace(address=address_text(packed), address_class=address_class, fix=fix and decision.fix)
    if decision.reason is Reason.DENY_RULE:
        return decision.replace(address=address_text(packed), address_class=address_class)
    return decision.replace(
        verdict=Verdict.DENY, reason=reason, address=address_text(packed), address_class=address_class, fix=fix
    )


def _denying(forms: tuple[bytes, ...], port: int, denied: Mapping[bytes, tuple[Rule, ...]]) -> Rule | None:
    for form in forms:
        for rule in denied.get(form, ()):
            if rule.port is None or rule.port == port:
                return rule
    return None


def _denied(decision: Decision, rule: Rule, packed: bytes, address_class: AddressClass) -> Decision:
    return decision.replace(
        verdict=Verdict.DENY,
        reason=Reason.DENY_RULE,
        rule=rule,
        name=rule.name,
        source=rule.source,
        address=address_text(packed),
        address_class=address_class,
        fix="",
    )
