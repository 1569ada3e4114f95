"""YAML text -> a small tree whose nodes know where they stand (POL-0, POL-2, B14).

Only what a policy needs of YAML is read: one document of mappings, sequences and scalars. Rules of the file:

* What a plain scalar means is decided by YAML 1.2 (nodes.py). JSON is YAML, tabs between its tokens included.
* Refused, because two readers could read them differently, or a person would see another file than the
  machine: tags, merge keys, directives, a second document, a byte order mark, anything but UTF-8, control
  characters, a carriage return alone, the exotic line ends that YAML 1.1 obeys and 1.2 does not (U+0085,
  U+2028, U+2029), and characters that turn the direction of text.
* Bounded: MAX_BYTES of text, MAX_DEPTH levels, MAX_NODES nodes after aliases are followed, MAX_ALIASED
  of them through aliases.
  PyYAML's parser is driven event by event and the tree is built in a loop, so nothing here recurses.
* `*.example.com`, `@npm` and `[::1]:443` need quotes in YAML. Each place where they are missing is reported
  with the quoted form and stepped over, so that one run shows them all.

With PyYAML's C parser a policy of 10,000 rules takes about 20 ms here, the rest of a load is in loader.py.
Without it (a PyYAML built without libyaml) it is about 250 ms, and MAX_BYTES_SLOW is the bound.

It does not know what a policy is.
"""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

import yaml

from tidegate.policy.nodes import Broken, Mapping, Mark, Node, Scalar, Sequence
from tidegate.policy.positions import Problems, place_of

MAX_BYTES: Final = 8 * 1024 * 1024  # POL-0
MAX_BYTES_SLOW: Final = 1024 * 1024
MAX_DEPTH: Final = 16  # a policy needs six
MAX_NODES: Final = 400_000
MAX_ALIASED: Final = 20_000  # of these, nodes that aliases repeat
# A missing quote is stepped over by parsing again; this bounds the text parsed in all.
_MAX_REPARSED: Final = 4 * 1024 * 1024
_MAX_DIRECTIVES: Final = 16  # lines that begin with '%'; libyaml's time grows with the square of their number

_UNSEEN = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|\r(?!\n)"
)
_TOO_DEEP: Final = (f"nested deeper than {MAX_DEPTH} levels", "", "a policy needs six at most")
_DIRECTIVE: Final = ("a YAML directive", "%", "remove the line that begins with '%'")
_DIRECTION: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BARE_TOKEN = re.compile(r"[*@`%&!|>][^\s,\[\]{}#]*")
_BARE_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]{2,45}\](?::[0-9]{0,5})?")  # bounded, so that no line makes it slow


_Found = tuple[Mark, str, str, str]  # where, what is wrong, the text there, what to write instead


class _Stop(Exception):  # noqa: N818 - it ends a loop, it is no error of its own
    """The text cannot be read on; its problem has been noted."""


def parse_document(data: bytes, problems: Problems) -> Node | None:
    """Return the tree of a policy's text, or None where it cannot be read at all.

    What is wrong goes into `problems`; a tree may be returned beside problems, so that the caller can look
    for more before it refuses. Never raises for any bytes.

    Raises:
        TooManyProblemsError: from `problems`.
    """
    text = decode_text(data, problems)
    if text is None:
        return None
    slow = not hasattr(yaml, "CBaseLoader")
    if slow and len(data) > MAX_BYTES_SLOW:
        problems.add(
            0, 0, f"the policy is over {MAX_BYTES_SLOW >> 20} MiB", "", "install a PyYAML with libyaml for this"
        )
        return None
    if slow and text.lstrip()[:1] in ("{", "["):
        text = text.replace("\t", " ")  # the pure parser knows no tabs between the tokens of JSON
    if text.count("\n%") > _MAX_DIRECTIVES:
        line, column = place_of(text, text.find("\n%") + 1)
        problems.add(line, column, *_DIRECTIVE)
        return None
    reparsed = 0
    while True:
        found: list[_Found] = []
        try:
            root = _compose(text, found)
        except ValueError:  # the pure parser's own, for a code point that does not exist
            problems.add(0, 0, "this is not YAML", "", "check the escapes in quoted texts")
            return None
        except yaml.YAMLError as error:
            reparsed += len(text)
            mended = _mend(text, error, problems)
            if mended is None or reparsed > _MAX_REPARSED:
                return None
            text = mended
            continue
        except _Stop:
            root = None
        for mark, what, shown, advice in found:
            problems.add(mark.line + 1, mark.column + 1, what, shown, advice)
        return root


def decode_text(data: bytes, problems: Problems) -> str | None:
    """Return the text of a file that a person wrote; None where it is none, which is noted."""
    if len(data) > MAX_BYTES:
        problems.add(0, 0, f"the policy is over {MAX_BYTES >> 20} MiB", "", "split it, or write wildcards")
        return None
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or (data[:1] == b"\0" and b"\0" in data[1:4]) or data[1:2] == b"\0":
        problems.add(1, 1, "the file is UTF-16 or UTF-32", "", "save it as UTF-8")
        return None
    nul = data.find(b"\0")
    if nul >= 0:
        before = data[:nul].decode("utf-8", "replace")
        line, column = place_of(before, len(before))
        problems.add(line, column, "a NUL byte, as binary files have", "", "name a policy in YAML or JSON")
        return None
    if data[:3] == b"\xef\xbb\xbf":
        problems.add(1, 1, "the file begins with a byte order mark", "", "save it as UTF-8 without one")
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        line, column = place_of(before, len(before))
        shown = data[error.start : error.start + 4].decode("latin-1")
        problems.add(line, column, "the file is not UTF-8", shown, "save it as UTF-8")
        return None
    unseen = False
    line, after = 1, 0  # counted along, so that a thousand finds cost one reading
    for match in _UNSEEN.finditer(text):
        unseen = True
        char = match.group()
        line += text.count("\n", after, match.start())
        after = match.start()
        column = after - text.rfind("\n", 0, after)
        if char == "\r":
            problems.add(line, column, "a carriage return without a newline", char, "end lines with a newline")
        elif char in _DIRECTION:
            problems.add(line, column, "a character that turns the direction of text", char, "remove it")
        elif char in "\x85\u2028\u2029":
            problems.add(line, column, "a line end that not every reader sees", char, "end lines with a newline")
        else:
            problems.add(line, column, "a character that cannot be seen", char, "remove it")
    return None if unseen else text


def _compose(text: str, found: list[_Found]) -> Node | None:
    """Build the tree of the one document in `text`; what YAML allows and a policy does not goes to `found`."""
    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)(text)
    try:
        return _Tree(found).build(loader.get_event)
    finally:
        loader.dispose()


class _Tree:
    """The tree of one document while the parser's events come. What stops it is noted, and raised as _Stop."""

    __slots__ = ("_aliased", "_anchors", "_begun", "_found", "_nodes", "_open", "_root", "_sizes")

    def __init__(self, found: list[_Found]) -> None:
        self._found = found
        self._root: Node | None = None
        self._begun = False
        self._open: list[tuple[Sequence | Mapping, int]] = []  # and how many nodes there were when each began
        self._anchors: dict[str, Node] = {}
        # How many nodes an anchored node is, aliases followed. By id: the anchors keep them alive.
        self._sizes: dict[int, int] = {}
        self._nodes = self._aliased = 0

    def build(self, get_event: Any) -> Node | None:
        """Return the tree; None where the text holds nothing."""
        # Local names and exact types: this loop runs once per rule.
        scalar, sequence, mapping = yaml.ScalarEvent, yaml.SequenceStartEvent, yaml.MappingStartEvent
        ends = (yaml.SequenceEndEvent, yaml.MappingEndEvent)
        while True:
            event = get_event()
            kind = type(event)
            if kind is scalar:
                self._add(self._scalar(event))
            elif kind is sequence:
                self._enter(event, Sequence(event.start_mark))
            elif kind is mapping:
                self._enter(event, Mapping(event.start_mark))
            elif kind in ends:
                self._add(self._leave())
            elif kind is yaml.AliasEvent:
                self._add(self._repeated(event.anchor, event.start_mark))
            elif kind is yaml.DocumentStartEvent:
                self._begin(event)
            elif kind is yaml.StreamEndEvent:
                return self._root

    def _begin(self, event: Any) -> None:
        if self._begun:
            self._stop(event.start_mark, "a second document in the file", "---", "keep one policy per file")
        self._begun = True
        if event.version is not None or event.tags:
            self._found.append((event.start_mark, *_DIRECTIVE))

    def _scalar(self, event: Any) -> Scalar | Broken:
        self._nodes += 1
        mark = event.start_mark
        node = Broken(mark) if self._tagged(event) else Scalar(event.value, event.implicit[0], mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
            self._sizes[id(node)] = 1
        return node

    def _enter(self, event: Any, node: Sequence | Mapping) -> None:
        self._nodes += 1
        self._tagged(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        if len(self._open) >= MAX_DEPTH:
            self._stop(node.mark, *_TOO_DEEP)
        self._open.append((node, self._nodes))

    def _leave(self) -> Sequence | Mapping:
        node, before = self._open.pop()
        self._sizes[id(node)] = self._nodes - before + 1
        return node

    def _tagged(self, event: Any) -> bool:
        if event.tag is None:
            return False
        advice = "remove it; texts, numbers, lists and mappings need none"
        self._found.append((event.start_mark, "a tag", event.tag, advice))
        return True

    def _repeated(self, name: str, mark: Mark) -> Node:
        shown = f"*{name}"
        node = self._anchors.get(name)
        if node is None:
            what = "an unquoted '*' is a YAML alias, and nothing has this name"
            self._found.append((mark, what, shown, f'write "{shown}"'))
            self._nodes += 1
            return Broken(mark)
        size = self._sizes.get(id(node))
        if size is None:
            self._stop(mark, "an alias inside of what it stands for", shown, "write it out")
        self._nodes += size
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            self._stop(mark, f"aliases that repeat more than {MAX_ALIASED} entries", shown, "write wildcards instead")
        return node

    def _add(self, node: Node) -> None:
        """Put a whole node where it belongs."""
        if self._nodes > MAX_NODES:
            self._stop(node.mark, f"more than {MAX_NODES} entries", "", "write wildcards instead")
        if not self._open:
            self._root = node
            return
        parent = self._open[-1][0]
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif parent.pending is None:
            parent.pending = node
        else:
            parent.pairs.append((parent.pending, node))
            parent.pending = None

    def _stop(self, mark: Mark, what: str, shown: str, advice: str) -> NoReturn:
        self._found.append((mark, what, shown, advice))
        raise _Stop


def _mend(text: str, error: yaml.YAMLError, problems: Problems) -> str | None:
    """Note a syntax error; return the text with the fault overwritten where it was a missing quote."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        problems.add(0, 0, "this is not YAML", str(error), "")
        return None
    lines = text.split("\n", mark.line + 1)
    context = getattr(error, "context_mark", None)
    for place in (context, mark):
        if place is None or place.line != mark.line or place.line >= len(lines):
            continue
        start = sum(len(line) + 1 for line in lines[: place.line]) + place.column
        token = _BARE_TOKEN.match(text, start)
        if token and (token.group()[0] in "*@`%" or place is mark):
            shown = token.group().removesuffix(":") if text[token.end() :][:1] in " \n" else token.group()
            what = f"an entry that begins with '{shown[0]}' needs quotes"
            problems.add(place.line + 1, place.column + 1, what, shown, f'write "{shown}"')
            return text[:start] + "x" * len(shown) + text[start + len(shown) :]
    line = lines[mark.line] if mark.line < len(lines) else ""
    for literal in _BARE_IPV6.finditer(line):
        shown = literal.group()
        if literal.start() <= mark.column <= literal.end() and ":" in shown.partition("]")[0]:
            problems.add(mark.line + 1, literal.start() + 1, "an IPv6 literal needs quotes", shown, f'write "{shown}"')
            start = sum(len(before) + 1 for before in lines[: mark.line]) + literal.start()
            return text[:start] + "x" * len(shown) + text[start + len(shown) :]
    rest = line[mark.column :]
    if rest[:1] == "\t" or (line[: mark.column].strip() == "" and "\t" in line[: mark.column]):
        problems.add(mark.line + 1, mark.column + 1, "a tab indents this line", rest or line, "indent with spaces")
        return None
    if "nesting depth" in str(getattr(error, "problem", "")):  # the C scanner reads ahead of its events
        problems.add(mark.line + 1, mark.column + 1, *_TOO_DEEP)
        return None
    said = ", ".join(part for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part)
    problems.add(
        mark.line + 1, mark.column + 1, f"this is not YAML ({said})", rest, "check the indentation, quotes and brackets"
    )
    return None
