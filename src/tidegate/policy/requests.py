"""What a rule says beside its host: `limits`, `methods` and `paths`; and whom inspection leaves out (INS-6, INS-9).

Rules of the file: a pattern that no path in normal form could match is refused when it is loaded, with what to write
instead; a rule that would match nothing looks like a narrow allow and is a typing error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidegate.model.rule import Layer, Origin, RuleLimits
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.git import ANY, FORGES, git_alternatives
from tidegate.policy.nodes import Mapping, Scalar
from tidegate.policy.paths import normal_path
from tidegate.policy.rows import LIMITS, PHASE, VERDICT, rule_row
from tidegate.policy.rules import RuleError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.model.rule import Alternative
    from tidegate.policy.nodes import Node
    from tidegate.policy.positions import Problems
    from tidegate.policy.reading import Reader
    from tidegate.policy.rows import Row

_TOKEN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ-")
_MOST: Final = 64  # methods or patterns of one rule; each pattern costs every request
_MAX_PATTERN: Final = 1024
_DENY: Final = Verdict.DENY.value
_SOURCE: Final = 7  # of a row
_NO_REPOSITORY: Final = ("a repository here is its host and path", "write 'github.com/acme/app'")
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


def read_git(read: Reader, node: Node) -> tuple[Alternative, ...]:
    """Return what `git` of a rule lets pass."""
    example = "write 'read', 'write' or '{read: [\"acme/**\"], write: [acme/app]}'"
    if isinstance(node, Scalar):
        word = read.word(node, "'git'", ("read", "write"), {"push": "write 'write'", "fetch": "write 'read'"})
        return git_alternatives((ANY,), (ANY,) if word == "write" else ())
    found: dict[str, list[str]] = {"read": [], "write": []}
    for key, _, items in read.pairs(node, "'git'", found, None, example):
        for item in _some(read, items, f"'git.{key}'", "write '[\"acme/**\"]'"):
            text = read.text(item, f"an entry of 'git.{key}'")
            if text is None:
                continue
            if text[:1] == "/" or "://" in text:
                what, advice = "a repository is its path on its host", "write 'acme/app'"
            else:
                what, advice = _fault("/" + text)
            if what:
                read.wrong(item, what, text, advice)
            else:
                found[key].append(text)
    if isinstance(node, Mapping) and not node.pairs:
        read.wrong(node, "'git' names no repository", "", example)
    return git_alternatives(found["read"], found["write"])


def read_held(read: Reader, node: Node, name: str, layer: Layer) -> tuple[Row, ...]:
    """Return the rows of `git` of a whole policy: what its hosts are held to, whatever rule lets them through."""
    example = "write 'read', 'write' or '{read: [\"github.com/acme/**\"], write: [github.com/acme/app]}'"
    limits: list[tuple[str, str, tuple[Alternative, ...]]] = []
    source = read.source(node.mark)
    if isinstance(node, Scalar):
        if read.word(node, "'git'", ("read", "write"), {"push": "write 'write'", "fetch": "write 'read'"}) == "read":
            limits = [(host, source, git_alternatives((ANY,), ())) for host in FORGES]
    else:
        hosts: dict[str, dict[str, list[str]]] = {}
        for key, _, items in read.pairs(node, "'git'", ("read", "write"), None, example):
            for item in _some(read, items, f"'git.{key}'", "write '[\"github.com/acme/**\"]'"):
                text = read.text(item, f"an entry of 'git.{key}'")
                if text is None:
                    continue
                host, _, repository = text.partition("/")
                what, advice = _fault("/" + repository) if repository and "://" not in text else _NO_REPOSITORY
                if not repository and "." in host:
                    advice = f"write '{host}/**' for all of its repositories"
                try:
                    row = rule_row(host, Verdict.ALLOW, Phase.RUNTIME, name, source, Origin.WRITTEN, layer)
                except RuleError as error:
                    what, advice = what or error.what, advice or f"write {error.advice}"
                if what:
                    read.wrong(item, what, text, advice)
                else:
                    hosts.setdefault(row[0], {"read": [], "write": []})[key].append(repository)
        limits = [(host, source, git_alternatives(one["read"], one["write"])) for host, one in hosts.items()]
        if isinstance(node, Mapping) and not node.pairs:
            read.wrong(node, "'git' names no repository", "", example)
    return tuple(
        rule_row(host, Verdict.ALLOW, phase, name, at, Origin.WRITTEN, layer, RuleLimits(requests=(alternatives,)))
        for host, at, alternatives in limits
        for phase in Phase
    )


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
    """Note each rule that stands a second time where one of them would leave nothing of what the other says.

    Methods and paths of several add up; one without any beside them lets all pass, and one that asks governs alone.
    """
    rows = tuple(rows)
    narrowed = {row[0] for row in rows if _is_narrowed(row)}
    seen: dict[tuple[str, str], Row] = {}
    for row in rows if narrowed else ():
        if row[0] not in narrowed or row[VERDICT] == _DENY:  # a deny rule denies all, beside whatever else
            continue
        first = seen.setdefault((row[0], row[PHASE]), row)
        if first is row:
            continue
        _, line, column = row[_SOURCE].rsplit(":", 2)
        if first[VERDICT] != row[VERDICT]:
            what = "one of 'allow' and 'ask' governs a host, and this one stands in both, with methods or paths"
            advice = f"keep one of them; the first is at {first[_SOURCE]}"
            problems.add(int(line), int(column), what, row[0], advice)
        elif _is_narrowed(first) != _is_narrowed(row):
            what = "this one stands twice, and what names no methods or paths lets all of it pass"
            advice = f"keep one of them; the first is at {first[_SOURCE]}"
            problems.add(int(line), int(column), what, row[0], advice)


def _is_narrowed(row: Row) -> bool:
    limits = row[LIMITS]
    return limits is not None and bool(limits[2])


def _some(read: Reader, node: Node, of: str, example: str) -> list[Node]:
    items = read.items(node, of, example)
    if len(items) > _MOST:
        read.wrong(node, f"{of} has more than {_MOST} entries", "", "write wider patterns, or several hosts")
        return []
    if not items and node.kind == "a list":
        advice = f"{example}, or leave it out" + ("" if of.startswith("'git.") else " for any")
        read.wrong(node, f"{of} is empty, so no request could pass", "", advice)
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
        advice = "write it without '//', '..', '%2f' or a backslash; '**' stands alone"
        return "no path in normal form matches this", advice
    if "/".join(normal) != pattern:
        return "a pattern is compared in normal form", f"write '{'/'.join(normal)}'"
    return "", ""
