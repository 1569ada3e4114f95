"""Which folder and name a caller means."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tidegate.holds import linux
from tidegate.holds.callers import Caller, GoesOnError, Umask, name_of, place_of

if TYPE_CHECKING:
    from pathlib import Path

AT_FDCWD = linux.AT_FDCWD & 0xFFFFFFFF


def caller(text: bytes = b"") -> Caller:
    """This very process as a caller, whose memory begins with this text."""

    def read(address: int, length: int) -> bytes:
        part = text[address : address + length]
        if not part:
            raise OSError(14, "nothing there")
        return part

    return Caller(os.getpid(), os.dup, read)


def test_a_place_is_what_the_kernel_calls_it(tmp_path: Path) -> None:
    """By absolute and relative paths, symlinks on the way, descriptors and the caller's own /proc (HLD-15)."""
    os.makedirs(tmp_path / "a/b")
    os.symlink("a", tmp_path / "way")
    os.chdir(tmp_path)
    folder = os.open("a", os.O_PATH)
    asked = caller()
    for text in (
        f"{tmp_path}/a/b/x",
        "a/b/x",
        "way/b/x",
        "a/../way/b/x//",
        "/proc/self/cwd/a/b/x",
        f"/proc/self/fd/{folder}/b/x",
    ):
        place = place_of(asked, AT_FDCWD, os.fsencode(text))
        assert (place.path, place.name) == (f"{tmp_path}/a/b/x", b"x"), text
        place.close()
    place = place_of(asked, folder, b"b/x")
    assert place.path == f"{tmp_path}/a/b/x"
    place.close()
    os.close(folder)


def test_what_has_no_last_name_goes_on(tmp_path: Path) -> None:
    """`.`, `..`, `/`, nothing, and what lies in a folder that was removed: the kernel decides."""
    os.chdir(tmp_path)
    for text in (b"", b"/", b".", b"..", b"x/..", b"//"):
        with pytest.raises(GoesOnError):
            place_of(caller(), AT_FDCWD, text)
    os.mkdir("gone")
    held = os.open("gone", os.O_PATH)
    os.rmdir("gone")
    with pytest.raises(GoesOnError):
        place_of(caller(), held, b"x")
    with pytest.raises(GoesOnError):
        name_of(held)
    os.close(held)


def test_texts_are_read_to_their_end() -> None:
    """Over pages, and no further than a path may be long."""
    assert caller(b"abc\0def").text(0) == b"abc"
    long = b"x" * 4090
    assert caller(b"  " + long + b"\0").text(2) == long
    with pytest.raises(OSError, match="File name too long"):
        caller(b"x" * 9000).text(0)
    with pytest.raises(OSError, match="nothing there"):
        caller(b"abc").text(0)
    assert caller(bytes(range(200))).bytes(3, 16) == bytes(range(3, 19))


def test_the_umask_is_the_callers_and_put_back() -> None:
    """A name has the bits that the caller would give it."""
    before = os.umask(0o027)
    asked = caller()
    assert asked.umask() == 0o027
    os.umask(0o077)
    with Umask(asked):
        pass
    assert os.umask(before) == 0o077
