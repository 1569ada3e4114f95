"""Where in a policy's text something is wrong, what is wrong, and what to write instead (POL-2).

A problem is printed as `FILE:LINE:COL: what is wrong: 'text': write this instead`; lines and columns count
from 1, columns in characters. Everything at once: a `Problems` collects, and raises one `PolicyErrors`.

Whatever comes out of the file passes through `on_screen` before it is shown: a policy is text that somebody
else may have written, and a terminal obeys control and direction characters (ASK-6, B07).
"""

from __future__ import annotations

from typing import Final, Self

from tidegate.model.errors import UsageError
from tidegate.model.value import Value

MAX_PRINTED: Final = 50  # POL-0
MAX_SHOWN: Final = 60  # characters of the text at fault
_MAX_CLAUSE: Final = 300  # of the other parts of a line, which may quote the text
# After so many a file is not a policy with mistakes but something else; checking the rest only costs time.
MAX_COUNTED: Final = 1000


def on_screen(text: str, limit: int = MAX_SHOWN) -> str:
    """Return `text` safe for a terminal: no control, direction or invisible character, at most `limit` long.

    What is escaped is written as in Python, with backslash and code point, and a backslash as two, so that the
    result says exactly what stood there.
    """
    cut = text[: limit + 1]
    if not cut.isprintable() or "\\" in cut:
        cut = "".join(
            char if char.isprintable() and char != "\\" else char.encode("unicode_escape").decode("ascii")
            for char in cut
        )
    return cut if len(cut) <= limit and len(text) <= limit else cut[: limit - 1] + "…"


class Problem(Value):
    """One thing that is wrong. `line` and `column` are 0 where it concerns the file as a whole."""

    filename: str
    line: int
    column: int
    what: str
    text: str = ""
    advice: str = ""

    def __str__(self) -> str:
        filename = on_screen(self.filename, _MAX_CLAUSE)
        parts = [f"{filename}:{self.line}:{self.column}" if self.line else filename, on_screen(self.what, _MAX_CLAUSE)]
        if self.text:
            parts.append(f"'{on_screen(self.text)}'")
        if self.advice:
            parts.append(on_screen(self.advice, _MAX_CLAUSE))
        return ": ".join(parts)


class PolicyErrors(UsageError):  # noqa: N818 - it carries all of a file's errors, hence the plural
    """A policy's text is wrong; nothing of it was loaded.

    `errors` holds the first problems in the order of the file, at most MAX_PRINTED; `count` is how many there
    are in all (`more` is true where counting stopped early). As text it is one line per problem.
    """

    def __init__(self, errors: list[Problem], count: int = 0, *, more: bool = False) -> None:
        self.errors = errors
        self.count = max(count, len(errors))
        self.more = more
        super().__init__("\n".join(self.lines()), code="policy-text")

    def lines(self) -> list[str]:
        """Return what a person reads: one line per problem, then how many are not shown."""
        lines = [str(error) for error in self.errors[:MAX_PRINTED]]
        hidden = self.count - len(lines)
        if hidden > 0:
            noun = "error is" if hidden == 1 else "errors are"
            lines.append(f"{'at least ' if self.more else ''}{hidden} more {noun} not shown")
        return lines


class TooManyProblemsError(Exception):
    """Collecting stopped; raised and caught inside this package only."""


class Problems:
    """Collects the problems of one file in the order of its text; `count` is how many there are so far.

    `with problems:` reads a file whole: at its end, or where the file is hopeless, all that was collected is raised.
    """

    def __init__(self, filename: str) -> None:
        self.filename = filename
        self._kept: dict[tuple[int, int, str], Problem] = {}
        self.count = 0

    def __bool__(self) -> bool:
        return bool(self._kept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is TooManyProblemsError:
            raise self.error(more=True) from None
        if kind is None and self:
            raise self.error()

    def add(self, line: int, column: int, what: str, text: str = "", advice: str = "") -> None:
        """Note one problem; the same one at the same place (seen through an alias) counts once.

        Raises:
            TooManyProblemsError: where the file is hopeless.
        """
        key = (line, column, what)
        if key in self._kept:
            return
        self.count += 1
        if len(self._kept) < MAX_PRINTED:
            self._kept[key] = Problem(self.filename, line, column, what, text, advice)
        if self.count >= MAX_COUNTED:
            raise TooManyProblemsError

    def error(self, *, more: bool = False) -> PolicyErrors:
        """Return what was collected as the error to raise."""
        kept = sorted(self._kept.values(), key=lambda problem: (problem.line, problem.column))
        return PolicyErrors(kept, self.count, more=more)


def place_of(text: str, index: int) -> tuple[int, int]:
    """Return line and column, both from 1, of the character at `index`."""
    before = text.count("\n", 0, index)
    return before + 1, index - (text.rfind("\n", 0, index) + 1) + 1
