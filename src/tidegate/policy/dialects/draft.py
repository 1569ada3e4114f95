"""Gathering what a file becomes, entry by entry, while a dialect reads it.

Rules of the file: every entry that is looked at is noted once, with what it became or why it did not; texts that are no
hosts are errors of the file, with their place, as in a policy of ours (POL-2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.errors import UsageError
from tidegate.policy.dialects.imported import ASIDE, BOTH, DROPPED, EXACTLY, NARROWER, Entry, Imported, Line
from tidegate.policy.nodes import Broken, Mapping, Node, Scalar, Sequence
from tidegate.policy.positions import on_screen
from tidegate.policy.rules import RuleError, read_rule
from tidegate.policy.suggest import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from collections.abc import Mapping as MappingType

    from tidegate.model.verdict import Phase, Verdict
    from tidegate.policy.dialects.imported import Egress, Wanted
    from tidegate.policy.reading import Reader

MAX_RULE = 600  # as in a policy of ours: a name has 253 bytes at most


class Draft:
    """Collects entries, rules and settings of one file. `read` notes what is wrong with it."""

    def __init__(self, read: Reader, wanted: Wanted, is_public_suffix: Callable[[str], bool]) -> None:
        self.read = read
        self.wanted = wanted
        self.is_public_suffix = is_public_suffix
        self.entries: list[Entry] = []
        self.lines: dict[tuple[str, str, str, tuple[str, ...]], Line] = {}
        self.settings: dict[str, str] = {}
        self.without_gate = ""
        self.because = ""
        self.refusal = ("", "")
        self.egress: list[Egress] = []
        self.notes: list[str] = []
        self.options: list[str] = []

    def part(self) -> Draft:
        """Return a draft of a part of the file, which may be taken or not; what is wrong with it is noted anyway."""
        return Draft(self.read, self.wanted, self.is_public_suffix)

    def take(self, part: Draft) -> None:
        """Add what a part became."""
        self.entries += part.entries
        self.lines |= part.lines
        self.settings |= part.settings
        self.without_gate, self.because = part.without_gate, part.because
        self.refusal = part.refusal
        self.notes += part.notes
        self.options += part.options

    def choose(self, one: str, several: str, names: MappingType[str, str]) -> str:
        """Return the name that was wanted, of several (name -> name as it is compared).

        Raises:
            UsageError: where it is none of them, or nothing says which.
        """
        filename = on_screen(self.read.problems.filename, 200)
        shown = ", ".join(on_screen(name) for name in list(names)[:8]) + (", …" if len(names) > 8 else "")
        select = self.wanted.select
        if select:
            found = [name for name, compared in names.items() if select in {name, compared}]
            if found:
                return found[0]
            raise UsageError(f"{filename} has no {one} {on_screen(select)!r}", fix=f"--select one of: {shown}")
        if len(names) == 1 or self.wanted.first:
            return next(iter(names))
        raise UsageError(
            f"{filename} has {len(names)} {several}, and nothing says which",
            fix=f"tidegate policy import {filename} --select NAME, one of: {shown}",
        )

    def imported(self, dialect: str, title: str) -> Imported:
        """Return what was gathered; only meaningful where nothing was wrong."""
        return Imported(
            dialect,
            title,
            self.read.problems.filename,
            tuple(self.entries),
            tuple(self.lines.values()),
            tuple(self.settings.items()),
            self.without_gate,
            self.because,
            self.refusal,
            tuple(self.egress),
            tuple(self.notes),
            tuple(self.options),
        )

    def note(self, node: Node, where: str, how: str, became: Iterable[str] = (), why: str = "") -> None:
        """Note what became of an entry."""
        shown = node.text if isinstance(node, Scalar) else ""
        place = (self.read.problems.filename, node.mark.line + 1, node.mark.column + 1)
        self.entries.append(Entry(*place, where, shown, how, tuple(became), why))

    def drop(self, node: Node, where: str, why: str) -> None:
        """Note that an entry was left out."""
        self.note(node, where, DROPPED, (), why)

    def aside(self, node: Node, where: str, why: str) -> None:
        """Note something that a policy does not hold, or that is not of the network."""
        self.note(node, where, ASIDE, (), why)

    def option(self, node: Node, where: str, name: str, value: str) -> None:
        """Note an entry that is an option of `tidegate run`."""
        option = f"{name} {on_screen(value, 200)}"
        self.options.append(option)
        self.aside(node, where, f"give it when a task starts: {option}")

    def set(self, node: Node, where: str, key: str, value: str, how: str = EXACTLY, why: str = "") -> None:
        """Note an entry that became a key of the policy."""
        self.settings[key] = value
        self.note(node, where, how, [f"{key}: {value}"], why)

    def rules(
        self,
        node: Node,
        where: str,
        verdict: Verdict,
        texts: Iterable[str],
        why: str = "",
        *,
        phases: Iterable[Phase] = BOTH,
        methods: tuple[str, ...] = (),
        presets: Iterable[str] = (),
    ) -> None:
        """Note an entry that became these rules, and these presets of ours; with a `why` it is narrower than it was.

        A text that is no rule is an error of the file.
        """
        made = []
        for text in texts:
            rule = self.canonical(node, text)
            if rule is None:
                return
            made.append(rule)
        made += [f"@{name}" for name in presets]
        for rule in made:
            for phase in phases:
                line = Line(phase, verdict, rule, methods, node.mark.line + 1, node.mark.column + 1)
                self.lines.setdefault((phase.value, verdict.value, rule, methods), line)
        only = f" (only {', '.join(methods)})" if methods else ""
        became = [f"{verdict.value} {rule}{only}" for rule in dict.fromkeys(made)]
        self.note(node, where, NARROWER if why else EXACTLY, became, why)

    def canonical(self, node: Node, text: str) -> str | None:
        """Return the canonical text of a rule; None where it is none, which is noted."""
        shown = node.text if isinstance(node, Scalar) else text
        if len(text) > MAX_RULE:
            self.read.wrong(node, "longer than any name can be", shown, "write a host such as api.example.com")
            return None
        try:
            return read_rule(text)[0]
        except RuleError as error:
            self.read.wrong(node, error.what, shown, f"write {error.advice}")
            return None

    def items(self, node: Node, of: str) -> Iterator[Scalar]:
        """Yield the texts of a list, and note an empty one; all else in it is an error."""
        found = self.read.items(node, of, "write '[]' for none")
        if not found and isinstance(node, Sequence):
            self.note(node, of.strip("'"), EXACTLY, ["nothing"])
        for item in found:
            if isinstance(item, Scalar) and item.is_text:
                yield item
            else:
                self.read.mismatch(item, f"an entry of {of}", "a text", "write a host such as api.example.com")

    def pairs(
        self,
        node: Node,
        of: str,
        known: Collection[str],
        asides: MappingType[str, str] | None = None,
        *,
        others: str = "",
    ) -> Iterator[tuple[str, Scalar, Node]]:
        """Yield key, the key's node and the value of known keys; those of `asides` are noted with their reason.

        `others` is the reason of every other key, and without it they are errors. One that looks like a known key is an
        error always: what it says would be lost.
        """
        if not isinstance(node, Mapping):
            self.read.mismatch(node, of, "a mapping")
            return
        asides = asides or {}
        wanted = dict.fromkeys(known)  # a table of domains may have thousands
        keys = dict.fromkeys((*known, *asides))
        if others:
            keys |= dict.fromkeys(key for key in keys_of(node) if key not in keys and not nearest(key, known))
        for key, key_node, value in self.read.pairs(node, of, keys, None):
            if key in wanted:
                yield key, key_node, value
            else:
                self.aside(key_node, of.strip("'"), asides.get(key, others))


def value_of(node: Node, *path: str) -> Node | None:
    """Return what stands below these keys, without judging anything; None where there is nothing."""
    for key in path:
        if not isinstance(node, Mapping):
            return None
        for key_node, value in node.pairs:
            if isinstance(key_node, Scalar) and key_node.text == key:
                node = value
                break
        else:
            return None
    return node


def keys_of(node: Node | None) -> tuple[str, ...]:
    """Return the keys of a mapping that are texts."""
    if not isinstance(node, Mapping):
        return ()
    return tuple(key.text for key, _ in node.pairs if isinstance(key, Scalar) and key.is_text)


def is_list(node: Node | None) -> bool:
    """Whether it is a list."""
    return isinstance(node, Sequence)


def is_nothing(node: Node) -> bool:
    """Whether nothing is written there, or it was broken and has been reported."""
    return isinstance(node, Broken) or (isinstance(node, Scalar) and node.meaning is None)
