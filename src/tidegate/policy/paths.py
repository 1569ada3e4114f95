"""Whether a rule's methods and paths let one request through (INS-6): the same judgement in clear text and inside TLS.

Rules of the file:

* A path is judged in its normal form: percent-encodings of letters, digits, `-`, `_` and `~` count as these (RFC 3986
  section 6.2.2.2). What two servers could read differently matches no pattern: dot segments, also with parameters or
  encoded, empty segments, backslashes, and encodings of slash, backslash, percent, NUL, or of bytes that only an
  overlong UTF-8 sequence begins with. It is refused, never repaired.
* In a pattern `*` is one segment or part of one, `**` any number of segments; nothing else is special, and case counts.
  The query is not part of the path.
* A header by which some servers take another method than the request line's counts as that method.

Matching costs a path's length times a pattern's at most: a task chooses the paths.
"""

from __future__ import annotations

from tidegate.model.rule import NO_LIMITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.model.rule import Rule

# No encoded dot, slash, backslash, percent or NUL; no byte that begins an overlong sequence (RFC 3629 section 3).
_AMBIGUOUS = (b"//", b"\\", b"%2e", b"%2f", b"%5c", b"%00", b"%25", b"%c0", b"%c1", b"\xc0", b"\xc1")
_DOTS = frozenset((b".", b".."))
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~")
_HEX = frozenset(b"0123456789abcdefABCDEF")
OVERRIDES = frozenset((b"x-http-method-override", b"x-method-override", b"x-http-method"))
"""Headers by which frameworks let a request say another method."""


def request_allowed(rule: Rule | None, method: str, target: bytes, overrides: Iterable[bytes] = ()) -> bool:
    """Whether the governing rule lets a request with this origin-form target through.

    `overrides` are the values of its headers named in OVERRIDES.
    """
    if rule is None or rule.limits is NO_LIMITS:
        return True
    limits = rule.limits
    if limits.methods:
        if method not in limits.methods:
            return False
        for value in overrides:
            if value.strip().upper().decode("latin-1") not in limits.methods:
                return False
    if not limits.paths:
        return True
    path = normal_path(target)
    return path is not None and any(_matches(pattern.split("/"), path) for pattern in limits.paths)


def normal_path(target: bytes) -> list[str] | None:
    """Return the segments of a target's path in normal form, the first one empty; None where it is ambiguous."""
    path = target.partition(b"?")[0]
    lower = path.lower()
    if path[:1] != b"/" or any(sign in lower for sign in _AMBIGUOUS):
        return None
    if b"%" in path:
        decoded = _decoded(path)
        if decoded is None:
            return None
        path = decoded
    segments = path.split(b"/")
    if any(segment.partition(b";")[0] in _DOTS or b"%3b" in segment.lower() for segment in segments):
        return None  # `..;x` is a dot segment to servers that cut parameters off first
    return [segment.decode("latin-1") for segment in segments]


def _decoded(path: bytes) -> bytes | None:
    # Encodings of unreserved bytes as these bytes, the others with capital digits; None where one is malformed.
    first, *rest = path.split(b"%")
    parts = [first]
    for part in rest:
        digits = part[:2]
        if len(digits) < 2 or not _HEX.issuperset(digits):
            return None
        byte = int(digits, 16)
        parts.append((bytes((byte,)) if byte in _PLAIN else b"%" + digits.upper()) + part[2:])
    return b"".join(parts)


def _matches(pattern: list[str], path: list[str]) -> bool:
    # Both begin with '' (what stands before the first slash). Where a segment does not fit, only the last `**` takes
    # one more: those before it could do no better.
    at = here = 0
    back = mark = -1
    while here < len(path):
        if at < len(pattern) and pattern[at] == "**":
            back, mark = at, here
            at += 1
        elif at < len(pattern) and _fits(pattern[at], path[here]):
            at += 1
            here += 1
        elif back >= 0:
            mark += 1
            at, here = back + 1, mark
        else:
            return False
    return all(part == "**" for part in pattern[at:])


def _fits(pattern: str, segment: str) -> bool:
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
