"""What a file of another product became: its entries one by one, and all that a policy of ours is written from.

Values only. `Draft` (draft.py) gathers them, emit.py writes them down.
"""

from __future__ import annotations

from typing import Final

from tidegate.model.value import Value
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.positions import on_screen

EXACTLY, NARROWER, DROPPED, ASIDE = "exactly", "narrower", "dropped", "aside"
"""How an entry was kept: as it was, with less let through, not at all; or as something a policy does not hold."""

BOTH: Final = (Phase.INSTALL, Phase.RUNTIME)

_SHOWN: Final = 100
_MOST: Final = 8  # rules that one entry shows


class Wanted(Value):
    """What the caller wants of a file that holds several policies, and where it stands.

    `select` names one of them (a repository's path, a service, a profile, a folder); `folder` is the folder of the
    task, which chooses where nothing is named. `first` takes the first of them, where only the whole file counts.
    """

    select: str = ""
    folder: str = ""
    first: bool = False


class Entry(Value):
    """One entry of the source: where it stood, its text, what it became and why not more."""

    filename: str
    line: int
    column: int
    where: str
    text: str
    how: str
    became: tuple[str, ...] = ()
    why: str = ""

    def __str__(self) -> str:
        shown = f" '{on_screen(self.text)}'" if self.text else ""
        head = f"{on_screen(self.filename, 200)}:{self.line}:{self.column}: {on_screen(self.where, _SHOWN)}{shown}"
        more = len(self.became) - _MOST
        became = ", ".join(on_screen(one, _SHOWN) for one in self.became[:_MOST]) + (
            f" and {more} more" if more > 0 else ""
        )
        if self.how == DROPPED:
            return f"{head} -> dropped: {on_screen(self.why, 400)}"
        if self.how == ASIDE:
            return f"{head} -> not part of a policy: {on_screen(self.why or became, 400)}"
        kept = "kept exactly" if self.how == EXACTLY else "narrower"
        return f"{head} -> {became} ({kept}{': ' + on_screen(self.why, 400) if self.why else ''})"


class Line(Value):
    """One rule of the policy, and the place in the source that it is from. `text` may be `@preset`."""

    phase: Phase
    verdict: Verdict
    text: str
    methods: tuple[str, ...]
    line: int
    column: int


class Egress(Value):
    """What one repository of a file says of its network, for doctor: `state` is ok, warn or fail."""

    name: str
    state: str
    what: str
    fix: str = ""


class Imported(Value):
    """A whole file. `settings` are keys of the policy and their values as YAML, in order.

    `without_gate` is the hold that the file asks for in place of any policy (`open`, `offline`), and `because` the
    clause that says where. `refusal` is (what, fix) where the product itself would launch nothing. `egress` is for
    doctor. `notes` say where the product means more than any entry shows. `options` are those of `tidegate run` that
    it asks for.
    """

    dialect: str
    title: str
    filename: str
    entries: tuple[Entry, ...]
    lines: tuple[Line, ...]
    settings: tuple[tuple[str, str], ...]
    without_gate: str = ""
    because: str = ""
    refusal: tuple[str, str] = ("", "")
    egress: tuple[Egress, ...] = ()
    notes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def leaves_to_settings(self) -> bool:
        """Whether it is a task that names no hosts, which has what the settings of a box say (GurtOS, POL-13)."""
        named = {entry.where for entry in self.entries if entry.text}
        return self.dialect == "gurtos" and named.isdisjoint(("hosts", "networkDefault", "defaultHosts"))

    def count(self, how: str) -> int:
        """Return how many entries were kept so."""
        return sum(entry.how == how for entry in self.entries)

    @property
    def summary(self) -> str:
        """What became of it, in one clause."""
        exactly = self.count(EXACTLY)
        kept = f"{exactly} {'entry' if exactly == 1 else 'entries'} kept exactly, {self.count(NARROWER)} narrower"
        return f"{on_screen(self.filename, 200)} is {self.title}'s: {kept}, {self.count(DROPPED)} dropped"
