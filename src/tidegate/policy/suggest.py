"""The nearest known word to a mistyped one (POL-2, B14).

The distance is Damerau-Levenshtein in its restricted form (one swap of neighbours is one step), because a
swap is the commonest slip of the hand. Words and their count are bounded by the caller's vocabulary; an
unknown word longer than any known one is cut first, so that the cost is bounded too.
"""

from __future__ import annotations

from collections.abc import Iterable

MAX_STEPS = 3  # farther than this a suggestion misleads more than it helps
_MAX_WORD = 40


def distance(left: str, right: str) -> int:
    """Return how many single-letter edits or neighbour swaps lead from one word to the other."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(right, start=1):
            steps = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                steps = min(steps, earlier[j - 2] + 1)
            row.append(steps)
    return row[-1]


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that was most likely meant, or '' where none is near.

    Case, and the difference between `-`, `_` and a space, do not count. A known word that the given one
    begins or ends with (`allowed`, `runtime_allow`) counts as near.
    """
    plain = _plain(word)
    best, best_steps = "", MAX_STEPS + 1
    for candidate in known:
        target = _plain(candidate)
        steps = distance(plain, target)
        if len(target) > 2 and (plain.startswith(target) or plain.endswith(target)):
            steps = min(steps, 1)
        # Half the letters wrong is another word: `own` is not what `foo` was meant to be.
        if steps < best_steps and steps * 2 <= max(len(plain), len(target)):
            best, best_steps = candidate, steps
    return best


def _plain(word: str) -> str:
    return word[:_MAX_WORD].lower().replace("-", "_").replace(" ", "_")
