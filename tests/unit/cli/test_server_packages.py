"""The packages of the server: looked for, installed once, or named."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

from tidegate.cli import server_packages
from tidegate.cli.server_packages import PACKAGES, STAMP, ensure
from tidegate.model.errors import EXIT_CANNOT_START, StartError

if TYPE_CHECKING:
    from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SOURCE = os.path.join(ROOT, "src")


def test_pyproject_names_the_same() -> None:
    """HLD-7: what ./tidegate installs is what `pip install tidegate[server]` does."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        extra = tomllib.load(file)["project"]["optional-dependencies"]["server"]
    assert extra == list(PACKAGES.values())


def test_nothing_is_done_where_they_are_there() -> None:
    """HLD-7: an environment that has them is left alone and nothing is said."""
    ensure(pytest.fail)


def test_a_foreign_environment_is_not_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """HLD-7: where tidegate did not make the environment, the line names what to run; exit 78."""
    monkeypatch.setattr(server_packages.sys, "executable", str(tmp_path / "bin" / "python"))
    with pytest.raises(StartError) as caught:
        ensure(pytest.fail, {"no_such_module_at_all": "no-such>=1"})
    assert caught.value.exit_status == EXIT_CANNOT_START
    assert "pip install 'no-such>=1'" in caught.value.fix


def _own(tmp_path: Path) -> Path:
    """An environment with tidegate's stamp, and a pip in it that copies the module it is asked for."""
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    (tmp_path / "env" / STAMP).touch()
    (tmp_path / "modules").mkdir()
    return python


@pytest.mark.parametrize("works", [True, False])
def test_its_own_environment_gets_them(tmp_path: Path, *, works: bool) -> None:
    """HLD-7: tidegate's own environment gets what is missing, with one line said; a failure names pip's word."""
    python = _own(tmp_path)
    install = "echo x = 1 > $HERE/modules/fresh_module.py" if works else "echo 'ERROR: no network' >&2; exit 1"
    python.write_text(f'#!/bin/sh\nHERE={tmp_path}\necho "$*" >> $HERE/asked\n{install}\n')
    python.chmod(0o755)
    program = (
        "import sys; from tidegate.cli.server_packages import ensure\n"
        "from tidegate.model.errors import StartError\n"
        f"sys.path.append({str(tmp_path / 'modules')!r}); sys.executable = {str(python)!r}\n"
        "try:\n    [ensure(print, {'fresh_module': 'fresh>=1'}) for _ in range(2)]\n"
        "except StartError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "installing the server's packages (first use)"
    assert (tmp_path / "asked").read_text().count("fresh>=1") == 1
    if works:
        assert lines[1:] == []
    else:
        assert "no network" in lines[1]


_FAILS = """
import os, sys
sys.path.append(sys.argv[1])
sys.executable = sys.argv[2]
from tidegate.cli.server_packages import ensure
from tidegate.model.errors import StartError
for wanted, age in ((("fresh>=1", 0), ("fresh>=1", 0), ("other>=1", 0), ("other>=1", 61), ("other>=1", -5))):
    note = os.path.dirname(os.path.dirname(sys.executable)) + "/tidegate-tried"
    if age and os.path.exists(note):
        then = os.stat(note).st_mtime - age
        os.utime(note, (then, then))
    try:
        ensure(print, {"no_such_module_at_all": wanted}, "them", ("helps>=2",))
    except StartError as error:
        print(error.what, error.code)
"""


def test_what_failed_is_not_tried_again_at_once(tmp_path: Path) -> None:
    """HLD-7, INS-7: pip tries once, with what only helps or without; for a minute the same fails with nothing run."""
    python = _own(tmp_path)
    python.write_text(
        f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\n'
        "wanted=$(echo \"$*\" | grep -o '[a-z]*>=1')\n"
        "printf 'WARNING: x\\nERROR: No matching distribution for %s \\033[1m\\n' \"$wanted\" >&2\nexit 1\n"
    )
    python.chmod(0o755)
    argv = [sys.executable, "-c", _FAILS, str(tmp_path / "modules"), str(python)]
    done = subprocess.run(argv, env={"PYTHONPATH": SOURCE}, capture_output=True, text=True, check=False, timeout=60)
    begun = "installing them (first use)"
    failed = "them could not be installed{} (No matching distribution for {}>=1 \\x1b[1m) packages"
    assert done.stdout.splitlines() == [
        begun, failed.format("", "fresh"), failed.format(" just now", "fresh"),
        begun, failed.format("", "other"),
        begun, failed.format("", "other"),  # after a minute
        begun, failed.format("", "other"),  # a note from the future is none
    ], done.stderr  # fmt: skip
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [("--retries 0 --timeout 5" in line, "helps>=2" in line) for line in asked] == [(True, True)] * 4


def test_a_pip_that_takes_them_for_there_is_not_believed(tmp_path: Path) -> None:
    """HLD-7: where somebody removed modules and left pip's note of them, the line says what mends that."""
    python = _own(tmp_path)
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o755)
    program = (
        "import sys\nsys.path.insert(0, sys.argv[1])\nsys.executable = sys.argv[2]\n"
        "from tidegate.cli.server_packages import ensure\n"
        "from tidegate.model.errors import StartError\n"
        "try:\n    ensure(print, {'no_such_module_at_all': 'no-such>=1'})\n"
        "except StartError as error:\n    print(error.what, error.fix, sep='\\n')\n"
    )
    argv = [sys.executable, "-c", program, SOURCE, str(python)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    said = done.stdout.splitlines()
    assert said[1] == "the server's packages cannot be loaded", done.stderr
    assert said[2].endswith(f"remove {python.parent.parent}, which is made anew")


def test_what_comes_along_is_not_missed(tmp_path: Path) -> None:
    """INS-5: a package that only helps is tried with the others, and they are installed where it cannot be."""
    python = _own(tmp_path)
    here = f"HERE={tmp_path}"
    python.write_text(
        f'#!/bin/sh\n{here}\necho "$*" >> $HERE/asked\n'
        'case "$*" in *helps*) exit 1;; esac\necho x = 1 > $HERE/modules/fresh_module.py\n'
    )
    python.chmod(0o755)
    program = (
        "import sys; from tidegate.cli.server_packages import ensure\n"
        f"sys.path.append({str(tmp_path / 'modules')!r}); sys.executable = {str(python)!r}\n"
        "ensure(print, {'fresh_module': 'fresh>=1'}, 'them', ('helps>=2',))\n"
    )
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": SOURCE}, check=True, timeout=60)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [("fresh>=1" in line, "helps>=2" in line) for line in asked] == [(True, True), (True, False)]
