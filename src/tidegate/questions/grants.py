"""What answers mean for the rest of their task: grants and refusals by task, phase, host and port (ASK-2, ASK-7).

Rules of the file:

* A grant speaks for exactly one task, phase, host and port: a person who allowed a host for the command did not allow
  it for the set-up. It is never a wildcard.
* `until` is Unix time, because a person named it; the minute of a next try is monotonic.
* A full table forgets no refusal: what does not fit is asked again.
"""

from __future__ import annotations

from tidegate.model.question import NO_TERMS, Answer, Terms
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    from tidegate.model.question import GrantRecord, Question
    from tidegate.model.verdict import Phase
    from tidegate.questions.values import Moment

    Key: TypeAlias = tuple[str, Phase, str, int]  # task, phase, host, port

MOST = 4096  # of one task
NEXT_TRY = 60.0  # seconds in which a client that gave up finds the answer (ASK-2)
DENIED = 120.0  # seconds in which a deny holds for whoever tries again: npm does after 10 and after 70


class Held(Value):
    """One answer that goes on to count: `kind` is TASK, REMEMBER, DENY_TASK, or ALLOW with terms or for one try."""

    question: int
    kind: Answer
    by: str
    terms: Terms = NO_TERMS
    tries: int | None = None  # connections it is still good for
    expires: float | None = None  # monotonic: the next try of a client that gave up

    def over(self, now: float, wall: float) -> bool:
        """Whether it counts no more."""
        return (
            (self.expires is not None and now >= self.expires)
            or (self.terms.until is not None and wall >= self.terms.until)
            or (self.tries is not None and self.tries <= 0)
        )


class Bound(Value):
    """What ends connections that an answer let through: a time, or bytes (those that are `left`)."""

    key: Key
    until: float | None
    left: int | None


class Grants:
    """All grants, by key."""

    def __init__(self) -> None:
        self._tasks: dict[str, dict[Key, Held]] = {}
        self._bounds: dict[int, Bound] = {}  # by question

    def keep(self, key: Key, question: Question, used: int, at: Moment, *, gave_up: bool) -> None:
        """Take up what a saved answer means for later; `used` connections of it are on their way already.

        An allow that was for once is kept for the next try of a client that gave up, if one did. A deny is kept for
        all tries of two minutes: a client that tries again by itself is not asked about again and again (B143).
        """
        answer, terms = question.answer, question.terms
        assert answer is not None, "what was saved is an answer"
        if answer is Answer.DENY:
            self.put(key, Held(question.id, answer, question.by, terms, None, at.now + DENIED))
            return
        if answer is Answer.ALLOW and terms == NO_TERMS:
            if gave_up:
                self.put(key, Held(question.id, answer, question.by, terms, 1, at.now + NEXT_TRY))
            return
        tries = None if terms.connections is None else terms.connections - used
        self.put(key, Held(question.id, answer, question.by, terms, tries))
        if terms.until is not None or terms.bytes is not None:
            self._bounds[question.id] = Bound(key, terms.until, terms.bytes)

    def restore(self, task: str, grants: Iterable[GrantRecord]) -> None:
        """Take up what a store has of a task's past, but for what counts: how much of that was used is not known."""
        for grant in grants:
            if grant.terms.connections is None and grant.terms.bytes is None:
                key = (task, grant.phase, grant.host, grant.port)
                self.put(key, Held(grant.question, grant.kind, grant.by, grant.terms))
                if grant.terms.until is not None:
                    self._bounds[grant.question] = Bound(key, grant.terms.until, None)

    def put(self, key: Key, held: Held) -> None:
        """Let the latest answer count instead of an earlier one."""
        of_task = self._tasks.setdefault(key[0], {})
        if key in of_task or len(of_task) < MOST:
            of_task[key] = held

    def find(self, key: Key, now: float, wall: float) -> Held | None:
        """Return what counts for this destination now."""
        held = self._tasks.get(key[0], {}).get(key)
        return None if held is None or held.over(now, wall) else held

    def use(self, key: Key, count: int = 1) -> None:
        """Count connections that were let through."""
        of_task = self._tasks.get(key[0], {})
        held = of_task.get(key)
        if held is not None and held.tries is not None:
            of_task[key] = held.replace(tries=held.tries - count)

    def drop(self, key: Key, question: int) -> bool:
        """Forget the grant that this question led to; False where another one counts by now."""
        of_task = self._tasks.get(key[0], {})
        held = of_task.get(key)
        if held is None or held.question != question:
            return False
        del of_task[key]
        return True

    def drop_task(self, task: str) -> None:
        """Forget all of a task."""
        self._tasks.pop(task, None)
        for number in [number for number, bound in self._bounds.items() if bound.key[0] == task]:
            del self._bounds[number]

    def clear(self) -> None:
        """Forget everything."""
        self._tasks.clear()
        self._bounds.clear()

    def every(self) -> Iterator[tuple[Key, Held]]:
        """Yield a copy of what is held."""
        return iter([pair for of_task in self._tasks.values() for pair in of_task.items()])

    def spend(self, number: int, count: int) -> tuple[bool, Key | None]:
        """Count bytes under the answer to a question; whether it is good for them, and whose connections end if not."""
        bound = self._bounds.get(number)
        if bound is None:
            return False, None
        if bound.left is None or bound.left >= count:
            if bound.left is not None:
                self._bounds[number] = bound.replace(left=bound.left - count)
            return True, None
        return False, self._over(number, bound)

    def sweep(self, at: Moment) -> list[Key]:
        """Forget what counts no more; return whose open connections end with it."""
        ended = [
            self._over(number, bound)
            for number, bound in list(self._bounds.items())
            if bound.until is not None and at.wall >= bound.until
        ]
        for key, held in self.every():
            if held.over(at.now, at.wall):
                del self._tasks[key[0]][key]
        return ended

    def seconds_left(self, wall: float) -> list[float]:
        """Return in how many seconds the grants end that end at a time."""
        return [bound.until - wall for bound in self._bounds.values() if bound.until is not None]

    def _over(self, number: int, bound: Bound) -> Key:
        del self._bounds[number]
        self.drop(bound.key, number)
        return bound.key
