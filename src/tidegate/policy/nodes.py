"""The tree that a person's text becomes: nodes that know where they stand (POL-0, POL-2).

YAML's and TOML's readers make it (document.py, dialects/toml_tree.py). The meaning of a plain scalar is YAML 1.2's core
schema (section 10.3.2), decided here and only when asked: `no`, `on`, `yes` and `1:30` are texts, `010` is ten, `0o10`
is eight.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

_PLAIN_NUMBER_START: Final = frozenset("0123456789+-.")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_WORDS: Final[dict[str, bool | None]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


class Mark(Protocol):
    """Where a node begins, counted from 0 (PyYAML's marks have this form)."""

    @property
    def line(self) -> int:
        """The line."""

    @property
    def column(self) -> int:
        """The character in it."""


class Scalar:
    """A leaf. `plain` is true where it stands without quotes and so may mean something else than a text."""

    __slots__ = ("mark", "plain", "text")

    def __init__(self, text: str, plain: bool, mark: Mark) -> None:
        self.text = text
        self.plain = plain
        self.mark = mark

    @property
    def is_text(self) -> bool:
        """Whether YAML 1.2 reads this scalar as a text."""
        text = self.text
        if not self.plain or (text and text[0] not in _PLAIN_NUMBER_START and text not in _WORDS):
            return True
        return text not in _WORDS and not _INT.fullmatch(text) and not _FLOAT.fullmatch(text)

    @property
    def meaning(self) -> str | int | float | bool | None:
        """What YAML 1.2 reads this scalar as. A number of absurd length stays a float or is the largest one."""
        text = self.text
        if self.is_text:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if len(text) > 30:
            return float("inf")
        if _INT.fullmatch(text):
            return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))

    @property
    def kind(self) -> str:
        """What this is, in words for an error."""
        meaning = self.meaning
        if meaning is None:
            return "nothing"
        if isinstance(meaning, bool):
            return "a truth value"
        return "a text" if isinstance(meaning, str) else "a number"


class Sequence:
    """A list of nodes."""

    __slots__ = ("items", "mark")
    kind = "a list"

    def __init__(self, mark: Mark) -> None:
        self.items: list[Node] = []
        self.mark = mark


class Mapping:
    """Pairs of key and value in the order of the text; a key may be any node, and may be there twice."""

    __slots__ = ("mark", "pairs", "pending")
    kind = "a mapping"

    def __init__(self, mark: Mark) -> None:
        self.pairs: list[tuple[Node, Node]] = []
        self.pending: Node | None = None
        self.mark = mark


class Broken:
    """A place whose problem has been reported already; whoever meets it says nothing more."""

    __slots__ = ("mark",)
    kind = "nothing"

    def __init__(self, mark: Mark) -> None:
        self.mark = mark


Node = Scalar | Sequence | Mapping | Broken
