"""From what tasks did to the entries of a policy, as few and as narrow as they can be (JRN-7).

Rules of the file:

* An entry names exactly one host and one port. Wildcards and presets come only where a person asked for them, since
  both let through more than was seen.
* A policy that is there already is not said again: what it allows is left out, what it asks for or denies stays so, and
  is said.
* Private addresses and this machine's are admitted only where something that passed has led to one: `private` and `own`
  are `never` otherwise, for an exact entry would admit them (ADR-2) the day a name leads there.
* The same records give the same text.

Pure: what addresses mean to a decision (`judge`) and where a domain ends (`domain`) come in as functions.
"""

from __future__ import annotations

from tidegate.model.address_class import AddressClass, Admission
from tidegate.model.destination import Destination
from tidegate.model.reason import Reason
from tidegate.model.value import Value
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.learned import MANY_NAMES, Learned, Place, looks_random
from tidegate.policy.presets import PRESET_PORT
from tidegate.policy.presets.compiled import HOSTS
from tidegate.policy.written import Item, document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from tidegate.model.decision import Decision
    from tidegate.policy.policy import Policy

GROUP_FROM = 3  # names under one domain, before a wildcard stands for them
_SHORT, _COUNTRY = 3, 2  # letters: of `co`, `com`, `gov` and their like, before those of a country
_SHOWN = 200  # lines of comment about what was not learned
_PRESET_OF = {host: preset for preset, hosts in HOSTS.items() for host in hosts}
_PUBLIC = AddressClass.PUBLIC


class Wish(Value):
    """What a person asked for beside the least that there is."""

    include_refused: bool = False
    presets: bool = False
    group: bool = False


class Entry(Value):
    """One entry with the places it is for; `items` are more than one where methods differ by path."""

    phase: Phase
    items: tuple[Item, ...]
    places: tuple[Place, ...]
    review: str = ""


class Proposal(Value):
    """What a policy learned would be, and what it leaves out: (place, why)."""

    entries: tuple[Entry, ...]
    left: tuple[tuple[Place, str], ...]
    private: bool
    own: bool

    def network(self) -> dict[str, dict[str, list[Item]]]:
        """Return the entries as a document has them."""
        found: dict[str, dict[str, list[Item]]] = {}
        for entry in self.entries:
            found.setdefault(entry.phase.value, {}).setdefault("allow", []).extend(entry.items)
        return found


def propose(
    learned: Learned,
    wish: Wish,
    *,
    judge: Callable[[Policy, Decision, str], Decision],
    domain: Callable[[str], str],
    known: Policy | None = None,
) -> Proposal:
    """Return the entries that let through what was learned, beyond what `known` does.

    `judge` is the second stage of a decision for an address in text form; `domain` gives the domain below which a
    wildcard may stand for a name, '' where there is none.
    """
    crowds = _crowds(learned)
    chosen: list[Place] = []
    left: list[tuple[Place, str]] = []
    for place in learned.places():
        if not (place.learned or (wish.include_refused and place.offered)):
            left += [(place, why) for why in (_why_left(place),) if why]
            continue
        why = _NEW if known is None else _known(known, place, judge)
        if why == _NEW:
            chosen.append(place)
        elif why:
            left.append((place, why))
    entries: list[Entry] = []
    for phase in Phase:
        mine = [place for place in chosen if place.phase is phase]
        if wish.presets:
            made, mine = _by_preset(phase, mine)
            entries += made
        if wish.group:
            made, mine = _grouped(phase, mine, domain)
            entries += made
        entries += [_exact(place, crowds) for place in mine]
    classes = {_class(place) for place in chosen}
    return Proposal(
        tuple(entries), tuple(left), private=AddressClass.PRIVATE in classes, own=AddressClass.OWN in classes
    )


_NEW = "new"


def _known(known: Policy, place: Place, judge: Callable[[Policy, Decision, str], Decision]) -> str:
    """Return _NEW where the policy has no word about a place, '' where it allows it, else why it stays as it is."""
    decision = decide(known, Destination(place.host, place.port), place.phase)
    if decision.rule is None:
        return _NEW
    address = place.address or place.wanted
    if decision.verdict is Verdict.ALLOW and address:
        decision = judge(known, decision, address)
    if decision.allowed:
        return ""
    if decision.verdict is Verdict.ASK:
        return f"the policy asks for it ({decision.source}), and still does"
    if decision.reason is Reason.DENY_RULE:
        return f"the policy denies it ({decision.source}), and still does"
    if decision.reason is Reason.PRIVATE_ADDRESS and known.private is Admission.NEVER:
        return "it leads to a private address, and the policy says 'private: never'"
    if decision.reason is Reason.OWN_ADDRESS and known.own is Admission.NEVER:
        return "it leads to an address of this machine, and the policy says 'own: never'"
    return _NEW


def _why_left(place: Place) -> str:
    if place.passed and place.no:
        return f"it passed x{place.passed}, and {place.no} refused it: {'; '.join(place.why_refused())}"
    if place.passed and place.never:
        return f"it passed x{place.passed}, and no rule can name this host"
    if place.passed:
        return ""
    if place.by_harness:
        return f"{place.harness} let it through x{place.by_harness}, and brings it along by itself"
    refused = "; ".join(place.why_refused())
    if not place.port:
        return f"looked up, with no port: {refused}"
    return f"only tried: {refused}" if place.offered else f"only tried, and not to be had: {refused}"


def _class(place: Place) -> AddressClass:
    return place.address_class if place.passed else place.wanted_class


def _exact(place: Place, crowds: dict[str, int]) -> Entry:
    review = looks_random(place.host.text) if not place.host.is_literal else ""
    crowd = crowds.get(place.host.text.partition(".")[2], 0)
    if not review and crowd >= MANY_NAMES and not place.host.is_literal:
        review = f"one of {crowd} names under {place.host.text.partition('.')[2]}"
    said = _note(place, review)
    narrowed = place.narrowed
    items: tuple[Item, ...]
    if place.git:
        items = (Item(place.text, git="read", note=said),)
    elif narrowed:
        items = tuple(
            Item(place.text, methods, paths, note=said if not at else "")
            for at, (methods, paths) in enumerate(narrowed)
        )
    else:
        items = (Item(place.text, note=said),)
    return Entry(place.phase, items, (place,), review)


def _note(place: Place, review: str) -> str:
    parts = [_counted([place])]
    if not place.passed:
        parts = [f"was refused: {'; '.join(place.why_refused())}"]
    if place.host.is_literal:
        parts.append("an address, not a name")
    found = _class(place)
    if found is not _PUBLIC and not place.host.is_literal:
        parts.append(f"leads to {place.address if place.passed else place.wanted} ({found.value})")
    if place.by_person:
        parts.append("a person allowed it")
    if place.port == PRESET_PORT and place.host.text in _PRESET_OF and not place.narrowed:
        parts.append(f"a registry that nothing holds to reading here; --presets writes @{_PRESET_OF[place.host.text]}")
    if place.git:
        parts.append("held to fetch, as it was or may have been; 'git: write' lets it push")
    if place.passed and place.refused:
        parts.append(f"also refused: {'; '.join(place.why_refused())}")
    if review:
        parts.append(f"REVIEW: {review}")
    return "; ".join(parts)


def _counted(places: Sequence[Place]) -> str:
    last = max(place.last for place in places)
    return f"x{sum(place.passed for place in places)}" + (f", last {_minute(last)}" if last else "")


def _minute(at: str) -> str:
    return f"{at[:10]} {at[11:16]}Z"


def _by_preset(phase: Phase, places: list[Place]) -> tuple[list[Entry], list[Place]]:
    found: dict[str, list[Place]] = {}
    rest = []
    for place in places:
        preset = _PRESET_OF.get(place.host.text) if place.port == PRESET_PORT else None
        if preset is None or _class(place) is not _PUBLIC:
            rest.append(place)
        else:
            found.setdefault(preset, []).append(place)
    entries = []
    for preset, mine in sorted(found.items()):
        also = len(HOSTS[preset]) - len(mine)
        more = f"; {some(also, 'more host')} with it" if also else ""
        said = f"{_counted(mine)}: {', '.join(place.host.text for place in mine)}{more}; only what reads"
        entries.append(Entry(phase, (Item(f"@{preset}", note=said),), tuple(mine)))
    return entries, rest


def _grouped(phase: Phase, places: list[Place], domain: Callable[[str], str]) -> tuple[list[Entry], list[Place]]:
    found: dict[tuple[str, int], list[Place]] = {}
    for place in places:
        plain = place.learned and not place.host.is_literal and place.address_class is _PUBLIC
        if plain and not place.narrowed and not place.git and not looks_random(place.host.text):
            above = domain(place.host.text)
            if above and above != place.host.text:
                found.setdefault((above, place.port), []).append(place)
    entries = []
    gone: set[int] = set()
    for (above, port), alike in sorted(found.items()):
        suffix = _common([place.host.text for place in alike], above)
        depth = suffix.count(".") + 1
        mine = [place for place in alike if place.host.text != suffix]
        if len(mine) < GROUP_FROM:
            continue
        one = all(place.host.text.count(".") == depth for place in mine)
        names = ", ".join(place.host.text[: -len(suffix) - 1] for place in mine)
        said = f"{_counted(mine)}: {len(mine)} names ({names})"
        entries.append(Entry(phase, (Item(f"{'*' if one else '**'}.{suffix}:{port}", note=said),), tuple(mine)))
        gone |= {id(place) for place in mine}
    return entries, [place for place in places if id(place) not in gone]


def _common(hosts: list[str], above: str) -> str:
    """Return the longest name that all of them are below, or are; at least the domain."""
    labels = [host.split(".")[::-1] for host in hosts]
    least = above.count(".") + 1
    shared = 0
    for column in zip(*labels, strict=False):
        if len(set(column)) > 1:
            break
        shared += 1
    return ".".join(labels[0][: max(shared, least)][::-1])


def _crowds(learned: Learned) -> dict[str, int]:
    """Return how many names there are under each parent that somebody owns: not `com`, nor what looks like `co.uk`."""
    names = {place.host.text for place in learned.places() if not place.host.is_literal}
    found: dict[str, int] = {}
    for name in names:
        parent = name.partition(".")[2]
        first, dot, rest = parent.partition(".")
        if dot and (len(rest) != _COUNTRY or len(first) > _SHORT):
            found[parent] = found.get(parent, 0) + 1
    return found


def fresh(proposal: Proposal, learned: Learned, *, of: Sequence[str], head: Iterable[str] = ()) -> str:
    """Return a whole policy of its own."""
    network = proposal.network()
    settings: list[tuple[str, Any, str]] = [
        # A text that names no host is no word about hosts: without this the profile `balanced` would be in force.
        ("default", "deny", "") if network else ("profile", "closed", ""),
        ("private", *_admission("an address of a private network", admit=proposal.private)),
        ("own", *_admission("an address of this machine", admit=proposal.own)),
    ]
    tail = not_learned(proposal) + no_hosts(learned)
    first = min((place.first for place in learned.places() if place.first), default="")
    last = max((place.last for place in learned.places()), default="")
    when = f", {_minute(first)} to {_minute(last)}" if first else ""
    start = [
        f"Learned from {some(learned.contacts, 'connection')} of {some(len(of), 'record')}{when}:",
        f"  {', '.join(of[:8])}{' ...' if len(of) > 8 else ''}",
        "It lets through what was done, right or wrong: look at each entry before you use it.",
    ]
    if any(entry.phase is Phase.INSTALL for entry in proposal.entries):
        start.append("What is under 'install' is for a set-up command: 'setup: COMMAND', which no record has.")
    if not network:
        tail = ["Nothing passed, so nothing is allowed.", *tail]
    return document(network, settings=settings, head=[*start, *head], tail=tail)


def some(count: int, what: str) -> str:
    """Return how many of something there are, in words."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def _admission(what: str, *, admit: bool) -> tuple[str, str]:
    if admit:
        return (
            Admission.EXACT_HOST_PORT.value,
            f"something here leads to {what}; so may every entry with a host and a port",
        )
    return Admission.NEVER.value, f"nothing was seen to lead to {what}"


def no_hosts(learned: Learned, most: int = _SHOWN) -> list[str]:
    """Return what was asked for and is no host, a line each."""
    if not learned.odd:
        return []
    return ["No hosts:", *(f"  {text} x{count}" for text, count in sorted(learned.odd.items())[:most])]


def not_learned(proposal: Proposal, most: int = _SHOWN) -> list[str]:
    """Return what was left out, a line each."""
    if not proposal.left:
        return []
    lines = ["Not learned:"]
    for place, why in proposal.left[:most]:
        where = place.text if place.port else place.host.text
        lines.append(f"  {where} in {place.phase.value}: {why}")
    if len(proposal.left) > most:
        lines.append(f"  and {len(proposal.left) - most} more")
    return lines
