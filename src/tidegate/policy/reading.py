"""Typed looks at the tree of a document: each returns the value, or notes what is wrong and returns None.

A wrong type is never converted: a number where a text belongs is an error and not its digits, an empty value is not an
empty list. What somebody else may have meant is not guessed (POL-2, B14).

It knows types and places, not what the keys of a policy mean; that is loader.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from collections.abc import Mapping as MappingType
from typing import Final

from tidegate.policy.nodes import Broken, Mapping, Mark, Node, Scalar, Sequence
from tidegate.policy.positions import Problems, on_screen
from tidegate.policy.suggest import nearest

_MERGE: Final = "<<"


class Reader:
    """Reads values out of nodes and collects problems. `source` turns a mark into `FILE:LINE:COL`."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.prefix = on_screen(problems.filename, 200) + ":"

    def source(self, mark: Mark) -> str:
        """Return the place of a mark as rules and decisions name it."""
        return f"{self.prefix}{mark.line + 1}:{mark.column + 1}"

    def wrong(self, node: Node, what: str, text: str = "", advice: str = "") -> None:
        """Note that something is wrong at a node."""
        self.problems.add(node.mark.line + 1, node.mark.column + 1, what, text, advice)

    def pairs(
        self,
        node: Node,
        of: str,
        known: Collection[str],
        hints: MappingType[str, str] | None = None,
        example: str = "",
    ) -> Iterator[tuple[str, Scalar, Node]]:
        """Yield key, the key's node and the value of each pair whose key is known and there for the first time.

        `of` names the mapping for people. `hints` are the advice for keys that are known to be misplaced.
        """
        if not isinstance(node, Mapping):
            self.mismatch(node, of, "a mapping", example)
            return
        seen: dict[str, Mark] = {}
        for key_node, value in node.pairs:
            if isinstance(key_node, Broken):
                continue
            if not isinstance(key_node, Scalar) or not key_node.is_text:
                shown = key_node.text if isinstance(key_node, Scalar) else ""
                self.wrong(key_node, f"{key_node.kind} as a key in {of}", shown, f"write one of {words(known)}")
                continue
            key = key_node.text
            if key in seen:
                first = seen[key]
                advice = f"keep one of them; the first is in line {first.line + 1}"
                self.wrong(key_node, "a key twice", key, advice)
                continue
            seen[key] = key_node.mark
            if key in known:
                yield key, key_node, value
            elif key == _MERGE and key_node.plain:
                self.wrong(key_node, "a merge key", key, "write the entries out")
            else:
                self._unknown(key_node, of, known, hints or {})

    def _unknown(self, key: Scalar, of: str, known: Collection[str], hints: MappingType[str, str]) -> None:
        advice = hints.get(key.text, "")
        if not advice:
            near = nearest(key.text, known)
            advice = f"write '{near}'" if near else f"write one of {words(known)}"
        self.wrong(key, f"{of} has no such key", key.text, advice)

    def items(self, node: Node, of: str, example: str) -> list[Node]:
        """Return the items of a list; an empty list where it is none."""
        if isinstance(node, Sequence):
            return node.items
        self.mismatch(node, of, "a list", example)
        return []

    def text(self, node: Node, of: str, advice: str = "write it in quotes if a text is meant") -> str | None:
        """Return a text."""
        if isinstance(node, Scalar) and node.is_text:
            return node.text
        self.mismatch(node, of, "a text", advice)
        return None

    def word(
        self, node: Node, of: str, allowed: Collection[str], hints: MappingType[str, str] | None = None
    ) -> str | None:
        """Return one word of a closed list."""
        text = self.text(node, of, f"write one of {words(allowed)}")
        if text is None or text in allowed:
            return text
        near = nearest(text, allowed)
        advice = (hints or {}).get(text) or (f"write '{near}'" if near else f"write one of {words(allowed)}")
        self.wrong(node, f"{of} knows no such value", text, advice)
        return None

    def flag(self, node: Node, of: str) -> bool | None:
        """Return a truth value."""
        meaning = node.meaning if isinstance(node, Scalar) else None
        if isinstance(meaning, bool):
            return meaning
        self.mismatch(node, of, "a truth value", "write true or false")
        return None

    def number(self, node: Node, of: str, least: float, most: float, *, whole: bool = True) -> float | None:
        """Return a number within its bounds; an int where `whole`."""
        meaning = node.meaning if isinstance(node, Scalar) else None
        bounds = f"write a number from {plain_number(least)} to {plain_number(most)}"
        if isinstance(meaning, bool) or not isinstance(meaning, int | float):
            self.mismatch(node, of, "a number", bounds)
            return None
        shown = node.text if isinstance(node, Scalar) else ""
        digits = shown.lstrip("+-")
        if digits[:1] == "0" and digits[1:2].isdigit():
            self.wrong(node, f"a leading zero ({of}), which YAML 1.1 reads as octal", shown, "write it without")
            return None
        if whole and not isinstance(meaning, int) and meaning != float("inf"):
            self.wrong(node, f"{of} is a whole number", shown, bounds)
            return None
        if not least <= meaning <= most:  # not-a-number fails here too
            self.wrong(node, f"{of} is outside its bounds", shown, bounds)
            return None
        return meaning if whole else float(meaning)

    def mismatch(self, node: Node, of: str, wanted: str, advice: str = "") -> None:
        """Note that a node is of another type than its place wants."""
        if isinstance(node, Broken):
            return
        shown = node.text if isinstance(node, Scalar) else ""
        self.wrong(node, f"{node.kind} where {wanted} belongs ({of})", shown, advice)


def plain_number(number: float) -> str:
    """Return a number as people write it: no fraction where there is none, no exponent."""
    return str(int(number)) if number == int(number) else str(number)


def words(known: Collection[str]) -> str:
    """Return a closed list as people read it."""
    return ", ".join(known)
