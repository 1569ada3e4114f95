"""Which file a unix socket is bound to, and binding where a judge said and nowhere else."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from tests.unit.holds.apart import apart
from tidegate.holds import landlock, unix_files

if TYPE_CHECKING:
    from pathlib import Path

NEEDS_LANDLOCK = pytest.mark.skipif(landlock.abi() < landlock.SCOPE_ABI, reason="this kernel has no such Landlock")


def test_the_kernel_says_which_file_it_is(tmp_path: Path) -> None:
    """By whatever name: the file that bind() made, and none for a socket without one (HLD-14)."""
    os.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        one.bind("s")
        found = os.stat("s")
        assert unix_files.is_file(found, unix_files.file_of(one.fileno()))
        assert unix_files.file_of(other.fileno()) is None
        other.bind(f"\0unix-files-{os.getpid()}")
        assert unix_files.file_of(other.fileno()) is None
        assert not unix_files.is_file(os.stat("."), unix_files.file_of(one.fileno()))


@NEEDS_LANDLOCK
def test_a_bind_stays_in_the_folder_that_was_judged(tmp_path: Path) -> None:
    """The caller's own text is what getsockname() gives; led elsewhere by a symlink, nothing is made (HLD-15)."""
    code = """
    import socket
    from tidegate.holds import capabilities, unix_files
    capabilities.no_new_privileges()
    base = sys.argv[1]
    os.makedirs(base + '/judged/below'); os.makedirs(base + '/other')
    os.symlink(base + '/other', base + '/judged/out')
    folder = os.open(base + '/judged', os.O_PATH)
    def bind(path):
        wire = socket.socket(1)
        try: unix_files.bind_within(wire.fileno(), path.encode(), folder, folder, 0o077)
        except OSError as error: return errno.errorcode[error.errno]
        return wire.getsockname()
    print(bind(base + '/judged/s') == base + '/judged/s', bind('r'), oct(os.stat(base + '/judged/r').st_mode & 0o777))
    print(bind('out/s'), bind(base + '/other/s'), bind('../x'), bind('r'), os.listdir(base + '/other'))
    """
    assert apart(code, str(tmp_path)) == "True r 0o700\nEACCES EACCES EACCES EADDRINUSE []\n"


def test_a_name_is_bound_in_a_folder_that_is_held(tmp_path: Path) -> None:
    """Nothing is looked up, and this process is where it was, with its own umask."""
    before, here = os.umask(0o022), os.getcwd()
    folder = os.open(tmp_path, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as wire:
        unix_files.bind_in(wire.fileno(), b"s", folder, 0o077)
        assert wire.getsockname() == "s"
        assert os.stat(tmp_path / "s").st_mode & 0o777 == 0o700
        assert unix_files.is_file(os.stat(tmp_path / "s"), unix_files.file_of(wire.fileno()))
    os.close(folder)
    assert (os.getcwd(), os.umask(before)) == (here, 0o022)
