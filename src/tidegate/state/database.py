"""The SQLite file: made, opened, brought up to date, and written in transactions (sqlite.org: wal.html, pragma.html).

Rules of the file:

* The file is 0600 in a folder that is the user's alone, or it is not opened.
* WAL with synchronous=FULL: what was committed is on the disk, and readers do not wait for a writer.
* One transaction at a time in this process (a lock), BEGIN IMMEDIATE among processes, and a bounded wait for both.
* Whatever SQLite says went wrong is a NotSavedError once the file is open, and a StartError before that. A newer
  schema is refused: an older program cannot know what it would break.
* Whoever has it open holds a shared lock beside it, and only who has that lock alone brings the schema up to date: a
  server of an older tidegate never finds the tables changed under it.
* The file is never opened beside SQLite: closing any descriptor of it would drop SQLite's locks (fcntl(2)).
"""

from __future__ import annotations

import fcntl
import os
import stat
from _thread import allocate_lock
from time import monotonic, sleep

from tidegate.model.errors import NotSavedError, StartError
from tidegate.state.folders import STORE_FILE
from tidegate.state.migrations import STEPS, VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from _thread import LockType
else:
    import _sqlite3 as sqlite3  # what sqlite3 has besides, dates, is not used, and a start with a store waits for it

PATIENCE = 5.0  # seconds for which another process may be writing
MARK = 0x54474154  # application_id: "TGAT"
READ = "BEGIN"
_HELD = ".lock"  # behind the file's name
_PAUSE = 0.01
_FAILURES = (sqlite3.Error, UnicodeError, OverflowError)
_UNQUOTED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~/")  # RFC 3986
_DAMAGED = "move it away and restore a copy; what it held is asked anew"


class Database:
    """An open file. Use `transaction`; `close` it once."""

    def __init__(self, connection: sqlite3.Connection, path: str, held: int) -> None:
        self.path = path
        self._held = held
        self._connection = connection
        self._lock = allocate_lock()

    def transaction(self, begin: str = "BEGIN IMMEDIATE") -> _Transaction:
        """Run a block as one transaction: all of it is on the disk after it, or nothing.

        `begin` is READ for one that only reads: it waits for no writer, and sees one state of the file. Entering
        and leaving it raise a NotSavedError where SQLite fails; nothing has changed then.
        """
        return _Transaction(self._connection, self._lock, self.path, begin)

    def close(self) -> None:
        """Give the file back."""
        with self._lock:
            self._connection.close()
            if self._held >= 0:
                os.close(self._held)
                self._held = -1


class _Transaction:
    def __init__(self, connection: sqlite3.Connection, lock: LockType, path: str, begin: str) -> None:
        self._connection = connection
        self._lock = lock
        self._path = path
        self._begin = begin

    def __enter__(self) -> sqlite3.Connection:
        if not self._lock.acquire(timeout=2 * PATIENCE):
            raise NotSavedError(f"{self._path!r} is busy", fix="try again")
        try:
            self._connection.execute(self._begin)
        except BaseException as error:
            self._leave()
            self._map(error)
            raise
        return self._connection

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        try:
            if error is None:
                self._connection.execute("COMMIT")
        except _FAILURES as failure:
            error = failure
        finally:
            self._leave()
        self._map(error)

    def _map(self, error: BaseException | None) -> None:
        if isinstance(error, _FAILURES):
            what = f"{self._path!r} cannot be written or read: {error}"
            raise NotSavedError(what, fix=_fix(error)) from error

    def _leave(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # SQLite has rolled back by itself (a full disk), or does when the file is opened again
        finally:
            self._lock.release()


def open_database(folder: str) -> Database:
    """Open the file in `folder`, made where there is none, with the schema of this program.

    Raises:
        StartError: where that cannot be: the folder or the file is open to others, no database, of a newer tidegate, of
            an older one that has it open, or the disk does not do its part.
    """
    path = os.path.join(folder, STORE_FILE)
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        _private(folder, os.lstat(folder), directory=True)
        with _Alone(folder):
            _make(path)
            _private(path, os.lstat(path), directory=False)
            held = os.open(path + _HELD, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                return Database(_connect(path, held), path, held)
            except BaseException:
                os.close(held)
                raise
    except sqlite3.DatabaseError as error:
        raise StartError(f"{path!r} cannot be opened as a database: {error}", fix=_fix(error), code="store") from error
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise StartError(f"{path!r} cannot be opened: {why}", fix=_fix(error), code="store") from error


def look_at(folder: str) -> None:
    """See whether the file in `folder` is sound and of a schema that is known here; nothing in it is changed.

    Raises:
        StartError: where it is not, or cannot be read.
    """
    path = os.path.join(folder, STORE_FILE)
    try:
        _private(path, os.lstat(path), directory=False)
        connection = sqlite3.connect(_uri(path), timeout=PATIENCE, uri=True)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            _version(connection, path)
            said: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        raise StartError(f"{path!r} cannot be opened as a database: {error}", fix=_fix(error), code="store") from error
    except OSError as error:
        raise StartError(f"{path!r} cannot be opened: {error.strerror}", fix=_fix(error), code="store") from error
    if said != "ok":
        raise StartError(f"{path!r} is damaged: {said[:200]}", fix=_DAMAGED, code="store")


def _uri(path: str) -> str:
    # By hand: urllib.parse brings re, which takes as long as the whole look into the file.
    quoted = "".join(chr(one) if one in _UNQUOTED else f"%{one:02X}" for one in os.fsencode(path))
    return f"file:{quoted}?mode=rw"


def _connect(path: str, held: int) -> sqlite3.Connection:
    connection = sqlite3.connect(_uri(path), timeout=PATIENCE, isolation_level=None, check_same_thread=False, uri=True)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = FULL")
        version = _version(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        if 0 < version < VERSION:
            _need_alone(path, held, version)
        if version < VERSION:
            _migrate(connection, version)
        fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection, path: str) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    mark: int = connection.execute("PRAGMA application_id").fetchone()[0]
    if mark != MARK and (version or connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]):
        raise StartError(f"{path!r} is not a database of tidegate", fix="move it away", code="store")
    if version > VERSION:
        raise StartError(
            f"{path!r} was written by a newer tidegate (schema {version}, {VERSION} is known here)",
            fix="use that one, or set XDG_STATE_HOME to another folder",
            code="store-newer",
        )
    return version


def _need_alone(path: str, held: int, version: int) -> None:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pids = _holders(held)
        whose = f"process {' and '.join(map(str, pids))}" if pids else "another process"
        raise StartError(
            f"{path!r} is of an older tidegate (schema {version}, {VERSION} here), and {whose} has it open",
            fix="end that one first" + (f": kill {' '.join(map(str, pids))}" if pids else ""),
            code="store-older",
        ) from None


def _holders(fd: int) -> list[int]:
    # Lines of /proc/locks: "1: FLOCK  ADVISORY  READ 4711 08:01:1234 0 EOF" (proc_locks(5)).
    found = os.fstat(fd)
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    try:
        with open("/proc/locks", encoding="ascii") as file:
            words = [line.split() for line in file]
    except OSError:
        return []
    return sorted({int(line[4]) for line in words if len(line) > 5 and line[1] == "FLOCK" and line[5] == place})


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statements in STEPS[version:]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute(f"PRAGMA application_id = {MARK}")
    connection.execute("COMMIT")


class _Alone:
    """Making the file, switching it to WAL and migrating it are for one process at a time."""

    def __init__(self, folder: str) -> None:
        self._fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> None:
        try:
            self._take()
        except BaseException:
            os.close(self._fd)
            raise

    def _take(self) -> None:
        late = monotonic() + 2 * PATIENCE
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if monotonic() > late:
                    raise
                sleep(_PAUSE)
            else:
                return

    def __exit__(self, *_error: object) -> None:
        os.close(self._fd)


def _make(path: str) -> None:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    os.close(fd)


def _private(path: str, found: os.stat_result, *, directory: bool) -> None:
    right = stat.S_ISDIR(found.st_mode) if directory else stat.S_ISREG(found.st_mode)
    if not right or found.st_uid != os.geteuid():
        what = "folder" if directory else "file"
        raise StartError(f"{path!r} is no {what} of this user", fix="move it away, or set XDG_STATE_HOME", code="store")
    if found.st_mode & 0o077:
        mode = "700" if directory else "600"
        raise StartError(f"{path!r} is open to others", fix=f"chmod {mode} {path}", code="store")


def _fix(error: Exception) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return _DAMAGED
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return "another process is writing to it; try again"
    return "make room on the disk, and see that the folder can be written"
