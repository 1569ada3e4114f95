"""What a rule says beside its host: `limits`, `methods` and `paths`; and whom inspection leaves out (INS-6, INS-9).

Rules of the file: a pattern that no path in normal form could match is refused when it is loaded, with what to write
instead; a rule that would match nothing looks like a narrow allow and is a typing error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidegate.model.rule import Layer, Origin, RuleLimits
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.paths import normal_path
from tidegate.policy.rows import LIMITS, PHASE, VERDICT, rule_row
from tidegate.policy.rules import RuleError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.policy.document import Node
    from tidegate.policy.positions import Problems
    from tidegate.policy.reading import Reader
    from tidegate.policy.rows import Row

_TOKEN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ-")
_MOST: Final = 64  # methods or patterns of one rule; each pattern costs every request
_MAX_PATTERN: Final = 1024
_DENY: Final = Verdict.DENY.value
_SOURCE: Final = 7  # of a row
_BOUNDS: Final[dict[str, tuple[int, int]]] = {
    "bytes_up": (1, 1 << 50),
    "connections_per_minute": (1, 1_000_000),
}


def read_limits(read: Reader, node: Node) -> RuleLimits:
    """Return the bounds of a rule (GAT-6)."""
    found: dict[str, int] = {}
    for field, _, value in read.pairs(node, "a rule's 'limits'", _BOUNDS):
        number = read.number(value, f"'{field}'", *_BOUNDS[field])
        if number is not None:
            found[field] = int(number)
    return RuleLimits(found.get("bytes_up"), found.get("connections_per_minute"))


def read_methods(read: Reader, node: Node) -> tuple[str, ...]:
    """Return the methods of a rule."""
    found = []
    for item in _some(read, node, "'methods'", "write '[GET, HEAD]'"):
        method = read.text(item, "an entry of 'methods'")
        if method is None:
            continue
        if not method or not _TOKEN.issuperset(method):
            read.wrong(item, "a method is a word in capitals", method, "write GET, HEAD, POST …; case counts in HTTP")
        elif method in {"CONNECT", "TRACE"}:
            read.wrong(item, "this method never passes", method, "remove it")
        else:
            found.append(method)
    return tuple(dict.fromkeys(found))


def read_paths(read: Reader, node: Node) -> tuple[str, ...]:
    """Return the path patterns of a rule."""
    found = []
    for item in _some(read, node, "'paths'", "write '[\"/repos/acme/**\"]'"):
        pattern = read.text(item, "an entry of 'paths'")
        if pattern is None:
            continue
        what, advice = _fault(pattern)
        if what:
            read.wrong(item, what, pattern, advice)
        else:
            found.append(pattern)
    return tuple(dict.fromkeys(found))


def read_never(read: Reader, node: Node, name: str, layer: Layer) -> tuple[Row, ...]:
    """Return the rows of `inspect: {never: [HOST, …]}`."""
    rows = []
    example = "write 'inspect: {never: [pinned.example.com]}'"
    for _, _, hosts in read.pairs(node, "'inspect'", ("never",), None, example):
        for item in read.items(hosts, "'inspect.never'", example):
            text = read.text(item, "an entry of 'inspect.never'")
            if text is None:
                continue
            source = read.source(item.mark)
            try:
                rows.append(rule_row(text, Verdict.DENY, Phase.RUNTIME, name, source, Origin.WRITTEN, layer))
            except RuleError as error:
                read.wrong(item, error.what, text, f"write {error.advice}")
    return tuple(rows)


def refuse_doubles(problems: Problems, rows: Iterable[Row]) -> None:
    """Note each rule that stands a second time where one of them has methods or paths: one alone would govern."""
    seen: dict[tuple[str, str, str], Row] = {}
    narrowed = set()
    rows = tuple(rows)
    for row in rows:
        limits = row[LIMITS]
        if limits is not None and (limits[2] or limits[3]):
            narrowed.add(row[0])
    for row in rows if narrowed else ():
        if row[0] not in narrowed:
            continue
        # A deny rule denies all, beside whatever else; of the others one alone would govern, also one that asks.
        first = seen.setdefault((row[0], "deny" if row[VERDICT] == _DENY else "", row[PHASE]), row)
        if first is not row:
            _, line, column = row[_SOURCE].rsplit(":", 2)
            what = "one rule governs a host, and this one stands twice with methods or paths"
            advice = f"write all methods and paths into one of them; the first is at {first[_SOURCE]}"
            problems.add(int(line), int(column), what, row[0], advice)


def _some(read: Reader, node: Node, of: str, example: str) -> list[Node]:
    items = read.items(node, of, example)
    if len(items) > _MOST:
        read.wrong(node, f"{of} has more than {_MOST} entries", "", "write wider patterns, or several hosts")
        return []
    if not items and node.kind == "a list":
        read.wrong(node, f"{of} is empty, so no request could pass", "", f"{example}, or leave it out for any")
    return items


def _fault(pattern: str) -> tuple[str, str]:
    if len(pattern) > _MAX_PATTERN:
        return "a pattern is too long", f"write at most {_MAX_PATTERN} characters"
    if pattern[:1] != "/":
        return "a path begins with '/'", f"write '/{pattern.lstrip('*')}'" if pattern else "write '/**' for any"
    if "?" in pattern or "#" in pattern:
        return "a path has no query and no fragment; '?' is no wildcard", "write '*' for part of a segment"
    if not pattern.isascii() or not pattern.isprintable() or " " in pattern:
        return "a path is visible ASCII", "write other characters percent-encoded, as clients send them"
    raw = pattern.encode()
    normal = normal_path(raw)
    if normal is None or any("**" in part and part != "**" for part in pattern.split("/")):
        return "no path in normal form matches this", "write it without '//', dots, '%2f' or '\\\\'; '**' stands alone"
    if "/".join(normal) != pattern:
        return "a pattern is compared in normal form", f"write '{'/'.join(normal)}'"
    return "", ""
