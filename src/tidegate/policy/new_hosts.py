"""Which hosts a record has that a policy does not name: the check of `policy new-hosts` in CI (JRN-7).

Rules of the file:

* A policy names a host where a rule of it allows or asks, on that port and in that phase: what only passes by default
  is named by nobody. What a deny rule denies and was reached all the same is new, and said so.
* Reached is what bytes moved to; tried is that and what was refused, look-ups of names included. The task's own tools
  are no host.
* Bounded: `PLACES` new ones are kept, what else is new is counted, and named ones are only remembered to be quick.

Pure. Addresses are not judged: whether a name may lead to a private one is the gate's to say.
"""

from __future__ import annotations

from tidegate.model.destination import Destination
from tidegate.model.host import HostError, bracketed, canonical_host
from tidegate.model.verdict import How, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.never_names import NEVER_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tidegate.model.contact import Contact
    from tidegate.model.verdict import Phase
    from tidegate.policy.policy import Policy

PLACES = 10_000
_KINDS = 16  # of how, for one place
_ANY_PORT = -1  # no port at all: only rules for any port match it


class New:
    """One place that the policy does not name. `first` is '' where the record knows no times."""

    __slots__ = ("count", "first", "host", "hows", "phase", "port", "why")

    def __init__(self, contact: Contact, why: str) -> None:
        self.host = contact.host
        self.port = contact.port
        self.phase: Phase = contact.phase
        self.why = why
        self.count = 0
        self.first = contact.at
        self.hows: dict[str, int] = {}

    def add(self, contact: Contact) -> None:
        """Add a line about it."""
        self.count += contact.count
        how = f"refused ({contact.reason})" if contact.how is How.REFUSED else contact.how.value
        if how in self.hows or len(self.hows) < _KINDS:
            self.hows[how] = self.hows.get(how, 0) + contact.count
        if contact.at and (not self.first or contact.at < self.first):
            self.first = contact.at

    @property
    def text(self) -> str:
        """`host:port`, the host alone where there is no port."""
        where = bracketed(self.host)
        return f"{where}:{self.port}" if self.port else where

    def as_json(self) -> dict[str, Any]:
        """Return the keys of `policy new-hosts --json`."""
        return {
            "host": self.host, "port": self.port, "phase": self.phase.value, "count": self.count, "how": self.hows,
            "first": self.first or None, "why": self.why,
        }  # fmt: skip


class NewHosts:
    """Takes lines and keeps what is new. `connections` counts what was looked at, `more` what did not fit."""

    def __init__(self, policy: Policy, *, tried: bool = False) -> None:
        self._policy = policy
        self._tried = tried
        self._named: set[tuple[Phase, str, int]] = set()
        self._new: dict[tuple[Phase, str, int], New] = {}
        self.connections = self.more = 0

    @property
    def named(self) -> int:
        """How many places were met that the policy names; `PLACES` at most."""
        return len(self._named)

    def add(self, contact: Contact) -> None:
        """Look at one line."""
        if contact.of_tools or (not contact.passed and not (self._tried and contact.how is How.REFUSED)):
            return
        self.connections += contact.count
        key = (contact.phase, contact.host, contact.port)
        new = self._new.get(key)
        if new is None:
            if key in self._named:
                return
            why = self._why(contact)
            if not why:
                if len(self._named) < PLACES:
                    self._named.add(key)
                return
            if len(self._new) >= PLACES:
                self.more += contact.count
                return
            new = self._new[key] = New(contact, why)
        new.add(contact)

    def rows(self) -> list[New]:
        """Return what is new, in the order in which it was first seen."""
        return sorted(self._new.values(), key=lambda new: (new.first, new.phase.value, new.host, new.port))

    def _why(self, contact: Contact) -> str:
        """Say why a place is new, '' where the policy names it."""
        try:
            host = canonical_host(bracketed(contact.host))
        except HostError as error:
            return f"no host: {error.what}"
        if not contact.port:
            return self._why_looked_up(host.text, contact.phase)
        decision = decide(self._policy, Destination(host, contact.port), contact.phase)
        if decision.verdict is Verdict.DENY:
            return decision.reason.sentence
        return "" if decision.rule is not None else "no rule names it"

    def _why_looked_up(self, name: str, phase: Phase) -> str:
        # A look-up has no port: a rule for any names it.
        index = self._policy.index.phase(phase)
        if name in NEVER_NAMES or index.denies.find(name, _ANY_PORT) is not None:
            return "a rule denies it, or it is never allowed"
        named = index.passes.names(name, literal=False) or index.passes.find(name, _ANY_PORT) is not None
        return "" if named else "no rule names it"
