"""tidegate.holds.paths: the same answer as os.path.realpath, whatever a path is."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from tidegate.holds.paths import found_path, real_path

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one of each kind; the current folder is in it."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "file").write_text("")
    (tmp_path / "odd (deleted)").mkdir()
    (tmp_path / "new\nline").mkdir()
    for name, target in (
        ("link", "a"), ("deep", "link/b"), ("up", "a/b/../.."), ("gone", "nowhere/x"), ("loop", "loop"),
        ("absolute", str(tmp_path / "a")), ("out", "/usr/bin/env"), ("odd", "odd (deleted)"),
        ("self", "/proc/self/fd/1"),
    ):  # fmt: skip
        (tmp_path / name).symlink_to(target)
    os.mkfifo(tmp_path / "fifo")
    sock = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(tmp_path)
    sock.bind("socket")
    sock.close()
    return tmp_path


PATHS = (
    "a", "a/b", "link/b", "deep", "deep/..", "up", "up/a", "gone", "gone/y", "loop", "loop/x", "absolute/file", "out",
    "odd", "odd (deleted)", "odd (deleted)/missing", "self", "fifo", "socket", "missing", "missing/x", "a/file/x", ".",
    "..", "", "a//b/.", "new\nline", "x" * 300,
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_it_is_what_realpath_says(place: Path, path: str) -> None:
    """HLD-15: links, what is not there, loops, odd names and kinds, relative and absolute."""
    for one in (path, f"{place}/{path}"):
        assert real_path(one) == os.path.realpath(one)
        assert found_path(one) == (os.path.realpath(one) if os.path.exists(one) else "")


@pytest.mark.parametrize(
    "path", ["/", "//", "/proc/self/exe", "/dev/stdin", "/proc/self/fd/0", "/dev/null", "/etc/mtab"]
)
def test_of_the_machine_too(path: str) -> None:
    """HLD-15: what has no name of its own (a pipe behind a standard stream) is answered as ever."""
    assert real_path(path) == os.path.realpath(path)


def test_a_removed_folder_and_no_descriptor(place: Path) -> None:
    """HLD-7: the answer does not depend on a descriptor to be had."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        found = real_path("deep")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found == str(place / "a" / "b")
