"""Rules that are equal in all but their limits count together (POL-5, INS-6).

What one of them lets pass, passes: their methods and paths are alternatives. Of their other bounds the strictest holds.
"""

from __future__ import annotations

from tidegate.model.rule import PLAIN, REGISTRY
from tidegate.policy.rows import LIMITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidegate.model.rule import Alternative, Requests, Union
    from tidegate.policy.rows import Row


def together(rows: Sequence[Row]) -> Row:
    """Return the last of these rows with the limits that all of them make."""
    found = [row[LIMITS] or (None, None, ()) for row in rows]
    bytes_up = _least(one[0] for one in found)
    connections = _least(one[1] for one in found)
    return (*rows[-1][:LIMITS], (bytes_up, connections, either([one[2] for one in found])))


def either(several: Sequence[Requests]) -> Requests:
    """Return what at least one of these lets pass; () is all."""
    if not all(several):
        return ()
    said = tuple(dict.fromkeys(several))
    found = said[0]
    for other in said[1:]:
        found = tuple(tuple(dict.fromkeys(one + two)) for one in found for two in other)
    return found


def more_requests(old: Requests, new: Requests) -> tuple[str, ...]:
    """Return what of requests the new ones let pass beyond the old, in words; () where that is nothing.

    Patterns are compared as texts: where one covers another that is written otherwise, more is said than there is.
    """
    kept = [union for union in old if not any(_inside(one, union) for one in new)]
    found: dict[str, None] = {}
    for union in kept:
        if len(union) == 1 and all(len(one) == 1 for one in new) and len(new) < 2:
            methods, paths = (new[0][0][1], new[0][0][2]) if new else ((), ())
            if union[0][1] and not (methods and set(methods) <= set(union[0][1])):
                found["more methods"] = None
            if union[0][2] and not (paths and set(paths) <= set(union[0][2])):
                found["more paths"] = None
        else:
            found["more requests"] = None
    return tuple(found) or (("more requests",) if kept else ())


def _inside(one: Union, other: Union) -> bool:
    return all(any(_covers(wide, narrow) for wide in other) for narrow in one)


def _covers(wide: Alternative, narrow: Alternative) -> bool:
    # What methods let pass has WebSockets in it, what only reads of a registry has none (alternatives.py).
    same = wide[0] == narrow[0] or (wide[0], narrow[0]) == (PLAIN, REGISTRY)
    return same and all(not wide[at] or (narrow[at] and set(narrow[at]) <= set(wide[at])) for at in (1, 2))


def _least(numbers: Iterable[int | None]) -> int | None:
    return min((number for number in numbers if number is not None), default=None)
