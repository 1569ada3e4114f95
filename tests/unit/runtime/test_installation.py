"""tidegate.runtime.installation."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from tidegate.runtime.installation import installation_paths, interpreter_paths, links_on_the_way, out_of_sight

if TYPE_CHECKING:
    from pathlib import Path

CLONE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))


def _covered(path: str) -> bool:
    real = os.path.realpath(path)
    return any(real == one or real.startswith(one + "/") for one in installation_paths())


def test_all_that_runs_at_the_next_start_is_covered() -> None:
    """HLD-15: launcher, source, environment, scripts and the interpreter are read-only inside."""
    for name in ("tidegate", "src/tidegate/cli/run.py", "pyproject.toml", "scripts/test", ".ci/run"):
        assert _covered(os.path.join(CLONE, name)), name
    assert _covered(sys.executable)
    assert _covered(os.__file__)


def test_the_rest_of_a_clone_stays_writable() -> None:
    """The clone may be the workspace: `pip download -d six` in it must work."""
    assert CLONE not in installation_paths()
    assert not _covered(os.path.join(CLONE, "tests"))
    assert not _covered(os.path.join(CLONE, "six"))


def test_no_path_is_there_twice_or_inside_another() -> None:
    """Each is one mount; a path inside another would be two."""
    paths = [path for path in installation_paths() if os.path.realpath(path) == path]
    assert len(set(paths)) == len(paths)
    assert not any(a != b and a.startswith(b + "/") for a in paths for b in paths)


@pytest.fixture
def managed(tmp_path: Path) -> str:
    """A Python as pyenv and uv lay it out, an environment of it, and links on the way from one to the other."""
    root = os.path.realpath(tmp_path)
    for folder in ("python-3.11.7/bin", "python-3.11.7/lib/python3.11", "venv/bin"):
        os.makedirs(os.path.join(root, folder))
    for name in ("python-3.11.7/bin/python3.11", "python-3.11.7/lib/python3.11/os.py"):
        with open(os.path.join(root, name), "w", encoding="ascii"):
            pass
    for name, target in (
        ("python-3.11", "python-3.11.7"),
        ("python-3.11.7/bin/python3", "python3.11"),
        ("shim", root + "/python-3.11/bin/python3"),
        ("venv/bin/python3", root + "/shim"),
        ("venv/bin/python", "python3"),
    ):
        os.symlink(target, os.path.join(root, name))
    return root


def test_all_that_a_managed_python_loads_is_covered(managed: str) -> None:
    """HLD-15: libpython and python311.zip in lib/, pybuilddir.txt and the links in bin/, not the program alone."""
    python = managed + "/python-3.11.7"
    found = interpreter_paths(managed + "/venv/bin/python", python + "/lib/python3.11/os.py")
    assert {python + "/bin", python + "/lib"} <= set(found)
    assert managed not in found
    assert python not in found


def test_a_systems_python_leaves_the_systems_folders_alone() -> None:
    """/usr/bin and /usr/lib are not tidegate's: only the program and its library are."""
    found = interpreter_paths("/usr/bin/no-such-python3.11", "/usr/lib/python3.11/os.py")
    assert found == ["/usr/bin/no-such-python3.11", "/usr/lib/python3.11"]


def test_a_program_in_no_bin_covers_no_folder(managed: str) -> None:
    """A copy of Python in a home folder must not make the home folder read-only."""
    with open(managed + "/python", "w", encoding="ascii"):
        pass
    assert managed not in interpreter_paths(managed + "/python", managed + "/python-3.11.7/lib/python3.11/os.py")


def test_each_link_to_the_interpreter_is_named(managed: str) -> None:
    """Each name is one that a task could replace: links in turn, then a folder that is one."""
    assert links_on_the_way(managed + "/venv/bin/python") == [
        managed + "/venv/bin/python",
        managed + "/venv/bin/python3",
        managed + "/shim",
        managed + "/python-3.11/bin/python3",
        managed + "/python-3.11/bin/python3.11",
    ]
    assert links_on_the_way(managed + "/python-3.11.7/bin/python3.11") == []


def test_a_loop_of_links_ends(managed: str) -> None:
    """A broken environment is not our hang."""
    os.symlink("loop", managed + "/loop")
    assert len(links_on_the_way(managed + "/loop")) <= 40


def test_a_task_cannot_come_between_the_launcher_and_its_python() -> None:
    """HLD-15: in a real run nothing that Python looks for at its start can be put beside the interpreter."""
    program = os.path.realpath(sys.executable)
    prefix = os.path.dirname(os.path.dirname(program))
    if prefix in ("/usr", "/usr/local") or os.path.basename(os.path.dirname(program)) != "bin":
        pytest.skip("the system's Python: root's, whose tasks are told apart in the threat model")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as base:
        os.mkdir(base + "/work")
        script = (
            'for f in "$1/lib/python311.zip" "$1/bin/pybuilddir.txt"; do (: >"$f") && echo made "$f" && rm "$f"; done;'
            ' [ -w "$1/bin" ] && echo open; [ -w "$1/lib" ] && echo open; true'
        )
        done = subprocess.run(
            [os.path.join(CLONE, "tidegate"), "run", "--", "sh", "-c", script, "sh", prefix],
            cwd=base + "/work",
            env={**os.environ, "HOME": base},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_clone_in_a_folder_that_tasks_have_of_their_own_is_shown() -> None:
    """HLD-15: read-only inside, and not gone, wherever the clone lies."""
    paths = ("/tmp/clone/src", "/tmpfs/src", "/run/x", "/home/u/src", "/dev/shm/c")
    assert out_of_sight(paths) == ("/tmp/clone/src", "/run/x", "/dev/shm/c")


def test_an_environment_in_a_cache_that_no_task_sees_stays_hidden() -> None:
    """HLD-15: below a home in /tmp, too; a start refused itself there, as if somebody had shared it."""
    paths = ("/tmp/home/.cache/tidegate/environment/srv/c/.venv", "/tmp/clone/src", "/tmp/home/.cache/tidegate-x")
    assert out_of_sight(paths, ("/tmp/home/.cache/tidegate", "/nowhere")) == paths[1:]
