"""What is kept of a sink between two servers: how far it has come, what it could not deliver, and what was gone.

    <state>/sinks/NAME.position    one JSON object, replaced whole
    <state>/sinks/NAME.aside       a JSON line for each record that the receiver refuses for ever, bounded

A position that is missing or damaged is the beginning of the log: a sink may repeat, and loses nothing.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from tidegate.journal.chain import GENESIS
from tidegate.journal.files import open_regular
from tidegate.journal.sinks.record import Position
from tidegate.model.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_GAPS: Final = 20  # of which the range is kept; more are counted
ASIDE_BYTES: Final = 1 << 20
_LONGEST = 1 << 16


class Kept(Value):
    """See the head of the file. `lost` were gone from the log before they were read; `gaps` are the newest ranges.

    `error` is why it could not send when it tried last, '' where it could. `marks` are older positions, the newest
    last: where the log is no more what it was, the newest that is still in it is where to go on.
    """

    seq: int = 0
    hash: str = GENESIS
    sent: int = 0
    aside: int = 0
    lost: int = 0
    gaps: tuple[tuple[int, int], ...] = ()
    marks: tuple[tuple[int, str], ...] = ()
    error: str = ""

    @property
    def position(self) -> Position:
        """Return how far it has come."""
        return Position(self.seq, self.hash)


class Keeper:
    """Keeps it in a folder. `write` puts a whole file in place of another, at once or not at all."""

    def __init__(self, folder: str, name: str, write: Callable[[str, bytes], None]) -> None:
        self._path = os.path.join(folder, f"{name}.position")
        self._aside = os.path.join(folder, f"{name}.aside")
        self._write = write

    def load(self) -> tuple[Kept, str]:
        """Return what is kept, and why it is not where it cannot be read."""
        try:
            with open_regular(self._path) as file:
                return kept_of(json.loads(file.read(_LONGEST))), ""
        except FileNotFoundError:
            return Kept(), ""
        except (OSError, ValueError, TypeError, KeyError) as error:
            return Kept(), f"its position cannot be read ({type(error).__name__}): it begins with the first line"

    def save(self, kept: Kept) -> None:
        """Keep it.

        Raises:
            OSError: when that cannot be.
        """
        self._write(self._path, json.dumps({name: getattr(kept, name) for name in Kept._fields}).encode())

    def set_aside(self, line: dict[str, Any]) -> None:
        """Write down what is not delivered; past the bound it is counted only.

        Raises:
            OSError: when that cannot be.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(self._aside, flags, 0o600), "ab") as file:
            if file.tell() < ASIDE_BYTES:
                file.write(json.dumps(line).encode("ascii") + b"\n")

    def remove(self) -> None:
        """Forget all of it.

        Raises:
            OSError: when that cannot be.
        """
        for path in (self._path, self._aside):
            if os.path.lexists(path):
                os.unlink(path)


def kept_of(fields: dict[str, Any]) -> Kept:
    """Return what `Keeper.save` wrote.

    Raises:
        ValueError, TypeError, KeyError: when it is nothing of the kind.
    """
    numbers = {name: fields[name] for name in ("seq", "sent", "aside", "lost")}
    gaps = tuple((int(first), int(last)) for first, last in fields["gaps"])
    hash_ = fields["hash"]
    if not all(isinstance(number, int) and number >= 0 for number in numbers.values()) or not isinstance(hash_, str):
        raise ValueError
    marks = tuple((int(seq), str(mark)) for seq, mark in fields["marks"])
    return Kept(**numbers, hash=hash_, gaps=gaps, marks=marks, error=str(fields["error"]))
