"""Rules with methods and paths, on plain requests (INS-6). Inside TLS they need inspection; tunnels are refused.

Rules of the file: a path that two servers could read differently (dot segments, encoded slashes or dots, empty
segments, backslashes) matches no pattern that has one. `*` is one segment or part of it, `**` any number of them.
"""

from __future__ import annotations

from tidegate.model.rule import NO_LIMITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.model.rule import Rule

_AMBIGUOUS = (b"//", b"\\", b"%2e", b"%2f", b"%5c", b"%00", b"%25", b"/./", b"/../")


def path_allowed(rule: Rule | None, method: str, target: bytes) -> bool:
    """Whether the governing rule's methods and paths let a request with this origin-form target through."""
    if rule is None or rule.limits is NO_LIMITS:
        return True
    limits = rule.limits
    if limits.methods and method not in limits.methods:
        return False
    if not limits.paths:
        return True
    path = target.partition(b"?")[0]
    lower = path.lower() + (b"/" if path.endswith((b"/.", b"/..")) else b"")
    if any(sign in lower for sign in _AMBIGUOUS):
        return False
    text = path.decode("latin-1")
    return any(_matches(pattern.split("/"), text.split("/")) for pattern in limits.paths)


def _matches(pattern: list[str], path: list[str]) -> bool:
    # Both begin with '' (what stands before the first slash). Patterns are short and the operator's.
    if not pattern:
        return not path
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        return any(_matches(rest, path[index:]) for index in range(len(path) + 1))
    return bool(path) and _segment(first, path[0]) and _matches(rest, path[1:])


def _segment(pattern: str, segment: str) -> bool:
    parts = pattern.split("*")
    if len(parts) == 1:
        return pattern == segment
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
