"""Which users of the range are in use on this machine, whoever uses them: one locked file for each (HLD-3, HLD-8).

Who launches a task holds the file of its uid locked (flock(2)), and so does the process that makes its connections:
however they end, the lock ends with them. The file says what the user has in the table, so that whoever finds it
unlocked can remove what a crash left. Leases (state/) say which uid has been free for longest; this says which one
*is* free, over all state folders.

Rules of the file: the folder is root's alone; a file is never removed, which would part two holders of one name.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from contextlib import contextmanager

from tidegate.holds import uid_fence, uid_table
from tidegate.holds.uid_remains import remains
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FOLDER = "/run/tidegate-uid"
_LOCK = "lock"
_LARGEST = 1 << 20


class Claim:
    """A uid that is ours until `release`, or until every process that has this descriptor has ended."""

    def __init__(self, uid: int, descriptor: int) -> None:
        self.uid = uid
        self.descriptor = descriptor
        self._elements: list[tuple[str, str]] = []

    def enter(self, elements: list[tuple[str, str]]) -> None:
        """Give the user its place in the table, which is written down before.

        Raises:
            StartError: where the table does not take it.
        """
        self._elements = elements
        _write(self.descriptor, elements)
        try:
            try:
                uid_fence.change("create", elements)
            except uid_fence.NftError:
                # Its last user's: the note of it is gone with the folder, or was read in another network.
                uid_fence.forget(uid_fence.places_of(self.uid))
                uid_fence.change("create", elements)
        except uid_fence.NftError as error:
            raise uid_fence.cannot_load(str(error)) from error

    def release(self) -> None:
        """Take its place in the table away and give the uid back. Later calls do nothing."""
        if self.descriptor < 0:
            return
        descriptor, self.descriptor = self.descriptor, -1
        try:
            _clear(self.uid, self._elements)
            _write(descriptor, [])
        finally:
            os.close(descriptor)


def claim(uid: int) -> Claim | None:
    """Claim this uid; None where it is in use, or anything of its last user is left (uid_remains.py).

    Raises:
        StartError: where the folder cannot be used.
    """
    descriptor = _open(str(uid))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        left = _read(descriptor)
        if left:
            _clear(uid, left)
            _write(descriptor, [])
        if remains(uid):
            os.close(descriptor)
            return None
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return Claim(uid, descriptor)


def is_held(uid: int) -> bool:
    """Whether somebody holds this uid now.

    Raises:
        StartError: where the folder cannot be used.
    """
    descriptor = _open(str(uid))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def used() -> list[int]:
    """Every uid that was ever claimed since this machine started.

    Raises:
        StartError: where the folder cannot be used.
    """
    os.close(_open(_LOCK))
    return sorted(int(name) for name in os.listdir(FOLDER) if name.isdigit())


def has_place(uid: int) -> bool:
    """Whether its file says that it has a place in the table.

    Raises:
        StartError: where the folder cannot be used.
    """
    descriptor = _open(str(uid))
    try:
        return bool(_read(descriptor))
    finally:
        os.close(descriptor)


def sweep() -> list[int]:
    """Remove from the table what users have left that nobody holds; which ones they were.

    Raises:
        StartError: where the folder cannot be used.
    """
    swept = []
    with locked():
        for name in sorted(os.listdir(FOLDER)):
            if not name.isdigit():
                continue
            descriptor = _open(name)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left = _read(descriptor)
                if left:
                    _clear(int(name), left)
                    _write(descriptor, [])
                    swept.append(int(name))
            except BlockingIOError:
                continue  # it lives
            finally:
                os.close(descriptor)
    return swept


@contextmanager
def locked() -> Iterator[None]:
    """Be the only one on this machine who loads or replaces the table.

    Raises:
        StartError: where the folder cannot be used.
    """
    descriptor = _open(_LOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _clear(uid: int, elements: Iterable[tuple[str, str]]) -> None:
    uid_fence.forget([*elements, *((uid_table.OWN, f"{uid} . {port}") for port in uid_fence.own_ports(uid))])


def _open(name: str) -> int:
    try:
        os.makedirs(FOLDER, 0o700, exist_ok=True)
        found = os.lstat(FOLDER)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise StartError(
                f"{FOLDER} is not root's alone", fix=f"look what it is, then: rm -rf {FOLDER}", code="uid-claims"
            )
        return os.open(f"{FOLDER}/{name}", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartError(
            f"{FOLDER}/{name} cannot be used: {error.strerror}",
            fix="run it as root" if os.geteuid() else "/run must be there and writable, as a tmpfs is",
            code="uid-claims",
        ) from error


def _write(descriptor: int, elements: list[tuple[str, str]]) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(elements).encode(), 0)


def _read(descriptor: int) -> list[tuple[str, str]]:
    data = os.pread(descriptor, _LARGEST, 0)
    try:
        return [(str(name), str(element)) for name, element in json.loads(data or b"[]")]
    except ValueError:
        return []  # cut short by a crash: it was written before anything was in the table
