"""What tasks of this machine's own network tried around their gates: each attempt is its user's task's (JRN-3).

    around = Around(gate); around.read_nflog(fd)          once, or read_kernel_log(fd, prefix) where there is no nflog
    around.seat(uid, task); ...; around.leave(uid)        as long as the user is the task's

The rules that turn away are the hold's; their log is one for all tasks. Whose an attempt was is the kernel's word: a
task can log nothing of its own there, and nothing in another's name.

Rules of the file: the same task and address is told of once in five seconds, with a count, kinds bounded (bursts.py);
look-ups once for each task, as `DNS lookups (port 53)`, since where nothing captures them every program makes them at
every turn. Of a user without a seat nothing is told. On the gate's thread only.
"""

from __future__ import annotations

from tidegate.gate.direct import DNS, DirectAttempts
from tidegate.gate.log_reader import LogReader
from tidegate.wire import kernel_log, nflog
from tidegate.wire.attempt import PORTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.gate import Gate
    from tidegate.gate.task import GateTask
    from tidegate.wire.attempt import Attempt

PREFIX = "tidegate "
"""What the rules put before each line."""


class Around:
    """See the head of the file."""

    def __init__(self, gate: Gate, prefix: str = PREFIX) -> None:
        self._gate = gate
        self._prefix = prefix
        self._seats: dict[int, tuple[GateTask, DirectAttempts]] = {}
        self._looked_up: set[str] = set()  # tasks whose look-ups were told of
        self.reader: LogReader | None = None
        self.unclaimed = 0  # attempts of users without a task

    @property
    def reads(self) -> bool:
        """Whether there is a log that it hears from."""
        return self.reader is not None and self.reader.is_open

    def read_nflog(self, fd: int) -> None:
        """Read a socket that is bound to the rules' group, and own it from now on."""
        self._read(LogReader(self._gate, fd, nflog.attempts, self._take_from_nflog))

    def read_kernel_log(self, fd: int) -> None:
        """Read /dev/kmsg from where it stands, and own it from now on."""
        prefix = self._prefix.encode()

        def parse(record: bytes) -> tuple[Attempt, ...]:
            found = kernel_log.attempt(record, prefix)
            return () if found is None else (found,)

        self._read(LogReader(self._gate, fd, parse, self.take))

    def _read(self, reader: LogReader) -> None:
        if self.reader is not None:
            self.reader.close()
        self.reader = reader

    def seat(self, uid: int, task: GateTask) -> None:
        """What this user tries is the task's from now on.

        Raises:
            ValueError: when the user is a task's already.
        """
        if uid in self._seats:
            raise ValueError(f"uid {uid} cannot be one more task's")
        self._seats[uid] = (task, DirectAttempts(self._gate, task))

    def leave(self, uid: int) -> None:
        """Take what was logged of this user still, write its counts, and forget it. Later calls do nothing."""
        if self.reader is not None:
            self.reader.drain()
        task, attempts = self._seats.pop(uid, (None, None))
        if task is None or attempts is None:
            return
        attempts.close()
        if all(other.id != task.id for other, _ in self._seats.values()):
            self._looked_up.discard(task.id)

    def _take_from_nflog(self, attempt: Attempt) -> None:
        if attempt.prefix == self._prefix:  # another rule may log to the group, too
            self.take(attempt)

    def take(self, attempt: Attempt) -> None:
        """Take one attempt."""
        task, attempts = self._seats.get(attempt.uid, (None, None))
        if task is None or attempts is None:
            self.unclaimed += 1
        elif attempt.port == DNS and attempt.protocol in PORTS:
            if task.id not in self._looked_up:
                self._looked_up.add(task.id)
                attempts.record_dns()
        else:
            attempts.record(attempt.protocol, attempt.address, attempt.port)

    def close(self) -> None:
        """Read what is there, write the counts that wait, and give the log back."""
        if self.reader is not None:
            self.reader.drain()
            self.reader.close()
        for uid in list(self._seats):
            self.leave(uid)
