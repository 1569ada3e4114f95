"""Landlock gives a folder with all below it and takes nothing back: what is kept from a task is gone around (HLD-15).

What is wanted is a level for some paths, which holds below each of them up to the next. A folder whose parts all have
at least its own level is given whole. In another one only what its parts have in common is given, and each name that
is in it is given by itself: it is *carved*. A name that comes to be in a carved folder later has only what the folder
has; what else it is to have, file_calls.py gives.

Pure: what is in a folder comes as an argument.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

NOTHING, READ, WRITE = 0, 1, 2


class Levels:
    """What may be done where: each path's level holds for all below it, up to the next path that has one."""

    def __init__(self, said: Mapping[str, int]) -> None:
        self.said = {"/": NOTHING} | dict(said)
        inner: dict[str, int] = {}  # the lowest level below each folder that is above a said path
        for path, level in self.said.items():
            above = path
            while above != "/":
                above = above[: above.rfind("/")] or "/"
                inner[above] = min(level, inner.get(above, level))
        self._inner = inner

    def at(self, path: str) -> int:
        """The level of a path (absolute, normal)."""
        while True:
            level = self.said.get(path)
            if level is not None:
                return level
            path = path[: path.rfind("/")] or "/"

    def lowest(self, path: str) -> int:
        """The lowest level at or below a path: what may be done with it as a whole, such as giving it another name."""
        level = self.at(path)
        return min(level, self._inner.get(path, level))

    def holds(self, path: str) -> bool:
        """Whether a path that has a level of its own lies below."""
        return path in self._inner

    def rules(self, names_in: Callable[[str], Iterable[str]]) -> list[tuple[str, int]]:
        """What to give, by path. `names_in` are the paths of what is in a folder; none for what is none."""
        found: list[tuple[str, int]] = []
        waiting = [("/", NOTHING)]
        while waiting:
            path, given = waiting.pop()
            level = self.at(path)
            lowest = self.lowest(path)
            if lowest > given:
                found.append((path, lowest))
                given = lowest
            if not self.holds(path):
                continue
            if level > given:
                waiting += [(name, given) for name in names_in(path)]
            else:  # nothing of its own is missing, but of some of its parts
                above = path.rstrip("/") + "/"
                parts = {
                    above + said[len(above) :].partition("/")[0]
                    for said in self.said
                    if said.startswith(above) and said != "/"
                }
                waiting += [(part, given) for part in parts]
        return found
