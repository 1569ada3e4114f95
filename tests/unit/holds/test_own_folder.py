"""The folder of one task in the machine's /tmp, and what becomes of one whose front is gone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

from tidegate.holds import own_folder


def test_it_is_this_users_alone_and_is_removed_with_all_in_it() -> None:
    """Private from the first moment; folders that the task shut and links that lead out are no obstacle (HLD-14)."""
    path = own_folder.make_own_folder()
    try:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
        assert sorted(os.listdir(path)) == ["run", "tmp"]
        os.makedirs(f"{path}/tmp/shut/deep")
        os.symlink("/usr", f"{path}/tmp/usr")
        os.mkfifo(f"{path}/tmp/shut/pipe")
        os.chmod(f"{path}/tmp/shut", 0)
    finally:
        own_folder.remove_own_folder(path)
    assert not os.path.lexists(path)
    assert os.path.isdir("/usr")


def test_that_of_a_front_that_is_gone_is_swept() -> None:
    """A sweep takes what a killed front left, and nothing of one that lives (HLD-8)."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from tidegate.holds.own_folder import *\nprint(make_own_folder())"
    )
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(own_folder.__file__))))
    done = subprocess.run([sys.executable, "-I", "-c", code, source], capture_output=True, text=True, check=True)
    left, mine = done.stdout.strip(), own_folder.make_own_folder()
    assert os.path.isdir(left)
    other = os.path.join(os.path.dirname(mine), f"{own_folder.PREFIX}of-nobody")
    os.makedirs(other, exist_ok=True)
    try:
        own_folder.sweep_own_folders()
        assert not os.path.lexists(left)
        assert os.path.isdir(mine)
        assert os.path.isdir(other), "what only looks like one stays"
    finally:
        os.rmdir(other)
        own_folder.remove_own_folder(mine)
