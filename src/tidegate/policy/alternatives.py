"""Which requests a rule lets through, compiled: the same judgement in clear text and inside TLS (INS-6, INS-7).

A rule's `requests` (model.rule) are unions of alternatives. All unions have to let a request pass, each by one of its
alternatives.

Rules of the file:

* What rules say is compiled once for each host that is met: the patterns of all alternatives with the same methods are
  one tree of segments, so that a request costs its own length and not the number of rules.
* In a pattern `*` is one segment or part of one, `**` any number of segments; nothing else is special, and case counts.
  Paths are compared in their normal form (paths.py), and one that has none matches no pattern.
* A request is judged as each method and target that a server may take it for: a header or parameter by which some
  servers take another method or target counts as that one too, and all of them have to pass.
* A WebSocket counts as a GET where a rule names methods and paths. What only reads of a registry, and git, is none:
  behind it nothing is read, and it would carry anything. Nor is a GET or HEAD with a body, which no tool sends
  there: to a server that looks for none, the body is its next request.
* Why one does not pass is part of the answer: nobody else invents a reason.
"""

from __future__ import annotations

from tidegate.model.reason import Reason
from tidegate.model.rule import GIT, PLAIN, REGISTRY
from tidegate.policy.git import PUSH, is_api, is_push, named
from tidegate.policy.paths import TARGETS, methods_in_query, normal_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidegate.model.decision import Decision
    from tidegate.model.rule import Alternative, Requests

_PUSHES = frozenset(("GET", "HEAD", "POST"))
_READS = frozenset(("GET", "HEAD"))
_MOST = 1024  # compiled requests that are kept: a task meets few rules


def narrows(decision: Decision) -> bool:
    """Whether requests under this decision have to be judged one by one."""
    rule = decision.rule
    return bool(decision.bounds) or (rule is not None and bool(rule.limits.requests))


def why_refused(
    decision: Decision,
    method: str,
    target: bytes,
    overrides: Iterable[tuple[bytes, bytes]] = (),
    *,
    socket: bool = False,
    body: bool = False,
) -> Reason | None:
    """Return why a request with this origin-form target does not pass under the decision; None where it does.

    `overrides` are those of its headers that are named in paths.OVERRIDES, the names in lower case. `socket` says that
    it offers to become a WebSocket; its method is GET then, in HTTP/2 too. `body` says that one may follow.
    """
    if not narrows(decision):
        return None
    methods = {method: None}
    targets = {target: None}
    for name, value in overrides:
        if name in TARGETS:
            targets[value] = None
        else:
            methods[value.strip().upper().decode("latin-1")] = None
    for to in targets:
        if b"?" in to:
            methods.update(dict.fromkeys(methods_in_query(to)))
    for requests in (decision.rule.limits.requests if decision.rule is not None else (), decision.bounds):
        for union in _compiled(requests) if requests else ():
            for said in methods:
                for to in targets:
                    reason = union.why_refused(said, to, bare=not (socket or (body and said in _READS)))
                    if reason is not None:
                        return reason
    return None


def posts_only(decision: Decision, target: bytes) -> bool:
    """Whether a POST to this target, which passes, may not be taken for every method that a form may ask for.

    What registries and git take is not: no framework of theirs reads such a field.
    """
    return narrows(decision) and any(
        why_refused(decision, method, target) is Reason.METHOD_NOT_ALLOWED for method in ("PUT", "PATCH", "DELETE")
    )


def not_read(decision: Decision) -> Reason:
    """Return why nothing passes where requests have to be judged and cannot be read."""
    rule = decision.rule
    unions = (*(rule.limits.requests if rule is not None else ()), *decision.bounds)
    kinds = {one[0] for union in unions for one in union}
    if kinds == {REGISTRY}:
        return Reason.REGISTRY_NOT_READ
    return Reason.GIT_READ_ONLY if kinds == {GIT} else Reason.METHOD_NOT_ALLOWED


def path_matcher(*patterns: str) -> Callable[[list[str]], bool]:
    """Return what says whether a path in normal form (paths.normal_path) matches one of these patterns."""
    tree = _Node()
    for pattern in patterns:
        tree.add(pattern)
    return tree.matches


class _Node:
    """One place in a tree of patterns. `loops` is set behind a `**`: any segment stays there."""

    __slots__ = ("deep", "end", "globs", "loops", "next")

    def __init__(self, *, loops: bool = False) -> None:
        self.next: dict[str, _Node] = {}
        self.globs: dict[str, _Node] = {}
        self.deep: _Node | None = None
        self.loops = loops
        self.end = False

    def add(self, pattern: str) -> None:
        """Take one pattern in, this node being the root."""
        node = self
        for part in pattern.split("/"):
            if part == "**":
                node.deep = node.deep or (node if node.loops else _Node(loops=True))
                node = node.deep
            else:
                node = (node.globs if "*" in part else node.next).setdefault(part, _Node())
        node.end = True

    def matches(self, path: list[str]) -> bool:
        """Whether some pattern of the tree matches; the cost is the path's length times the patterns' at most."""
        now = _with_deep({self: None})
        for segment in path:
            after: dict[_Node, None] = {}
            for node in now:
                if node.loops:
                    if node.end:
                        return True  # whatever follows
                    after[node] = None
                found = node.next.get(segment)
                if found is not None:
                    after[found] = None
                for pattern, child in node.globs.items():
                    if _fits(pattern, segment):
                        after[child] = None
            if not after:
                return False
            now = _with_deep(after)
        return any(node.end for node in now)


def _with_deep(nodes: dict[_Node, None]) -> dict[_Node, None]:
    for node in tuple(nodes):
        deep = node.deep
        if deep is not None:
            nodes[deep] = None  # `**` may be no segment at all; behind it stands none of its kind
    return nodes


def _fits(pattern: str, segment: str) -> bool:
    parts = pattern.split("*")
    if not segment.startswith(parts[0]):
        return False
    at = len(parts[0])
    for part in parts[1:-1]:
        found = segment.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    last = parts[-1]
    return len(segment) - at >= len(last) and segment.endswith(last)


class _Table:
    """Alternatives of one sort: by method, any path or a tree of patterns. The method '' stands for all."""

    __slots__ = ("_anywhere", "_trees")

    def __init__(self, alternatives: Iterable[Alternative]) -> None:
        self._anywhere: set[str] = set()
        self._trees: dict[str, _Node] = {}
        for _, methods, paths in alternatives:
            for method in methods or ("",):
                if not paths:
                    self._anywhere.add(method)
                for pattern in paths:
                    self._trees.setdefault(method, _Node()).add(pattern)

    def anywhere(self, method: str) -> bool:
        """Whether this method passes on every path, also on one that has no normal form."""
        return method in self._anywhere or "" in self._anywhere

    def passes(self, method: str, path: list[str]) -> bool:
        """Whether a request passes."""
        return self.anywhere(method) or any(
            tree is not None and tree.matches(path) for tree in (self._trees.get(method), self._trees.get(""))
        )


class _Union:
    """One union, compiled."""

    __slots__ = ("_git", "_named", "_plain", "_reason", "_written")

    def __init__(self, alternatives: tuple[Alternative, ...]) -> None:
        self._plain = _Table(one for one in alternatives if one[0] != GIT)
        self._written = _Table(one for one in alternatives if one[0] == PLAIN)
        git = [one for one in alternatives if one[0] == GIT]
        self._git = _Table(git) if git else None
        self._named = _Table(named(git))
        registry = all(one[0] == REGISTRY for one in alternatives)
        self._reason = Reason.REGISTRY_READ_ONLY if registry else Reason.METHOD_NOT_ALLOWED

    def why_refused(self, method: str, target: bytes, *, bare: bool) -> Reason | None:
        table = self._plain if bare else self._written
        if table.anywhere(method):
            return None
        path = normal_path(target)
        if path is None:
            return self._reason
        if table.passes(method, path):
            # A mirror may be a forge, whose API writes a file of the caller's naming, an audit's path among others.
            forged = self._reason is Reason.REGISTRY_READ_ONLY and method not in _READS and "contents" in path
            return self._reason if forged else None
        if self._git is None or not bare:
            return self._reason
        push = is_push(path, target.partition(b"?")[2])
        asked = PUSH if push and method in _PUSHES else method
        if self._git.passes(asked, path) and (asked in _READS or not is_api(path) or self._named.passes(asked, path)):
            return None
        return Reason.GIT_READ_ONLY if push else self._reason


_known: dict[int, tuple[Requests, tuple[_Union, ...]]] = {}


def _compiled(requests: Requests) -> tuple[_Union, ...]:
    # By identity: to hash what many rules say would cost every request. What is kept keeps its number to itself.
    found = _known.get(id(requests))
    if found is not None and found[0] is requests:
        return found[1]
    unions = tuple(map(_Union, requests))
    if len(_known) >= _MOST:
        _known.clear()
    _known[id(requests)] = requests, unions
    return unions
