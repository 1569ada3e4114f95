"""What tasks did, added up for each place they went to: what a policy can be learned from (JRN-7).

Rules of the file:

* A place is a phase, a canonical host and a port. It is learned when bytes moved there, and not otherwise: what was
  only tried is what a task wanted, and a task may want whatever a web page told it to.
* A place that a deny rule or a person refused even once is not learned, however often it passed. What a harness brought
  is not either: it is that agent's alone, and joins by itself. A task's tools are no place: `--tool` gives them.
* A refusal of one request (a publish, a push, a call of a model service) is no refusal of the place, and is not undone:
  a host that was read inside TLS keeps the methods that were used, and one that was held to fetch stays so.
* What no policy may allow is never offered: metadata, link-local, protected ports, what went around the gate, and what
  is no host at all.
* Bounded: `PLACES` are kept, what else comes is counted. What is not kept is not learned.

Pure. The classes of addresses are another room's, so a function that knows them comes in.
"""

from __future__ import annotations

from itertools import pairwise

from tidegate.model.address_class import AddressClass
from tidegate.model.host import HostError, bracketed, canonical_host
from tidegate.model.reason import Reason
from tidegate.model.verdict import How
from tidegate.policy.git import FORGES
from tidegate.policy.never_names import NEVER_NAMES
from tidegate.policy.presets import PRESET_PORT
from tidegate.policy.presets.compiled import READS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from tidegate.model.contact import Contact
    from tidegate.model.host import Host
    from tidegate.model.verdict import Phase

    Key: TypeAlias = tuple[Phase, str, int]

PLACES = 20_000  # about 30 MiB; a policy of as many entries is over what a person reads
_ODD = 200  # texts that are no host, kept to be shown
_METHODS = 32  # of one place
LONG_LABEL = 40  # longer than names that people choose; data in disguise is (B29)
_RANDOM_FROM = 16  # letters and digits in turns, from this length
_TURNS = 5
_HEX = frozenset("0123456789abcdef")
_LONG_NAME = 100  # several labels can carry what one does not
MANY_NAMES = 12  # under one parent: more than a person lists by hand

NEVER = frozenset(
    reason.word
    for reason in (
        Reason.NEVER_ALLOWED, Reason.NEVER_ADDRESS, Reason.PROTECTED_PORT, Reason.NOT_ISSUED, Reason.NOT_TCP,
        Reason.AROUND_GATE, Reason.DNS_AROUND, Reason.UNKNOWN_PEER, Reason.FOREIGN_PEER,
    )
)  # fmt: skip
"""Refusals that no policy lifts."""
NO = {Reason.DENY_RULE.word: "a deny rule", Reason.DENIED_BY_PERSON.word: "a person"}
"""Refusals that somebody meant."""
BY_POLICY = frozenset(
    reason.word
    for reason in (
        Reason.NO_RULE, Reason.PORT_NOT_ALLOWED, Reason.PHASE_CLOSED, Reason.NO_APPROVER, Reason.NOBODY_THERE,
        Reason.NOT_ANSWERED, Reason.TOO_MANY_QUESTIONS, Reason.NOT_SAVED, Reason.GRANT_ENDED, Reason.PHASE_CHANGED,
        Reason.LITERAL_NOT_NAMED, Reason.PRIVATE_ADDRESS, Reason.OWN_ADDRESS,
    )
)  # fmt: skip
"""Refusals that an entry would lift."""
UNREACHED = frozenset(
    reason.word
    for reason in (
        Reason.NO_ADDRESS, Reason.UPSTREAM_NXDOMAIN, Reason.UPSTREAM_DNS_FAILED, Reason.UPSTREAM_DNS_TIMEOUT,
        Reason.UPSTREAM_REFUSED, Reason.UPSTREAM_UNREACHABLE, Reason.UPSTREAM_TIMEOUT, Reason.UPSTREAM_TLS,
        Reason.UPSTREAM_CERTIFICATE, Reason.CLIENT_CERTIFICATE, Reason.UPSTREAM_PROXY, Reason.UPSTREAM_RESPONSE,
        Reason.UPSTREAM_CLOSED,
    )
)  # fmt: skip
"""Let through, and nobody was there."""
_PERSON = Reason.ALLOWED_BY_PERSON.word
_GIT = Reason.GIT_READ_ONLY.word
_SENTENCES = {reason.word: reason.sentence for reason in Reason}
_HARNESS = "harness:"
_PRESET = "preset "
_ANOTHER = "another-reason"
_STRICTNESS = {AddressClass.PUBLIC: 0, AddressClass.PRIVATE: 1, AddressClass.OWN: 2, AddressClass.NEVER: 3}


class Place:
    """What is known of one place. `first` and `last` are times as the record has them, '' where it knows none.

    `address` and its class are the strictest that it led to when it passed, `wanted` when it was refused.
    """

    __slots__ = (
        "address", "address_class", "by_harness", "by_person", "by_preset", "first", "harness", "host", "hows", "last",
        "methods", "passed", "phase", "port", "refused", "wanted", "wanted_class",
    )  # fmt: skip

    def __init__(self, phase: Phase, host: Host, port: int) -> None:
        self.phase = phase
        self.host = host
        self.port = port
        self.passed = self.by_harness = 0
        self.by_person = self.by_preset = False
        self.harness = ""
        self.first = self.last = ""
        self.hows: set[How] = set()
        self.methods: set[str] = set()
        self.refused: dict[str, int] = {}
        self.address = host.text if host.is_literal else ""
        self.address_class = AddressClass.PUBLIC
        self.wanted, self.wanted_class = self.address, AddressClass.PUBLIC

    @property
    def text(self) -> str:
        """The rule that names exactly this."""
        return f"{bracketed(self.host.text)}:{self.port}"

    @property
    def no(self) -> str:
        """Who refused it and meant it, '' where nobody did."""
        return next((who for word, who in NO.items() if word in self.refused), "")

    @property
    def never(self) -> bool:
        """Whether no policy may allow it."""
        named = self.host.text in NEVER_NAMES or (self.host.is_literal and self.address_class is AddressClass.NEVER)
        return (
            named
            or not self.port
            or not self.host.fits_a_rule
            or (not self.passed and not NEVER.isdisjoint(self.refused))
        )

    @property
    def learned(self) -> bool:
        """Whether what happened here is what a policy may be made of."""
        return self.passed > 0 and not self.no and not self.never

    @property
    def offered(self) -> bool:
        """Whether a person may have it let through although it was refused, or never reached."""
        if self.learned or self.never:
            return False
        return bool(self.no) or not (BY_POLICY | UNREACHED).isdisjoint(self.refused)

    @property
    def read(self) -> bool:
        """Whether all that passed here was read, so that the methods are all there were."""
        return self.hows == {How.INSPECTED} and bool(self.methods)

    @property
    def git(self) -> bool:
        """Whether it was held to fetch, or may have been: what read a forge's POSTs could have told a push."""
        if not self.read:
            return False
        return _GIT in self.refused or (self.host.text in FORGES and "POST" in self.methods)

    @property
    def narrowed(self) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
        """The (methods, paths) that it is held to; () for none. Of a registry's POST only those that read."""
        if not self.read or self.git:
            return ()
        if self.by_preset and self.host.text in READS and self.port == PRESET_PORT:
            table = READS[self.host.text][2][0]
            return tuple((methods, paths) for _kind, methods, paths in table if not self.methods.isdisjoint(methods))
        return ((tuple(sorted(self.methods)), ()),)

    def why_refused(self) -> list[str]:
        """Return for each reason how often, and in words; the commonest first."""
        return [
            f"x{count} {_SENTENCES.get(word, 'refused for a reason that this version does not know')}"
            for word, count in sorted(self.refused.items(), key=lambda one: (-one[1], one[0]))
        ]


class Learned:
    """The places of all records together. `more` counts connections to places that were not kept, `tools` to tools.

    `classify` gives the class of an address by its text, and PUBLIC for what it does not know.
    """

    def __init__(self, classify: Callable[[str], AddressClass], *, places: int = PLACES) -> None:
        self._classify = classify
        self._most = places
        self._places: dict[Key, Place | None] = {}
        self._hosts: dict[str, Host | None] = {}
        self.odd: dict[str, int] = {}
        self.contacts = self.more = self.inward = self.tools = 0

    def add(self, contact: Contact) -> Place | None:
        """Add one line; return its place, None where it is of none that is kept."""
        self.contacts += contact.count
        if contact.how is How.PUBLISHED:
            self.inward += contact.count
            return None
        if contact.of_tools:
            self.tools += contact.count
            return None
        place = self._places.get((contact.phase, contact.host, contact.port))
        if place is None:
            place = self._new(contact)
            if place is None:
                return None
        self._count(place, contact)
        return place

    def places(self) -> list[Place]:
        """Return all, in an order that does not hang on that of the lines."""
        kept = [place for place in self._places.values() if place is not None]
        return sorted(
            kept, key=lambda place: (place.phase.value, place.host.is_literal, _backwards(place.host.text), place.port)
        )

    def _new(self, contact: Contact) -> Place | None:
        if len(self._places) >= self._most:
            self.more += contact.count
            return None
        host = self._host(contact.host)
        if host is None:
            shown = contact.host[: _RANDOM_FROM * 8]
            if shown in self.odd or len(self.odd) < _ODD:
                self.odd[shown] = self.odd.get(shown, 0) + contact.count
            else:
                self.more += contact.count
            return None
        place = self._places[contact.phase, contact.host, contact.port] = Place(contact.phase, host, contact.port)
        if host.is_literal:
            place.address_class = place.wanted_class = self._classify(host.text)
        return place

    @staticmethod
    def _host(text: str) -> Host | None:
        try:
            host = canonical_host(bracketed(text))
        except HostError:
            return None
        # A gate writes canonical hosts only; two spellings of one would be two places.
        return host if host.text == text else None

    def _count(self, place: Place, contact: Contact) -> None:
        count = contact.count
        if contact.at:
            if not place.first or contact.at < place.first:
                place.first = contact.at
            place.last = max(place.last, contact.at)
        if not contact.passed:
            # Words of the file's own make no new keys: their number is bounded by those that there are.
            word = contact.reason if contact.reason in _SENTENCES else _ANOTHER
            place.refused[word] = place.refused.get(word, 0) + count
            if contact.address:
                found = self._classify(contact.address)
                if not place.wanted or _STRICTNESS[found] > _STRICTNESS[place.wanted_class]:
                    place.wanted, place.wanted_class = contact.address, found
            return
        if contact.name.startswith(_HARNESS):
            place.by_harness += count
            place.harness = contact.name
            return
        place.passed += count
        place.hows.add(contact.how)
        if contact.how is How.INSPECTED and len(place.methods) < _METHODS and _is_method(contact.method):
            place.methods.add(contact.method)
        elif contact.how is How.INSPECTED:
            place.hows.add(How.TUNNELED)  # what it did is not known, so it is not held to anything
        if contact.reason in NO:  # it was open, and somebody cut it
            place.refused[contact.reason] = place.refused.get(contact.reason, 0) + count
        if contact.reason == _PERSON:
            place.by_person = True
        if contact.source.startswith(_PRESET):
            place.by_preset = True
        if contact.address and contact.address != place.address:
            found = self._classify(contact.address)
            if not place.address or _STRICTNESS[found] > _STRICTNESS[place.address_class]:
                place.address, place.address_class = contact.address, found


def looks_random(host: str) -> str:
    """Say what of a name looks like data in disguise, '' where nothing does. A sign for a person and no proof."""
    if len(host) >= _LONG_NAME:
        return f"a name of {len(host)} characters, which may be data in disguise"
    for label in host.split("."):
        if len(label) >= LONG_LABEL:
            return f"a label of {len(label)} characters, which may be data in disguise"
        if len(label) >= _RANDOM_FROM and "-" not in label:
            kinds = [char.isdigit() for char in label]
            turns = sum(one != other for one, other in pairwise(kinds))
            if turns >= _TURNS or (turns and _HEX.issuperset(label)):
                return "a label of random letters and digits, which may be data in disguise"
    return ""


def _is_method(text: str) -> bool:
    return (
        text.isascii()
        and text.replace("-", "").isalpha()
        and text.isupper()
        and text not in {"CONNECT", "TRACE", "TCP"}
    )


def _backwards(host: str) -> list[str]:
    return host.split(".")[::-1]
