"""What leads the log to one sink: reads, sends, tries again, keeps how far it has come (JRN-6).

Rules of the file:

* The position is kept after the receiver confirmed, so a crash in between repeats and never loses. Whoever receives
  tells repetitions by number and hash.
* Nothing waits for a sink: it has a thread and a place in the files of its own. It holds one batch in memory.
* What cannot be sent now is tried again, in pauses that double up to `LONGEST_PAUSE`, or as long as the receiver asks.
* A batch that is refused, or is too large, is halved until one record is left. That one is tried `TRIES` times, then
  set aside in a file and counted. A receiver that refuses `IN_A_ROW` records one after another refuses everything:
  nothing more is set aside until it takes something.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from tidegate.journal.line import timestamp
from tidegate.journal.sinks.keeping import MOST_GAPS
from tidegate.journal.sinks.record import GAP
from tidegate.journal.sinks.sink import LATER, TAKEN, Outcome, attempted
from tidegate.model.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.journal.sinks.keeping import Keeper, Kept
    from tidegate.journal.sinks.record import Record, Wanted
    from tidegate.journal.sinks.sink import Sink
    from tidegate.journal.sinks.tail import Tail

MOST: Final = 500  # records of a batch
BYTES: Final = 512 * 1024  # of a batch, about
TRIES: Final = 3
IN_A_ROW: Final = 20
POLL: Final = 0.5  # seconds between looks at the log when all is sent
FIRST_PAUSE: Final = 1.0  # seconds
LONGEST_PAUSE: Final = 300.0
MARK_EVERY: Final = 100  # lines between two marks
MOST_MARKS: Final = 16
_REST = 0.02  # seconds behind a batch of which nothing was wanted: catching up leaves the processor to the gate
_LEAST_SHARE = 0.5  # of a pause that chance leaves of it


class State(Value):
    """How a sink is doing now. Times are Unix seconds, 0 for never."""

    kept: Kept
    waiting: int = 0  # records that were read and are not confirmed
    error: str = ""
    failing_since: float = 0.0
    sent_at: float = 0.0


class Follower:
    """See the head of the file. `random` gives numbers from 0 to 1; `wall` Unix time in seconds."""

    def __init__(
        self,
        name: str,
        sink: Sink,
        tail: Tail,
        keeper: Keeper,
        kept: Kept,
        *,
        wanted: Wanted,
        wall: Callable[[], float],
        random: Callable[[], float],
        first_pause: float = FIRST_PAUSE,
        said: str = "",
    ) -> None:
        self._sink = sink
        self._tail = tail
        self._keeper = keeper
        self._wanted = wanted
        self._wall = wall
        self._random = random
        self._first_pause = first_pause
        self._stop = threading.Event()
        self._pending: list[Record] = []
        self._most = MOST
        self._tries = 0  # of the first record that waits
        self._failures = 0
        self._in_a_row = 0
        self._unsaved = self._unkept = False
        self.state = State(kept, error=said)
        self._thread = threading.Thread(target=self._run, name=f"sink {name}", daemon=True)

    def start(self) -> None:
        """Follow, on a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """End soon; what is on its way is broken off, and sent again by the next one."""
        self._stop.set()
        self._sink.abort()

    def join(self, seconds: float) -> None:
        """Wait until it has ended, at most so long."""
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._stop.wait(self.step())
            self._save()
        finally:
            self._tail.close()
            self._sink.close()

    def step(self) -> float:
        """Do what is next and return for how many seconds there is nothing to do."""
        if not self._pending:
            try:
                self._pending = self._tail.read(MOST, BYTES, self.state.kept.marks)
                if not self._pending:
                    self._save()
                    self._pending = self._tail.look_for_another(self.state.kept.marks)
            except OSError as error:
                return self._later(Outcome(LATER, f"the log cannot be read: {error.strerror}"))
            if not self._pending:
                return POLL
        upto, batch = self._batch()
        if not batch:
            self._confirm(upto, 0)
            return _REST
        return self._judge(upto, batch, attempted(self._sink, batch))

    def _batch(self) -> tuple[int, list[Record]]:
        """Return up to where what waits is dealt with by sending these records."""
        batch: list[Record] = []
        for place, record in enumerate(self._pending):
            if self._wanted(record):
                if len(batch) >= self._most:
                    return place, batch
                batch.append(record)
        return len(self._pending), batch

    def _judge(self, upto: int, batch: list[Record], outcome: Outcome) -> float:
        if outcome.state == LATER:
            return self._later(outcome)
        refused = outcome.refused if outcome.state == TAKEN else {0: outcome.why}
        if outcome.state != TAKEN and len(batch) > 1:
            self._most = len(batch) // 2
            return 0.0
        sent = len(batch) - outcome.idle
        if refused:
            self._tries += 1
            why = next(iter(refused.values()))
            if self._tries < TRIES:
                return self._later(Outcome(LATER, why))
            if len(refused) == sent and self._in_a_row + len(refused) > IN_A_ROW:
                return self._later(Outcome(LATER, f"it takes nothing: {why}"))
            if not self._aside([(batch[place], why) for place, why in refused.items()]):
                return self._later(Outcome(LATER, "what it refuses cannot be set aside"))
        self._in_a_row = 0 if len(refused) < sent else self._in_a_row + len(refused)
        if outcome.state == TAKEN:
            self._most = min(MOST, self._most * 2)
        self._failures = self._tries = 0
        if outcome.lost:
            why = f"{outcome.lost} of the batch up to here: {outcome.why}"
            if not self._aside([(batch[-1], why)], outcome.lost):
                return self._later(Outcome(LATER, "what it refuses cannot be set aside"))
        self._confirm(upto, sent - len(refused) - outcome.lost)
        self.state = self.state.replace(error="", failing_since=0.0, sent_at=self._wall())
        self._save()
        return 0.0

    def _later(self, outcome: Outcome) -> float:
        pause = min(self._first_pause * (1 << min(self._failures, 20)), LONGEST_PAUSE)
        self._failures += 1
        since = self.state.failing_since or self._wall()
        why = outcome.why or "it does not answer"
        kept = self.state.kept
        if kept.error != why:  # doctor reads it there, beside a server and without one
            kept = kept.replace(error=why)
            self._unsaved = True
        self.state = self.state.replace(kept=kept, waiting=len(self._pending), error=why, failing_since=since)
        self._save()
        pause *= _LEAST_SHARE + (1 - _LEAST_SHARE) * self._random()
        return max(pause, outcome.wait)

    def _aside(self, refused: list[tuple[Record, str]], count: int = 0) -> bool:
        try:
            for record, why in refused:
                self._keeper.set_aside(
                    {
                        "at": timestamp(self._wall()),
                        "seq": record.seq,
                        "hash": record.hash,
                        "type": record.kind,
                        "task": record.task,
                        "why": why,
                    }
                )
        except OSError:
            return False
        kept = self.state.kept
        self.state = self.state.replace(kept=kept.replace(aside=kept.aside + (count or len(refused))))
        return True

    def _confirm(self, upto: int, sent: int) -> None:
        done, self._pending = self._pending[:upto], self._pending[upto:]
        kept = self.state.kept
        for record in done:
            if record.kind == GAP:
                lost = kept.lost + record.seq - record.first + 1
                kept = kept.replace(lost=lost, gaps=(*kept.gaps, (record.first, record.seq))[-MOST_GAPS:])
        last = done[-1]
        marks = tuple(mark for mark in kept.marks if mark[0] < last.seq)
        if last.hash and last.seq - (marks[-1][0] if marks else 0) >= MARK_EVERY:
            marks = (*marks, (last.seq, last.hash))[-MOST_MARKS:]
        error = "" if sent else kept.error
        kept = kept.replace(seq=last.seq, hash=last.hash, sent=kept.sent + sent, marks=marks, error=error)
        self.state = self.state.replace(kept=kept, waiting=len(self._pending))
        self._unsaved = True

    def _save(self) -> None:
        if not self._unsaved:
            return
        try:
            self._keeper.save(self.state.kept)
        except OSError as error:
            # What was sent is sent: it goes on, and would repeat after a crash.
            self._unkept = True
            self.state = self.state.replace(error=f"its position cannot be kept: {error.strerror}")
        else:
            if self._unkept:
                self.state = self.state.replace(error=self.state.kept.error)
            self._unsaved = self._unkept = False
