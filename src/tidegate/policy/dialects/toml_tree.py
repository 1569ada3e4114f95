"""TOML text -> the tree that dialects read (document.py), so that its entries have their places too.

The standard library's parser says what the text means, and refuses what is no TOML; it knows no places. A second look
at the same text finds where keys and values begin. It decides nothing: where it finds no place, an entry has that of
what it stands in.

Source: https://toml.io/en/v1.0.0.
"""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from typing import Any, Final, TypeAlias

from tidegate.model.value import Value
from tidegate.policy.document import MAX_BYTES, MAX_DEPTH, decode_text
from tidegate.policy.nodes import Mapping, Mark, Node, Scalar, Sequence
from tidegate.policy.positions import Problems, place_of

Path: TypeAlias = tuple[str | int, ...]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_SPACE: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK: Final = re.compile(r"[ \t]*")
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})|\'\'\'.*?\'\'\'(?:\'{0,2})|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL
)
_OTHER: Final = re.compile(r"[^,\]}\n#]*")
_PLACE: Final = re.compile(r"\(at line (\d+), column (\d+)\)")


class Place(Value):
    """Where a node begins, counted from 0."""

    line: int
    column: int


def parse_toml(data: bytes, problems: Problems) -> Node | None:
    """Return the tree of a TOML text; None where it is none, which is noted."""
    if len(data) > MAX_BYTES:
        problems.add(0, 0, f"the file is over {MAX_BYTES >> 20} MiB")
        return None
    text = decode_text(data, problems)
    if text is None:
        return None
    try:
        meaning = tomllib.loads(text)
        if _depth(meaning) > MAX_DEPTH:
            problems.add(0, 0, f"nested deeper than {MAX_DEPTH} levels")
            return None
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        place = _PLACE.search(said)
        line, column = (int(place[1]), int(place[2])) if place else place_of(text, len(text))
        problems.add(line, column, f"this is not TOML ({_PLACE.sub('', said).strip()})")
        return None
    except (RecursionError, ValueError):
        problems.add(0, 0, "this is not TOML", "", "check its brackets and numbers")
        return None
    places = Places(text)
    with suppress(IndexError, ValueError):  # what has no place by then has that of what it stands in
        places.find()
    return _node(meaning, (), Place(0, 0), places)


def _depth(meaning: Any) -> int:
    below: list[Any] = [meaning]
    depth = 0
    while below:
        depth += 1
        below = [
            child
            for one in below
            if isinstance(one, dict | list)
            for child in (one.values() if isinstance(one, dict) else one)
        ]
    return depth


class Places:
    """The places of keys and values, by their path."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counted = (0, 0, 0)  # line, begin of the line, up to where
        self.keys: dict[Path, Mark] = {}
        self.values: dict[Path, Mark] = {}
        self._tables: dict[Path, int] = {}

    def find(self) -> None:
        """Look through the text once."""
        table: Path = ()
        while True:
            self._skip(_SPACE)
            if self._at >= len(self._text):
                return
            if self._text[self._at] == "[":
                many = self._text.startswith("[[", self._at)
                self._at += 2 if many else 1
                table = self._key(())
                if many:
                    self._tables[table] = self._tables.get(table, -1) + 1
                    table = (*table, self._tables[table])
                self._at = self._text.index("]", self._at) + (2 if many else 1)
            else:
                path = self._key(table)
                self._at = self._text.index("=", self._at) + 1
                self._value(path)
            end = self._text.find("\n", self._at)
            self._at = len(self._text) if end < 0 else end

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _mark(self) -> Mark:
        line, begin, upto = self._counted
        if self._at > upto:
            line += self._text.count("\n", upto, self._at)
            last = self._text.rfind("\n", upto, self._at)
            begin = last + 1 if last >= 0 else begin
            self._counted = (line, begin, self._at)
        return Place(line, self._at - begin)

    def _key(self, table: Path) -> Path:
        path = table
        while True:
            self._skip(_BLANK)
            mark = self._mark()
            match = _STRING.match(self._text, self._at) or _BARE.match(self._text, self._at)
            if match is None:
                raise ValueError("no key")
            self._at = match.end()
            name = match.group()
            path = (*path, next(iter(tomllib.loads(f"{name} = 0"))) if name[0] in "\"'" else name)
            self.keys.setdefault(path, mark)
            self._skip(_BLANK)
            if self._text[self._at : self._at + 1] != ".":
                return path
            if path in self._tables:
                path = (*path, self._tables[path])
            self._at += 1

    def _value(self, path: Path) -> None:
        self._skip(_BLANK)
        self.values[path] = self._mark()
        first = self._text[self._at]
        if first in "[{":
            close = "]" if first == "[" else "}"
            self._at += 1
            count = 0
            while True:
                self._skip(_SPACE)
                if self._text[self._at] == close:
                    self._at += 1
                    return
                if self._text[self._at] == ",":
                    self._at += 1
                    continue
                if first == "[":
                    self._value((*path, count))
                    count += 1
                else:
                    key = self._key(path)
                    self._at = self._text.index("=", self._at) + 1
                    self._value(key)
        elif first in "\"'":
            match = _STRING.match(self._text, self._at)
            if match is None:
                raise ValueError("no string")
            self._at = match.end()
        else:
            self._skip(_OTHER)


def _node(meaning: Any, path: Path, around: Mark, places: Places) -> Node:
    mark = places.values.get(path) or places.keys.get(path) or around
    if isinstance(meaning, dict):
        mapping = Mapping(mark)
        for key, value in meaning.items():
            here = (*path, key)
            key_mark = places.keys.get(here) or mark
            mapping.pairs.append((Scalar(key, plain=False, mark=key_mark), _node(value, here, key_mark, places)))
        return mapping
    if isinstance(meaning, list):
        sequence = Sequence(mark)
        sequence.items = [_node(value, (*path, at), mark, places) for at, value in enumerate(meaning)]
        return sequence
    if isinstance(meaning, bool):
        return Scalar("true" if meaning else "false", plain=True, mark=mark)
    return Scalar(str(meaning), plain=not isinstance(meaning, str), mark=mark)
