"""The table as one file runs wherever it is put, without tidegate around it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tidegate.doctor.escapes.bundle import write_bundle

if TYPE_CHECKING:
    from pathlib import Path


def test_the_bundle_runs_the_rows_it_is_asked_for(tmp_path: Path) -> None:
    """A bare Python that knows no tidegate runs the rows that are named, and no other."""
    path = str(tmp_path / "table.pyz")
    write_bundle(path)
    held = {"hold": "netns", "rows": ["socketpair_of_another_family", "no_rights"]}
    done = subprocess.run(
        [sys.executable, "-I", "-S", path],
        env={"HELD": json.dumps(held)},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert sorted(json.loads(done.stdout)) == sorted(held["rows"])
