"""Finding the rule that governs by hash look-ups only, whatever the number of rules (POL-4, POL-5).

The index of a policy is its rows and, for each phase, two matchers: what denies, and what allows or asks. A matcher has
one table for each shape, from the rule's key to the position of its row; where several ports share a key the entry is
a dict from port to position. A look-up costs one probe for the exact name, one for its parent, one for each
suffix (a name has at most 127 labels) and one for `*`.

Rules of the file:

* Only winners are in the tables: among rules with the same shape, key and port ask wins, then what a person wrote over
  what a preset brought, then the layer nearest the command line, then the later one.
* Rules that are equal in all of that and have limits count together: what one of them lets pass, passes (together.py).
* Tables are built when a phase is first asked about; a process that only hands a policy on builds none.
* A Rule object is made when it is first returned.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_pton

from tidegate.model.rule import Rule, Shape
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.rows import KEY, LAYER, LIMITS, ORIGIN, PHASE, PORT, SHAPE, VERDICT, rule_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from tidegate.policy.rows import Row

    Entry: TypeAlias = int | dict[int | None, int]
    Table: TypeAlias = dict[str, Entry]
    DeniedLiterals: TypeAlias = dict[bytes, tuple[Rule, ...]]

_DENY = Verdict.DENY.value
_ASK = Verdict.ASK.value
_NO_PORT = -1  # found only by rules for any port
_MAPPED = bytes(10) + b"\xff\xff"  # RFC 4291 section 2.5.5.2


class Matcher:
    """The winners among some rows of one phase; `find` returns the most specific one that matches."""

    __slots__ = ("_beside", "_made", "_rows", "_together", "deep", "everything", "exact", "one")

    def __init__(self, rows: tuple[Row, ...], made: dict[int, Rule]) -> None:
        self._rows = rows
        self._made = made
        self._beside: dict[int, tuple[int, ...]] = {}  # of a winner: those that count with it
        self._together: dict[int, Rule] = {}
        self.exact: Table = {}
        self.one: Table = {}
        self.deep: Table = {}
        self.everything: Table = {}

    def __bool__(self) -> bool:
        return bool(self.exact or self.everything or self.one or self.deep)

    def add(self, position: int, row: Row) -> None:
        """Take one row in, or leave it out where an equal one wins."""
        shape = row[SHAPE]
        if shape == "one-label":
            table = self.one
        elif shape == "deep":
            table = self.deep
        elif shape == "any":
            table = self.everything
        else:
            table = self.exact  # names and literals: no canonical name is also an address
        key = row[KEY]
        entry = table.setdefault(key, position)
        if entry == position:
            return
        port = row[PORT]
        if isinstance(entry, int):
            entry = table[key] = {self._rows[entry][PORT]: entry}
        other = entry.setdefault(port, position)
        if other != position and _rank(row) >= _rank(self._rows[other]):
            entry[port] = position
            beside = self._beside.pop(other, ())
            if _rank(row) == _rank(self._rows[other]) and (row[LIMITS] or self._rows[other][LIMITS]):
                self._beside[position] = (*beside, other)

    def find(self, name: str, port: int) -> Rule | None:
        """Return the most specific rule that matches a canonical name and port."""
        found = self._pick(self.exact.get(name), port)
        if found is not None:
            return found
        dot = name.find(".") + 1
        if dot and self.one:
            found = self._pick(self.one.get(name[dot:]), port)
            if found is not None:
                return found
        if self.deep:
            while dot:
                found = self._pick(self.deep.get(name[dot:]), port)
                if found is not None:
                    return found
                dot = name.find(".", dot) + 1
        return self._pick(self.everything.get(""), port)

    def find_literal(self, text: str, port: int) -> Rule | None:
        """Return the rule that matches an address: one that names it exactly, else `*` (ADR-6)."""
        found = self._pick(self.exact.get(text), port)
        return found if found is not None else self._pick(self.everything.get(""), port)

    def names(self, name: str, *, literal: bool) -> bool:
        """Whether some rule but `*` matches this host on some port."""
        if name in self.exact:
            return True
        dot = 0 if literal else name.find(".") + 1
        if dot and name[dot:] in self.one:
            return True
        while dot:
            if name[dot:] in self.deep:
                return True
            dot = name.find(".", dot) + 1
        return False

    def covering(self, rule: Rule) -> Rule | None:
        """Return a rule here that matches everything `rule` matches."""
        port = _NO_PORT if rule.port is None else rule.port
        if rule.shape is Shape.LITERAL:
            return self.find_literal(rule.key, port)
        if rule.shape is Shape.EXACT:
            return self.find(rule.key, port)
        found = None
        if rule.shape is Shape.ONE_LABEL:
            found = self._pick(self.one.get(rule.key), port)
        suffix = rule.key
        while suffix and found is None:
            found = self._pick(self.deep.get(suffix), port)
            suffix = suffix.partition(".")[2]
        return found or self._pick(self.everything.get(""), port)

    def ports(self, name: str, *, literal: bool) -> set[int]:
        """Return the ports that rules matching this host name."""
        entries = [self.exact.get(name), self.everything.get("")]
        dot = 0 if literal else name.find(".") + 1
        if dot:
            entries.append(self.one.get(name[dot:]))
        while dot:
            entries.append(self.deep.get(name[dot:]))
            dot = name.find(".", dot) + 1
        found: set[int | None] = set()
        for entry in entries:
            if isinstance(entry, int):
                found.add(self._rows[entry][PORT])
            elif entry is not None:
                found.update(entry)
        return {port for port in found if port is not None}

    def _pick(self, entry: Entry | None, port: int) -> Rule | None:
        if entry is None:
            return None
        if isinstance(entry, int):
            wanted = self._rows[entry][PORT]
            if wanted is not None and wanted != port:
                return None
            position = entry
        else:
            found = entry.get(port)
            if found is None:
                found = entry.get(None)
                if found is None:
                    return None
            position = found
        if position in self._beside:
            return self._whole(position)
        made = self._made.get(position)
        if made is None:
            made = self._made[position] = rule_of(self._rows[position])
        return made

    def _whole(self, position: int) -> Rule:
        whole = self._together.get(position)
        if whole is None:
            from tidegate.policy.together import together

            rows = [self._rows[one] for one in (*self._beside[position], position)]
            whole = self._together[position] = rule_of(together(rows))
        return whole


class PhaseIndex:
    """What one phase allows or asks (`passes`) and what it denies."""

    __slots__ = ("denied_literals", "denies", "passes")

    def __init__(self, rows: tuple[Row, ...], made: dict[int, Rule], phase: Phase) -> None:
        self.denies = Matcher(rows, made)
        self.passes = Matcher(rows, made)
        wanted = phase.value
        literals: list[tuple[bytes, int]] = []
        for position, row in enumerate(rows):
            if row[PHASE] != wanted:
                continue
            if row[VERDICT] == _DENY:
                self.denies.add(position, row)
                if row[SHAPE] == "literal":
                    literals.append((packed_literal(row[KEY]), position))
            else:
                self.passes.add(position, row)
        self.denied_literals: DeniedLiterals = {}
        for packed, position in literals:
            rule = made.setdefault(position, rule_of(rows[position]))
            self.denied_literals[packed] = (*self.denied_literals.get(packed, ()), rule)


class RuleIndex:
    """All rules of a policy, with the tables that find them. Two are equal when their rows are."""

    __slots__ = ("_install", "_made", "_runtime", "rows")

    def __init__(self, rows: tuple[Row, ...]) -> None:
        self.rows = rows
        self._made: dict[int, Rule] = {}
        self._install: PhaseIndex | None = None
        self._runtime: PhaseIndex | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuleIndex) and self.rows == other.rows

    def __hash__(self) -> int:
        return hash(self.rows)

    def __repr__(self) -> str:
        return f"<{len(self.rows)} rules>"

    def phase(self, phase: Phase) -> PhaseIndex:
        """Return the tables of one phase."""
        if phase is Phase.RUNTIME:
            if self._runtime is None:
                self._runtime = PhaseIndex(self.rows, self._made, phase)
            return self._runtime
        if self._install is None:
            self._install = PhaseIndex(self.rows, self._made, phase)
        return self._install

    def rules(self, phase: Phase | None = None) -> Iterator[Rule]:
        """Yield the rules of one phase, or all, in the order in which they were joined."""
        for position, row in enumerate(self.rows):
            if phase is None or row[PHASE] == phase.value:
                made = self._made.get(position)
                if made is None:
                    made = self._made[position] = rule_of(row)
                yield made

    def limited(self) -> Iterator[Rule]:
        """Yield the rules that have limits, of all phases: they are few, and no other becomes an object."""
        for position, row in enumerate(self.rows):
            if row[LIMITS] is not None:
                made = self._made.get(position)
                if made is None:
                    made = self._made[position] = rule_of(row)
                yield made


def packed_literal(text: str) -> bytes:
    """Return the bytes of a literal's canonical text; an IPv4-mapped address is its IPv4 address."""
    packed = inet_pton(AF_INET6 if ":" in text else AF_INET, text)
    return packed[12:] if packed[:12] == _MAPPED else packed


def _rank(row: Row) -> tuple[bool, int, int]:
    return (row[VERDICT] == _ASK, row[ORIGIN], row[LAYER])
