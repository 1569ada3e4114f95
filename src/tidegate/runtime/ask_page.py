"""The page that asks a person at the terminal about one connection (ASK-5, ASK-6).

Rules of the file:

* What a task had a say in (folder, command, rule's source) is shown without control and direction characters. The host
  is shown by its A-labels, whole, on lines of its own; its Unicode form only where questions/display.py gives one.
* Nothing can be allowed that is not shown whole: where the window is too small the page says so, and only refusing is
  left.
* Bold, dim and reverse only: it reads the same on any terminal, in any colours.

Pure: a question as the gate sent it, numbers and sizes in, lines out.
"""

from __future__ import annotations

import textwrap
import unicodedata

from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ANSWERS = {"a": "allow", "t": "task", "r": "remember", "d": "deny", "x": "deny-task"}
"""What each key answers (ASK-2)."""
REFUSALS = frozenset("dx")
NARROWEST = 24

PLAIN, BOLD, DIM, REVERSE = "", "1", "2", "7"


class Page(Value):
    """Lines with their style, and whether the question is shown whole."""

    lines: tuple[tuple[str, str], ...]
    whole: bool


class Standing(Value):
    """How things stand: the question is the `place`-th of `total`; `ready` when keys count; `saving` once answered."""

    place: int
    total: int
    left: float
    ready: bool
    saving: bool = False


def page(question: dict[str, Any], command: str, standing: Standing, columns: int, rows: int) -> Page:
    """Return the page for a window of this size."""
    width = columns - 2
    lines = list(_lines(question, command, standing, max(width, NARROWEST)))
    if len(lines) > rows:
        lines = [line for line in lines if line[0]]  # without the empty ones
    if width < NARROWEST or len(lines) > rows:
        small = ("This window is too small", "for the question.", "d  deny", "Or make it larger.")
        return Page(tuple((line[:columns], BOLD) for line in small[:rows]), whole=False)
    return Page(tuple((f" {text}" if text else "", style) for text, style in lines), whole=True)


def drawn(made: Page) -> bytes:
    """Return what draws it on a cleared screen that wraps nothing."""
    parts = ["\x1b[H"]
    for text, style in made.lines:
        parts.append(f"\x1b[{style}m{text}\x1b[0m\x1b[K\r\n" if style else f"{text}\x1b[K\r\n")
    return ("".join(parts)[:-2] + "\x1b[J").encode()


def _lines(question: dict[str, Any], command: str, standing: Standing, width: int) -> Iterator[tuple[str, str]]:
    place = f"question {standing.place} of {standing.total}" if standing.total > 1 else ""
    title = "tidegate asks: may this task connect?"
    yield (title if len(title) + len(place) + 2 > width else title.ljust(width - len(place)) + place)[:width], REVERSE
    if len(title) + len(place) + 2 > width and place:
        yield place, PLAIN
    yield "", PLAIN
    where = f"{question['host']}:{question['port']}"
    for start in range(0, len(where), width - 2):
        yield f"  {where[start : start + width - 2]}", BOLD
    if question["label"]:
        yield _fit(f"  which reads {safe(question['label'])}", width), PLAIN
    for warning in question["warnings"]:
        for part in textwrap.wrap(f"! {warning}", width - 2, subsequent_indent="  ", break_on_hyphens=False):
            yield f"  {part}", REVERSE
    if question["group"]:
        for part in textwrap.wrap(f"! many names under {question['group']} are asked for", width - 2):
            yield f"  {part}", PLAIN
    yield "", PLAIN
    yield _fit(f"task       {question['task']}  {safe(command)}", width), PLAIN
    yield _fit(f"folder     {safe(question['folder'])}", width), PLAIN
    yield _fit(f"because    {_because(question)}", width), PLAIN
    yield _fit(f"waiting    {_waiting(question['waiting'])}", width), PLAIN
    yield _fit(f"time left  {clock(standing.left)}, then it is refused", width), PLAIN
    yield "", PLAIN
    yield from _answers(question, width)
    yield "", PLAIN
    if standing.saving:
        yield "saving the answer ...", BOLD
    elif standing.ready:
        yield "Press a key. Ctrl-C interrupts the command.", BOLD
    else:
        yield "Keys count in a moment ...", DIM


def _answers(question: dict[str, Any], width: int) -> Iterator[tuple[str, str]]:
    forget = question["no_remember"]
    for key, text in (
        ("a", "allow now"),
        ("t", "allow for this task"),
        ("r", "allow and remember for this folder"),
        ("d", "deny"),
        ("x", "deny for this task, and cut what is open"),
    ):
        if key == "r" and forget:
            for part in textwrap.wrap(f"-  not remembered: {safe(forget)}", width, subsequent_indent="   "):
                yield part, DIM
        else:
            yield _fit(f"{key}  {text}", width), PLAIN


def answers_of(question: dict[str, Any], *, whole: bool) -> dict[str, str]:
    """Return the keys that answer this question, and what: only refusals where it is not shown whole."""
    keys = dict(ANSWERS)
    if question["no_remember"]:
        del keys["r"]
    return keys if whole else {"d": keys["d"]}


def _because(question: dict[str, Any]) -> str:
    source = safe(question["source"])
    if question["rule"]:
        return f"rule {safe(question['rule'])} ({safe(question['rule_name'])}, {source})"
    return f"no rule names it ({source})" if source else "no rule names it"


def _waiting(count: int) -> str:
    if count == 0:
        return "nobody now; an answer counts for its next try"
    return "1 connection" if count == 1 else f"{count} connections"


def clock(seconds: float) -> str:
    """Return seconds as a clock shows them: 0:09, 14:59, 7:59:59."""
    whole = max(0, int(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, second = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{second:02}" if hours else f"{minutes}:{second:02}"


def safe(text: str) -> str:
    """Return text that moves no cursor and turns no direction (ASK-6)."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def _fit(text: str, width: int) -> str:
    """Cut text to a number of columns; what is cut off is marked."""
    room = width
    kept: list[str] = []
    for char in text:
        room -= 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if room < 0:
            return "".join(kept[:-1]) + ">"
        kept.append(char)
    return text
