"""A decision is a value: all that is printed, logged, asked or returned comes from this one object (POL-6)."""

from __future__ import annotations

from tidegate.model.address_class import AddressClass
from tidegate.model.destination import Destination
from tidegate.model.grant import Grant
from tidegate.model.reason import Reason
from tidegate.model.rule import Rule
from tidegate.model.value import Value
from tidegate.model.verdict import Phase, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.model.rule import Requests

NO_RULE_NAME = "no-rule"


class Decision(Value):
    """What a policy says of one destination in one phase.

    `rule` is the rule that governs, or None where none does; `name` and `source` are the governing rule's, or
    `no-rule` and the place the default comes from. `address` and `address_class` are set once addresses were
    looked at; `address` is the text of the address that decided. `fix` is the exact command-line option or
    policy line that would allow it, or '' where nothing would. `grant` is set where a person's answer allows it.
    `note` is what a refusal adds for people, '' for nothing.
    `bounds` are requests that pass whatever rule governs (model.rule.RuleLimits): what the policy holds a host to.
    """

    verdict: Verdict
    destination: Destination
    phase: Phase
    reason: Reason
    rule: Rule | None
    name: str
    source: str
    address: str = ""
    address_class: AddressClass | None = None
    fix: str = ""
    grant: Grant | None = None
    bounds: Requests = ()
    note: str = ""

    @property
    def rule_text(self) -> str:
        """The text of the governing rule, '' where there is none."""
        return self.rule.text if self.rule is not None else ""

    @property
    def allowed(self) -> bool:
        """Whether bytes may move."""
        return self.verdict is Verdict.ALLOW

    def refuse(self, reason: Reason, *, fix: str | None = None, address: str = "") -> Decision:
        """Return this decision turned into a refusal for `reason`; what governed it stays on record."""
        return self.replace(
            verdict=Verdict.DENY,
            reason=reason,
            fix=self.fix if fix is None else fix,
            address=address or self.address,
        )

    def sentence(self) -> str:
        """One line for people: what was refused or allowed, by which rule, and what to do."""
        by = f"rule {self.rule.text!r} ({self.name}, {self.source})" if self.rule else f"{self.name}, {self.source}"
        line = f"{self.destination}: {self.reason.sentence} [{self.reason.word}; {by}]"
        if self.address and self.address != self.destination.host.text:
            line += f"; it leads to {self.address}"
        if self.note and not self.allowed:
            line += f"; {self.note}"
        return f"{line}; to allow it: {self.fix}" if self.fix else line
