"""A policy document as text: what is written is YAML that the reader of policies takes as it is meant (JRN-7, POL-15).

Rules of the file:

* Whatever comes from outside - a host, a note, a file's name - can end no line, open no value and move no cursor: texts
  that are not plainly texts stand in quotes, notes are one line of printable ASCII.
* The order is the caller's, so that the same input writes the same bytes.
* Nothing is judged: whether it is a policy is what loader.py says of the result.
"""

from __future__ import annotations

from tidegate.model.value import Value
from tidegate.model.verdict import Phase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    Setting: TypeAlias = str | int | bool | Sequence["Setting"] | Mapping[str, "Setting"]

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
_PLAIN = _LETTERS | frozenset("0123456789._-")
# Words that a reader of YAML 1.1 or 1.2 takes for something else than a text.
_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
_MAX_NOTE = 400
_PHASES = tuple(phase.value for phase in Phase)


class Item(Value):
    """One entry of a list: a rule's text or `@preset`, what narrows it, and a note for people."""

    rule: str
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    git: str = ""
    note: str = ""


def scalar(text: str) -> str:
    """Return a text as a YAML scalar that is a text for every reader."""
    host, colon, port = text.partition(":")
    plain = host[:1] in _LETTERS and _PLAIN.issuperset(host) and host not in _WORDS
    if plain and (not colon or (port.isascii() and port.isdigit())):
        return text
    return quoted(text)


def quoted(text: str) -> str:
    """Return a text in double quotes, ASCII only; JSON reads it as well, up to U+FFFF, which is all that rules have."""
    return '"' + "".join(char if " " <= char <= "~" and char not in '"\\' else _escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\{char}" if char in '"\\' else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def note(text: str) -> str:
    """Return what may stand behind `# `, or on a terminal: one line of printable ASCII, bounded, no order to a CI.

    Some of them obey what follows `##` (`##[error]`, `##vso[…]`) wherever it stands in what a build prints.
    """
    if not (text.isascii() and text.isprintable()):
        text = "".join(c if c.isascii() and c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    text = text.replace("##", "#\\x23")
    return text if len(text) <= _MAX_NOTE else text[: _MAX_NOTE - 3] + "..."


def item_line(item: Item) -> str:
    """Return an entry as a line of a block list, without its indentation."""
    more = _narrowing(item)
    body = "{" + ", ".join((f"host: {quoted(item.rule)}", *more)) + "}" if more else scalar(item.rule)
    return f"- {body}" + (f"  # {note(item.note)}" if item.note else "")


def inline(item: Item) -> str:
    """Return an entry as it stands between brackets, in JSON too; its note has no place there."""
    pairs: list[tuple[str, Setting]] = [("host", item.rule)]
    pairs += [
        (key, value) for key, value in (("methods", item.methods), ("paths", item.paths), ("git", item.git)) if value
    ]
    return quoted(item.rule) if len(pairs) == 1 else _flow(dict(pairs))


def document(
    network: Mapping[str, Mapping[str, Sequence[Item]]],
    *,
    settings: Iterable[tuple[str, Setting, str]] = (),
    head: Iterable[str] = (),
    tail: Iterable[str] = (),
) -> str:
    """Return a policy.

    `network` is phase → list → entries; empty lists are left out, empty phases too. `settings` are (key, value, note)
    of the top level. `head` and `tail` are lines of comment.
    """
    lines = [f"# {note(line)}".rstrip() for line in head]
    for key, value, about in settings:
        text = scalar(value) if isinstance(value, str) else _flow(value)
        lines.append(f"{key}: {text}" + (f"  # {note(about)}" if about else ""))
    lines += network_lines(network)
    lines += [f"# {note(line)}".rstrip() for line in tail]
    return "\n".join(lines) + "\n"


def network_lines(network: Mapping[str, Mapping[str, Sequence[Item]]]) -> list[str]:
    """Return the lines of the key `network`; none where it names nothing."""
    lines: list[str] = []
    for phase in _PHASES:
        lists = {verdict: items for verdict, items in network.get(phase, {}).items() if items}
        if not lists:
            continue
        lines += ([] if lines else ["network:"]) + [f"  {phase}:"]
        for verdict, items in lists.items():
            lines.append(f"    {verdict}:")
            lines += [f"      {item_line(item)}" for item in items]
    return lines


def _narrowing(item: Item) -> list[str]:
    found = []
    if item.methods:
        found.append(f"methods: [{', '.join(map(scalar_word, item.methods))}]")
    if item.paths:
        found.append(f"paths: [{', '.join(map(quoted, item.paths))}]")
    if item.git:
        found.append(f"git: {scalar(item.git)}")
    return found


def scalar_word(word: str) -> str:
    """Return a word in capitals, a method for example, as a scalar."""
    return word if word.isascii() and word.isalpha() and word.lower() not in _WORDS else quoted(word)


def _flow(value: Setting) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if hasattr(value, "items"):
        return "{" + ", ".join(f"{quoted(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    return "[" + ", ".join(map(_flow, value)) + "]"
