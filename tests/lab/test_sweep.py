"""Proves what the sweep of the tests' own leftovers takes, and what it leaves (tests/lab/sweep.py)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.lab.sweep import AGE, sweep

if TYPE_CHECKING:
    from pathlib import Path


def test_only_old_folders_of_the_tests_are_removed(tmp_path: Path) -> None:
    """Old ones with what is in them; new ones, other programs' and links stay."""
    now = 1_000_000_000.0
    for name in ("tidegate-hold-1-x", "tidegate-hold-2-y", "tidegate-mine", "other", "tidegate-podman-1"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "file").touch()
    (tmp_path / "tidegate-inside-x").touch()
    (tmp_path / "tidegate-files-link").symlink_to(tmp_path / "other")
    for path in tmp_path.iterdir():
        age = AGE - 10 if path.name == "tidegate-hold-2-y" else AGE + 10
        os.utime(path, (now - age, now - age), follow_symlinks=False)
    removed = sweep((str(tmp_path),), now)
    assert sorted(os.path.basename(path) for path in removed) == [
        "tidegate-hold-1-x",
        "tidegate-inside-x",
    ]
    left = {"tidegate-hold-2-y", "tidegate-mine", "other", "tidegate-podman-1", "tidegate-files-link"}
    assert set(os.listdir(tmp_path)) == left
    assert (tmp_path / "other" / "deep" / "file").exists()
