"""What is kept, and the interface that every store has (SRV-4). tests/state/conformance.py is what it must do.

Rules of the file:

* Times are Unix seconds, hosts are canonical (A-labels), folders are FolderKeys and match by all three parts (ASK-8).
* A method that returns has written, and what it wrote outlives a power cut where its text says so.
* Any number of threads and processes may use one store at once; each method is one transaction.
* Every method raises NotSavedError where the disk or the file does not do its part, and then nothing has changed.
"""

from __future__ import annotations

from tidegate.model.question import Answer, AnswerRecord, FolderKey, GrantRecord, Terms
from tidegate.model.value import Value
from tidegate.model.verdict import Phase
from tidegate.state.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any, Protocol
else:
    Protocol = object


class TaskRecord(Value):
    """One task.

    `policy` is its frozen snapshot as JSON, `operator` what the operator changed since, likewise; `owner_pid` is the
    process it ends with, 0 without one. `connections` and `refused` are counted when it ends.
    """

    id: str
    folder: FolderKey
    created_at: float
    policy: bytes
    name: str = ""
    command: tuple[str, ...] = ()
    phase: Phase = Phase.RUNTIME
    wait_seconds: float = 900
    hold: str = ""
    network: str = ""
    by: str = ""
    owner_pid: int = 0
    ended_at: float | None = None
    outcome: str = ""
    operator: bytes = b""
    connections: int = 0
    refused: int = 0


class TaskEnd(Value):
    """How a task ended; `at` is Unix time."""

    id: str
    at: float
    outcome: str
    connections: int = 0
    refused: int = 0


class UidLease(Value):
    """A user of the hold `uid` and the task that has it, or had it until `released_at`."""

    uid: int
    task: str
    taken_at: float
    released_at: float | None = None


class RuleRecord(Value):
    """A remembered host: exactly this host and port, in this folder and phase. `question` is where it is from."""

    id: int
    folder: FolderKey
    host: str
    port: int
    phase: Phase
    at: float
    by: str
    question: int


class Trust(Value):
    """The bytes of a folder's `tidegate.yaml` that a person has trusted, as their SHA-256 in hex (POL-9).

    `text` are those bytes, so that a change can be shown as a diff.
    """

    folder: FolderKey
    sha256: str
    text: bytes
    at: float
    by: str


class Token(Value):
    """A bearer token, of which only the SHA-256 is kept. `role` is `owner` or `viewer`."""

    id: int
    name: str
    role: str
    hash: bytes
    created: float
    last_used: float | None = None
    expires: float | None = None
    revoked: float | None = None


class Store(Protocol):
    """See the head of the file."""

    def close(self) -> None:
        """Give back what it holds; no other method may be called after that."""

    # Tasks.

    def create_task(self, record: TaskRecord) -> None:
        """Keep a new task; it is on the disk when this returns. Of ended ones the oldest go where there are too many.

        Raises:
            ValueError: where the id is taken.
        """

    def task(self, id: str) -> TaskRecord | None:  # noqa: A002 - the name it has everywhere
        """Return one task."""

    def tasks(self, *, living: bool | None = None, limit: int = 100, before: str = "") -> tuple[TaskRecord, ...]:
        """Return tasks, the newest first; of those older than the task `before`; only living or only ended ones."""

    def change_task(self, id: str, **changes: Any) -> TaskRecord | None:  # noqa: A002 - likewise
        """Change name, phase, wait_seconds, network, owner_pid, operator of a living task; None where it has ended.

        Raises:
            TypeError: for another field, or none.
        """

    def end_task(self, id: str, at: float, outcome: str, connections: int = 0, refused: int = 0) -> bool:  # noqa: A002 - likewise
        """Mark a task as ended, with its counts, and drop its grants; False where it has ended, or never was."""

    def end_tasks(self, ends: Iterable[TaskEnd]) -> tuple[str, ...]:
        """End many at once, as `end_task` does each: all of it is kept or nothing. Return which of them that ended."""

    # Users of the hold `uid`.

    def lease_uid(self, task: str, at: float, first: int, last: int, taken: Collection[int] = ()) -> int | None:
        """Lease the user of this range that has been free for longest, on the disk when this returns; None without one.

        Those never leased come first, by number. `taken` are not free, whatever the store thinks.
        """

    def release_uid(self, uid: int, at: float) -> bool:
        """Give a user back, as the one that is leased last from now on; False where nobody has it."""

    def uid_leases(self) -> tuple[UidLease, ...]:
        """Return the leases that are not given back, by uid."""

    # Answers and what they mean.

    def next_question_id(self) -> int:
        """Return a number that no question of this store has had or will have."""

    def reserve_numbers(self) -> None:
        """Have numbers ready, so that `next_question_id` waits for no disk and no other process: it is called often."""

    def save_answer(self, record: AnswerRecord) -> RuleRecord | None:
        """Keep an answer, and the grant or rule that follows from it; all of it is on the disk when this returns.

        Returns the rule of a REMEMBER: the one that was there already, where there was one.
        """

    def note_answer(self, question: int) -> None:
        """Mark an answer as one that the action log has, too."""

    def not_noted(self) -> tuple[int, ...]:
        """Return the questions whose answers are saved and not marked: the action log may not have them."""

    def take_back(self, question: int) -> None:
        """Remove an answer with the grant and the rule that came from it; it was never given."""

    def answers(self, task: str) -> tuple[AnswerRecord, ...]:
        """Return the answers to a task's questions, in their order."""

    def grants(self, task: str) -> tuple[GrantRecord, ...]:
        """Return what answers mean for the rest of a living task: the latest for each phase, host and port."""

    def rules(self, folder: FolderKey | None = None) -> tuple[RuleRecord, ...]:
        """Return the remembered rules of one folder, or of all, by folder and host."""

    def forget(self, id: int) -> RuleRecord | None:  # noqa: A002 - likewise
        """Remove a remembered rule, and the grants of living tasks that are from the same answer; return it."""

    # Trust.

    def trust(self, record: Trust) -> None:
        """Trust these bytes in this folder, and no others any more."""

    def untrust(self, folder: FolderKey) -> bool:
        """Trust nothing in this folder; False where nothing was trusted."""

    def trusted(self, folder: FolderKey) -> Trust | None:
        """Return what is trusted in a folder."""

    # Tokens.

    def add_token(self, token: Token) -> Token:
        """Keep a token and return it with its id (the given one does not count).

        Raises:
            ValueError: for a name that a token in force has, or a hash in use.
        """

    def tokens(self) -> tuple[Token, ...]:
        """Return all tokens, revoked ones too, in the order they were made."""

    def touch_token(self, id: int, at: float) -> None:  # noqa: A002 - likewise
        """Note when a token was used last."""

    def revoke_token(self, id: int, at: float) -> bool:  # noqa: A002 - likewise
        """Revoke a token, on the disk when this returns; False where it is revoked already, or never was."""

    # Settings.

    def settings(self) -> Settings:
        """Return the settings in force."""

    def patch_settings(self, changes: Mapping[str, object]) -> Settings:
        """Change some settings and return all.

        Raises:
            SettingError: for an unknown name or a value it cannot have; nothing has changed then.
        """


__all__ = [
    "Answer", "AnswerRecord", "FolderKey", "GrantRecord", "RuleRecord", "Settings", "Store", "TaskRecord", "Terms",
    "Token", "Trust", "UidLease",
]  # fmt: skip
