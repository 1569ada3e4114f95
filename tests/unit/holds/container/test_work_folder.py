"""work_folder.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.product import REPOSITORY
from tidegate.holds.container.work_folder import WorkFolder, sweep_folders


def test_it_is_private_and_goes() -> None:
    """Only this user may look into it, and it is gone afterwards, asked once or twice."""
    folder = WorkFolder()
    assert os.stat(folder.path).st_mode & 0o777 == 0o700
    with open(os.path.join(folder.path, "file"), "w", encoding="ascii"):
        pass
    folder.remove()
    folder.remove()
    assert not os.path.exists(folder.path)


def test_that_of_a_task_is_in_the_state_folder(tmp_path: Path) -> None:
    """Which every hold hides: a task that shares /tmp does not find another's variables and sockets (GAT-2, HLD-14)."""
    folder = WorkFolder(str(tmp_path / "state"))
    assert Path(folder.path).parent == tmp_path / "state/run/containers"
    assert os.stat(tmp_path / "state").st_mode & 0o777 == 0o700
    assert sweep_folders(str(tmp_path / "state")) == []
    Path(folder.path, "owner").write_text(Path(folder.path, "owner").read_text().rpartition("/")[0] + "/0")
    assert folder.path in sweep_folders(str(tmp_path / "state"))


@pytest.mark.parametrize("whole", [True, False])
def test_one_that_a_crash_left_is_found(tmp_path: Path, whole: bool) -> None:
    """HLD-8: of a process that was killed, also where it is empty yet; those of the living and of others stay."""
    program = (
        "import os, sys; sys.path.insert(0, sys.argv[1]);"
        "from tidegate.holds.container.work_folder import WorkFolder; print(WorkFolder().path); sys.stdout.flush();"
        "os.kill(os.getpid(), 9)"
    )
    if not whole:
        program = program.replace(
            "print(",
            "import tempfile; make = tempfile.mkdtemp;"
            "tempfile.mkdtemp = lambda **k: (print(make(**k)), sys.stdout.flush(), os.kill(os.getpid(), 9));print(",
        )
    argv = [sys.executable, "-I", "-S", "-c", program, f"{REPOSITORY}/src"]
    left = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60).stdout.strip()
    mine = WorkFolder()
    strange = Path(mine.path).parent / f"tidegate-container-{tmp_path.name}"
    strange.mkdir()
    try:
        assert os.path.isdir(left)
        assert left in sweep_folders()
        assert not os.path.exists(left)
        assert os.path.isdir(mine.path)
        assert strange.is_dir()
    finally:
        mine.remove()
        strange.rmdir()
