"""Changes are made where the levels let the task write, and nowhere else, whatever way a path takes."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from tests.unit.holds.test_callers import AT_FDCWD, caller
from tidegate.holds.callers import Caller, GoesOnError
from tidegate.holds.carve import NOTHING, READ, WRITE, Levels
from tidegate.holds.file_call_table import FILE_CALLS
from tidegate.holds.file_calls import FileCalls

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def work(tmp_path: Path) -> Iterator[FileCalls]:
    """A workspace with something read-only and something hidden in it; the current folder is there."""
    for name in ("src", "state", "open", ".git/hooks"):
        os.makedirs(tmp_path / name)
    for name in ("src/code", "state/secret", "open/file", "top"):
        (tmp_path / name).write_text("old")
    before = os.getcwd()
    os.chdir(tmp_path)
    base = str(tmp_path)
    said = {"/": READ, base: WRITE, f"{base}/src": READ, f"{base}/.git/hooks": READ, f"{base}/state": NOTHING}
    yield FileCalls(Levels(said))
    os.chdir(before)


def act(files: FileCalls, name: str, *arguments: object) -> None:
    """Make a call as the watcher does; texts are put into the caller's memory."""
    memory = b"\0" * 8
    words = []
    for one in arguments:
        if isinstance(one, bytes):
            words.append(len(memory))
            memory += one + b"\0"
        else:
            words.append(one)
    FILE_CALLS[name](files, caller(memory), *words, 0, 0, 0)


def opened(files: FileCalls, path: bytes, flags: int = os.O_WRONLY | os.O_CREAT) -> int:
    """Open to write."""
    return files.open(caller(path + b"\0"), AT_FDCWD, 0, flags, 0o666)


def test_names_come_go_and_change_where_they_may(work: FileCalls) -> None:
    """Folders, files, links and pipes in a folder that could not be given (HLD-15)."""
    act(work, "mkdir", b"new", 0o755)
    act(work, "mkdirat", AT_FDCWD, b"new/deep", 0o700)
    os.close(opened(work, b"new/deep/file"))
    act(work, "rename", b"new/deep/file", b"new/renamed")
    act(work, "link", b"new/renamed", b"new/linked")
    act(work, "symlink", b"anywhere", b"new/way")
    act(work, "mknod", b"new/pipe", stat.S_IFIFO | 0o600)
    assert sorted(os.listdir("new")) == ["deep", "linked", "pipe", "renamed", "way"]
    for name in (b"new/renamed", b"new/linked", b"new/way", b"new/pipe"):
        act(work, "unlink", name)
    act(work, "rmdir", b"new/deep")
    act(work, "renameat2", AT_FDCWD, b"new", AT_FDCWD, b"top", 2)
    assert os.path.isdir("top")
    act(work, "truncate", b"open/file", 1)
    assert os.stat("open/file").st_size == 1


@pytest.mark.parametrize("path", ["src/code", "src/new", "state/secret", ".git/hooks/pre-commit", "open/../src/code"])
def test_what_is_protected_goes_on_to_the_kernel(work: FileCalls, path: str, tmp_path: Path) -> None:
    """By relative and absolute paths, symlinks and descriptors: nothing is made or changed here (HLD-15)."""
    os.symlink(tmp_path / path, "way")
    held = os.open(".", os.O_PATH)
    for text in (path, str(tmp_path / path), "way", f"/proc/self/cwd/{path}", f"/proc/self/fd/{held}/{path}"):
        with pytest.raises(GoesOnError):
            opened(work, text.encode())
    for call in (("unlink",), ("mkdir", 0o755), ("rmdir",), ("mknod", 0o100600)):
        with pytest.raises(GoesOnError):
            act(work, call[0], path.encode(), *call[1:])
    for one, other in ((b"top", path.encode()), (path.encode(), b"other")):
        for name in ("rename", "link"):
            with pytest.raises((GoesOnError, FileNotFoundError)):
                act(work, name, one, other)
    os.close(held)


@pytest.mark.parametrize("folder", [b".git", b".", b"src"])
def test_a_folder_with_something_protected_in_it_is_not_moved(work: FileCalls, folder: bytes, tmp_path: Path) -> None:
    """Else its contents would have another level (HLD-15)."""
    with pytest.raises(GoesOnError):
        act(work, "rename", os.fsencode(tmp_path) if folder == b"." else folder, b"moved")
    act(work, "rename", b"open", b"moved")


def test_a_last_symlink_is_followed_by_its_own_way_only(work: FileCalls) -> None:
    """To where the task may write it leads; with O_EXCL or O_NOFOLLOW it does not; in a circle it ends."""
    os.symlink("open/file", "way")
    made = opened(work, b"way", os.O_WRONLY | os.O_TRUNC)
    os.write(made, b"new")
    os.close(made)
    with open("open/file", encoding="ascii") as file:
        assert file.read() == "new"
    with pytest.raises(FileExistsError):
        opened(work, b"way", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with pytest.raises(OSError, match="symbolic links"):
        opened(work, b"way", os.O_WRONLY | os.O_NOFOLLOW)
    os.symlink("circle", "circle")
    with pytest.raises(OSError, match="symbolic links"):
        opened(work, b"circle")


def test_what_is_no_plain_file_goes_on(work: FileCalls) -> None:
    """Opening a pipe may wait, and a device means something: never here."""
    os.mkfifo("pipe")
    for path in (b"pipe", b"/dev/null", b"/dev/stdout", b"/proc/self/fd/1"):
        with pytest.raises(GoesOnError):
            opened(work, path, os.O_WRONLY)


def test_a_file_without_a_name(work: FileCalls) -> None:
    """O_TMPFILE in a folder of the task's, and not in another."""
    made = opened(work, b"open", os.O_RDWR | os.O_TMPFILE)
    assert os.write(made, b"x") == 1
    os.close(made)
    with pytest.raises(GoesOnError):
        opened(work, b"src", os.O_RDWR | os.O_TMPFILE)


TIMES = (1_000_000_000).to_bytes(8, "little") + bytes(8)


def test_modes_owners_times_and_attributes(work: FileCalls) -> None:
    """Of the task's files they change; of protected ones they are refused here, because Landlock would not (HLD-15)."""
    act(work, "chmod", b"open/file", 0o604)
    assert stat.S_IMODE(os.stat("open/file").st_mode) == 0o604
    act(work, "utimensat", AT_FDCWD, b"open/file", TIMES + TIMES, 0)
    assert os.stat("open/file").st_mtime == 1_000_000_000
    act(work, "fchownat", AT_FDCWD, b"open/file", 0xFFFFFFFF, 0xFFFFFFFF, 0)
    act(work, "utime", b"open/file", 0)
    for name, more in (("chmod", (0o777,)), ("utime", (0,)), ("chown", (0xFFFFFFFF, 0xFFFFFFFF))):
        for path in (b"src/code", b"state/secret", b"/usr/bin/env"):
            with pytest.raises(PermissionError):
                act(work, name, path, *more)
    os.symlink("src/code", "way")
    with pytest.raises(PermissionError):
        act(work, "chmod", b"way", 0o777)
    act(work, "lchown", b"way", 0xFFFFFFFF, 0xFFFFFFFF)


def test_by_a_descriptor_it_is_the_same(work: FileCalls) -> None:
    """Fchmod of a file that was opened to be read; a pipe is the task's own (HLD-15)."""
    own, protected = os.open("open/file", os.O_RDONLY), os.open("src/code", os.O_RDONLY)
    reading, writing = os.pipe()
    act(work, "fchmod", own, 0o640)
    assert stat.S_IMODE(os.fstat(own).st_mode) == 0o640
    act(work, "fchmod", writing, 0o600)
    with pytest.raises(PermissionError):
        act(work, "fchmod", protected, 0o777)
    with pytest.raises(PermissionError):
        act(work, "utimensat", protected, 0, 0, 0)
    for fd in (own, protected, reading, writing):
        os.close(fd)


def test_nothing_of_this_process_is_taken_for_the_callers(work: FileCalls) -> None:
    """A symlink to /proc/self leads to whoever looks: what is found is judged all the same."""
    os.symlink("/proc/self/cwd", "self")
    os.close(opened(work, b"self/open/new"))
    with pytest.raises(GoesOnError):
        opened(work, b"self/src/new")
    assert isinstance(caller(), Caller)
