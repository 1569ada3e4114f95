"""The store on SQLite: the file of state/database.py behind the interface of state/store.py.

Each method is one transaction. What the columns mean is in migrations/; rows become records here and nowhere else.
"""

from __future__ import annotations

import os
from itertools import chain

from tidegate.model.question import NO_TERMS, Answer, AnswerRecord, FolderKey, GrantRecord, Terms
from tidegate.model.verdict import Phase
from tidegate.state.columns import dumps, loads
from tidegate.state.database import READ, open_database
from tidegate.state.folders import STORE_FILE
from tidegate.state.settings import Settings, changed, plain
from tidegate.state.store import RuleRecord, TaskEnd, TaskRecord, Token, Trust, UidLease

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from tidegate.state.database import Database
else:
    import _sqlite3 as sqlite3  # see database.py

KEPT_TASKS = 5000  # ended ones
BLOCK = 100  # numbers of questions that one write reserves; those not used when the process ends are skipped
_HERE = "folder = ? AND dev = ? AND ino = ?"
_TASK = (
    'id, folder, dev, ino, created_at, policy, name, command, phase, wait_seconds, hold, network, "by", owner_pid, '
    "ended_at, outcome, operator, connections, refused"
)
_ANSWER = 'question, task, folder, dev, ino, host, port, phase, answer, until, connections, bytes, "by", at'
_RULE = 'id, folder, dev, ino, host, port, phase, at, "by", question'
_TRUST = 'folder, dev, ino, sha256, text, at, "by"'
_TOKEN = "id, name, role, hash, created, last_used, expires, revoked"  # noqa: S105 - names of columns
_CHANGES = {"name", "phase", "wait_seconds", "network", "owner_pid", "operator"}


def open_store(folder: str) -> SqliteStore:
    """Open the store in a state folder; made where there is none.

    Raises:
        StartError: see open_database.
    """
    return SqliteStore(open_database(folder))


def read_store(folder: str) -> SqliteStore | None:
    """Open the store in a state folder if there is one: for a `run` alone, which has nothing to keep in it.

    Raises:
        StartError: see open_database.
    """
    return open_store(folder) if os.path.lexists(os.path.join(folder, STORE_FILE)) else None


class SqliteStore:
    """Implements store.Store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._numbers = iter(range(0))
        self._spare: range | None = None

    def close(self) -> None:
        """See Store."""
        self._database.close()

    # Tasks.

    def create_task(self, record: TaskRecord) -> None:
        """See Store."""
        row = (
            record.id, *_folder(record.folder), record.created_at, record.policy, record.name,
            dumps(record.command), record.phase.value, record.wait_seconds, record.hold, record.network,
            record.by, record.owner_pid, record.ended_at, record.outcome, record.operator,
            record.connections, record.refused,
        )  # fmt: skip
        with self._database.transaction() as db:
            try:
                db.execute(f"INSERT INTO tasks ({_TASK}) VALUES ({_marks(_TASK)})", row)
            except sqlite3.IntegrityError:
                raise ValueError(f"there is a task {record.id} already") from None
            old = db.execute(
                "SELECT id FROM tasks WHERE ended_at IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT -1 OFFSET ?",
                (KEPT_TASKS,),
            ).fetchall()
            db.executemany("DELETE FROM answers WHERE task = ?", old)
            db.executemany("DELETE FROM tasks WHERE id = ?", old)

    def task(self, id: str) -> TaskRecord | None:  # noqa: A002 - as the interface has it
        """See Store."""
        with self._database.transaction(READ) as db:
            row = db.execute(f"SELECT {_TASK} FROM tasks WHERE id = ?", (id,)).fetchone()
        return None if row is None else _task(row)

    def tasks(self, *, living: bool | None = None, limit: int = 100, before: str = "") -> tuple[TaskRecord, ...]:
        """See Store."""
        where = {None: "", True: " AND ended_at IS NULL", False: " AND ended_at IS NOT NULL"}[living]
        if before:
            where += " AND (created_at, id) < (SELECT created_at, id FROM tasks WHERE id = :before)"
        with self._database.transaction(READ) as db:
            rows = db.execute(
                f"SELECT {_TASK} FROM tasks WHERE 1 {where} ORDER BY created_at DESC, id DESC LIMIT :limit",
                {"before": before, "limit": max(0, limit)},
            ).fetchall()
        return tuple(_task(row) for row in rows)

    def change_task(self, id: str, **changes: Any) -> TaskRecord | None:  # noqa: A002 - likewise
        """See Store."""
        if not changes or not _CHANGES.issuperset(changes):
            raise TypeError(f"a task's {', '.join(sorted(set(changes) - _CHANGES)) or 'nothing'} cannot be changed")
        values = [value.value if isinstance(value, Phase) else value for value in changes.values()]
        sets = ", ".join(f"{column} = ?" for column in changes)
        with self._database.transaction() as db:
            row = db.execute(
                f"UPDATE tasks SET {sets} WHERE id = ? AND ended_at IS NULL RETURNING {_TASK}", (*values, id)
            ).fetchone()
        return None if row is None else _task(row)

    def end_task(self, id: str, at: float, outcome: str, connections: int = 0, refused: int = 0) -> bool:  # noqa: A002 - likewise
        """See Store."""
        return bool(self.end_tasks((TaskEnd(id, at, outcome, connections, refused),)))

    def end_tasks(self, ends: Iterable[TaskEnd]) -> tuple[str, ...]:
        """See Store."""
        ended = []
        with self._database.transaction() as db:
            for end in ends:
                sets = "ended_at = ?, outcome = ?, connections = ?, refused = ?"
                values = (end.at, end.outcome, end.connections, end.refused, end.id)
                done = db.execute(f"UPDATE tasks SET {sets} WHERE id = ? AND ended_at IS NULL", values)
                ended += [end.id] if done.rowcount > 0 else []
                db.execute("DELETE FROM grants WHERE task = ?", (end.id,))
        return tuple(ended)

    # Users of the hold `uid`.

    def lease_uid(self, task: str, at: float, first: int, last: int, taken: Collection[int] = ()) -> int | None:
        """See Store."""
        with self._database.transaction() as db:
            rows = db.execute(
                "SELECT uid, released_at FROM uids WHERE uid BETWEEN ? AND ? ORDER BY released_at, uid", (first, last)
            ).fetchall()
            known = {uid for uid, _ in rows}
            fresh = (uid for uid in range(first, last + 1) if uid not in known)
            rested = (uid for uid, released in rows if released is not None)
            found = next((uid for uid in chain(fresh, rested) if uid not in taken), None)
            if found is not None:
                db.execute("INSERT OR REPLACE INTO uids VALUES (?, ?, ?, NULL)", (found, task, at))
        return found

    def release_uid(self, uid: int, at: float) -> bool:
        """See Store."""
        with self._database.transaction() as db:
            done = db.execute("UPDATE uids SET released_at = ? WHERE uid = ? AND released_at IS NULL", (at, uid))
        return done.rowcount > 0

    def uid_leases(self) -> tuple[UidLease, ...]:
        """See Store."""
        with self._database.transaction(READ) as db:
            rows = db.execute(
                "SELECT uid, task, taken_at, released_at FROM uids WHERE released_at IS NULL ORDER BY uid"
            ).fetchall()
        return tuple(UidLease(*row) for row in rows)

    # Answers and what they mean.

    def next_question_id(self) -> int:
        """See Store."""
        number = next(self._numbers, None)
        if number is None:
            spare, self._spare = self._spare, None
            self._numbers = iter(self._draw() if spare is None else spare)
            number = next(self._numbers)
        return number

    def reserve_numbers(self) -> None:
        """See Store."""
        if self._spare is None:
            self._spare = self._draw()

    def _draw(self) -> range:
        with self._database.transaction() as db:
            (end,) = db.execute(
                "INSERT INTO numbers VALUES ('question', :block + 1) "
                "ON CONFLICT (name) DO UPDATE SET next = next + :block RETURNING next",
                {"block": BLOCK},
            ).fetchone()
        return range(end - BLOCK, end)

    def save_answer(self, record: AnswerRecord) -> RuleRecord | None:
        """See Store."""
        terms = (record.terms.until, record.terms.connections, record.terms.bytes)
        place = (record.phase.value, record.host, record.port)
        rule = None
        with self._database.transaction() as db:
            db.execute(
                f"INSERT INTO answers ({_ANSWER}) VALUES ({_marks(_ANSWER)})",
                (
                    record.question, record.task, *_folder(record.folder), record.host, record.port,
                    record.phase.value, record.answer.value, *terms, record.by, record.at,
                ),
            )  # fmt: skip
            once = record.answer is Answer.DENY or (record.answer is Answer.ALLOW and record.terms == NO_TERMS)
            if not once:
                db.execute(
                    "INSERT OR REPLACE INTO grants VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (record.task, *place, record.question, record.answer.value, *terms, record.by),
                )
            if record.answer is Answer.REMEMBER:
                db.execute(
                    'INSERT INTO rules (folder, dev, ino, phase, host, port, at, "by", question) '
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    (*_folder(record.folder), *place, record.at, record.by, record.question),
                )
                rule = db.execute(
                    f"SELECT {_RULE} FROM rules WHERE {_HERE} AND phase = ? AND host = ? AND port = ?",
                    (*_folder(record.folder), *place),
                ).fetchone()
        return None if rule is None else _rule(rule)

    def note_answer(self, question: int) -> None:
        """See Store."""
        with self._database.transaction() as db:
            db.execute("UPDATE answers SET noted = 1 WHERE question = ?", (question,))

    def not_noted(self) -> tuple[int, ...]:
        """See Store."""
        with self._database.transaction(READ) as db:
            rows = db.execute("SELECT question FROM answers WHERE noted = 0 ORDER BY question").fetchall()
        return tuple(question for (question,) in rows)

    def take_back(self, question: int) -> None:
        """See Store."""
        with self._database.transaction() as db:
            for table in ("answers", "grants", "rules"):
                db.execute(f"DELETE FROM {table} WHERE question = ?", (question,))

    def answers(self, task: str) -> tuple[AnswerRecord, ...]:
        """See Store."""
        with self._database.transaction(READ) as db:
            rows = db.execute(f"SELECT {_ANSWER} FROM answers WHERE task = ? ORDER BY question", (task,)).fetchall()
        return tuple(_answer(row) for row in rows)

    def grants(self, task: str) -> tuple[GrantRecord, ...]:
        """See Store."""
        with self._database.transaction(READ) as db:
            rows = db.execute(
                'SELECT question, task, host, port, phase, kind, until, connections, bytes, "by" FROM grants '
                "WHERE task = ? ORDER BY question",
                (task,),
            ).fetchall()
        return tuple(
            GrantRecord(question, name, host, port, Phase(phase), Answer(kind), Terms(*terms), by)
            for question, name, host, port, phase, kind, *terms, by in rows
        )

    def rules(self, folder: FolderKey | None = None) -> tuple[RuleRecord, ...]:
        """See Store."""
        where, values = ("", ()) if folder is None else (f" WHERE {_HERE}", _folder(folder))
        with self._database.transaction(READ) as db:
            rows = db.execute(f"SELECT {_RULE} FROM rules{where} ORDER BY folder, host, port, id", values).fetchall()
        return tuple(_rule(row) for row in rows)

    def forget(self, id: int) -> RuleRecord | None:  # noqa: A002 - likewise
        """See Store."""
        with self._database.transaction() as db:
            row = db.execute(f"DELETE FROM rules WHERE id = ? RETURNING {_RULE}", (id,)).fetchone()
            if row is None:
                return None
            rule = _rule(row)
            db.execute(
                "DELETE FROM grants WHERE kind = ? AND phase = ? AND host = ? AND port = ? "
                f"AND task IN (SELECT id FROM tasks WHERE {_HERE})",
                (Answer.REMEMBER.value, rule.phase.value, rule.host, rule.port, *_folder(rule.folder)),
            )
        return rule

    # Trust.

    def trust(self, record: Trust) -> None:
        """See Store."""
        with self._database.transaction() as db:
            db.execute(
                f"INSERT OR REPLACE INTO trust ({_TRUST}) VALUES ({_marks(_TRUST)})",
                (*_folder(record.folder), record.sha256, record.text, record.at, record.by),
            )

    def untrust(self, folder: FolderKey) -> bool:
        """See Store."""
        with self._database.transaction() as db:
            return db.execute(f"DELETE FROM trust WHERE {_HERE}", _folder(folder)).rowcount > 0

    def trusted(self, folder: FolderKey) -> Trust | None:
        """See Store."""
        with self._database.transaction(READ) as db:
            row = db.execute(f"SELECT {_TRUST} FROM trust WHERE {_HERE}", _folder(folder)).fetchone()
        return None if row is None else _trust(row)

    # Tokens.

    def add_token(self, token: Token) -> Token:
        """See Store."""
        columns = _TOKEN.removeprefix("id, ")
        values = token._astuple()[1:]  # noqa: SLF001 - the columns are the fields
        with self._database.transaction() as db:
            try:
                row = db.execute(
                    f"INSERT INTO tokens ({columns}) VALUES ({_marks(columns)}) RETURNING {_TOKEN}", values
                ).fetchone()
            except sqlite3.IntegrityError:
                raise ValueError(f"there already is a token {token.name!r}, or it has no such role") from None
        return Token(*row)

    def tokens(self) -> tuple[Token, ...]:
        """See Store."""
        with self._database.transaction(READ) as db:
            rows = db.execute(f"SELECT {_TOKEN} FROM tokens ORDER BY id").fetchall()
        return tuple(Token(*row) for row in rows)

    def touch_token(self, id: int, at: float) -> None:  # noqa: A002 - likewise
        """See Store."""
        with self._database.transaction() as db:
            db.execute("UPDATE tokens SET last_used = ? WHERE id = ?", (at, id))

    def revoke_token(self, id: int, at: float) -> bool:  # noqa: A002 - likewise
        """See Store."""
        with self._database.transaction() as db:
            done = db.execute("UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", (at, id))
        return done.rowcount > 0

    # Settings.

    def settings(self) -> Settings:
        """See Store."""
        with self._database.transaction(READ) as db:
            return _settings(db)

    def patch_settings(self, changes: Mapping[str, object]) -> Settings:
        """See Store."""
        with self._database.transaction() as db:
            settings = changed(_settings(db), changes)
            rows = [(name, dumps(value)) for name, value in plain(settings).items() if name in changes]
            db.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", rows)
        return settings


def _marks(columns: str) -> str:
    return ", ".join("?" for _ in columns.split(","))


def _folder(key: FolderKey) -> tuple[bytes, str, str]:
    return os.fsencode(key.path), str(key.dev), str(key.ino)


def _key(path: bytes, dev: str, ino: str) -> FolderKey:
    return FolderKey(os.fsdecode(path), int(dev), int(ino))


def _task(row: tuple[Any, ...]) -> TaskRecord:
    id, path, dev, ino, created_at, policy, name, command, phase, *rest = row  # noqa: A001 - the column's name
    return TaskRecord(id, _key(path, dev, ino), created_at, policy, name, tuple(loads(command)), Phase(phase), *rest)


def _answer(row: tuple[Any, ...]) -> AnswerRecord:
    question, task, path, dev, ino, host, port, phase, answer, until, connections, total, by, at = row
    terms = Terms(until, connections, total)
    return AnswerRecord(question, task, _key(path, dev, ino), host, port, Phase(phase), Answer(answer), terms, by, at)


def _rule(row: tuple[Any, ...]) -> RuleRecord:
    id, path, dev, ino, host, port, phase, at, by, question = row  # noqa: A001 - likewise
    return RuleRecord(id, _key(path, dev, ino), host, port, Phase(phase), at, by, question)


def _trust(row: tuple[Any, ...]) -> Trust:
    path, dev, ino, *rest = row
    return Trust(_key(path, dev, ino), *rest)


def _settings(db: sqlite3.Connection) -> Settings:
    rows = db.execute("SELECT name, value FROM settings").fetchall()
    return changed(Settings(), {name: loads(value) for name, value in rows})
