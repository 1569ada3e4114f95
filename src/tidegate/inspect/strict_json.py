"""JSON that every reader reads alike (RFC 8259, I-JSON RFC 7493), since two act on it: ours and the service's.

Invariant: what is returned is what any reader would have made of these bytes, or UnclearError. Refused is what readers
differ on: a key twice in one object, also where only case or an underline tells them apart (some readers match keys so
loosely), bytes that are no UTF-8, a byte order mark, NaN and Infinity, halves of surrogate pairs, more than one value,
numbers that no double holds, and nesting deeper than some can follow. So is a text of more parts than are looked at:
each costs a hundred times its bytes.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

DEEPEST = 100  # System.Text.Json stops at 64, protobuf at 100: what is deeper is read by some only
_LONGEST_NUMBER = 400  # characters; a double needs at most 325
MOST_PARTS = 200_000  # values of one text; a long conversation with a hundred tools has 50,000


class UnclearError(ValueError):
    """Two readers could differ on it, or it is no JSON; says why without repeating what it says."""


def read(data: bytes, most: int = MOST_PARTS) -> Any:
    """Return the value of a text of at most so many parts.

    Raises:
        UnclearError: see the head of the file.
    """
    if len(data) > most and _parts(data, most) > most:
        raise UnclearError(f"the body has more than {most} parts")
    try:
        value = json.loads(
            data.decode(), object_pairs_hook=_object, parse_constant=_constant, parse_float=_number, parse_int=_integer
        )
    except UnclearError:
        raise
    except (ValueError, RecursionError) as error:
        raise UnclearError("the body is no JSON in UTF-8") from error
    _check(value)
    return value


def _parts(data: bytes, most: int) -> int:
    # As many values as there are commas and openings outside of strings; where there are few in all, that is enough.
    count = _signs(data)
    if count <= most:
        return count
    # By what runs over bytes at once: a step for each string would take seconds for a text that is only strings.
    unescaped = data.replace(rb"\\", b"").replace(rb"\"", b"")
    if unescaped.count(b'"') > 4 * most + 2:  # two to a string, a key and a value to a part
        return most + 1
    return _signs(b"".join(unescaped.split(b'"')[::2]))


def _signs(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def plain(key: str) -> str:
    """Return a key as the loosest of readers compares it."""
    return key.replace("_", "").casefold()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({plain(key) for key, _ in pairs}) != len(pairs):
        raise UnclearError("an object of the body has a key twice, or two that some readers take for one")
    return dict(pairs)


def _constant(_name: str) -> NoReturn:
    raise UnclearError("the body has NaN or Infinity, which JSON does not know")


def _number(text: str) -> float:
    value = float(text) if len(text) <= _LONGEST_NUMBER else float("inf")
    if value in {float("inf"), float("-inf")}:
        raise UnclearError("the body has a number that no double holds")
    return value


def _integer(text: str) -> int:
    _number(text)
    return int(text)


def _check(value: Any) -> None:
    """Look at every part for what the parser lets through."""
    level, depth = [value], 0
    while level:
        below: list[Any] = []
        depth += any(isinstance(one, (dict, list)) for one in level)
        if depth > DEEPEST:
            raise UnclearError(f"the body is nested deeper than {DEEPEST}")
        for one in level:
            if isinstance(one, dict):
                below += one
                below += one.values()
            elif isinstance(one, list):
                below += one
            elif isinstance(one, str) and not one.isascii():
                try:
                    one.encode()
                except UnicodeEncodeError:
                    raise UnclearError("the body has half of a surrogate pair") from None
        level = below
