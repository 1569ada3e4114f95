"""The parsers of wire/ under a coverage-guided fuzzer (issue: every byte a task sends is read by one of them).

Ten minutes for one: `python -m tests.fuzz.run TARGET 600 FOLDER`. What such a run found is in FOUND.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import SEEDS, TARGETS

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 4
# Bytes that once failed, by target; each stays.
FOUND: dict[str, tuple[bytes, ...]] = {}


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_what_was_found_hold(name: str) -> None:
    """GAT-4, GAT-9, HLD-6: whole or byte by byte the same, for what a fuzzer begins with or once found."""
    for data in (b"", *SEEDS[name], *FOUND.get(name, ())):
        TARGETS[name](data)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_the_fuzzer_finds_nothing_in_a_moment(name: str, tmp_path: Path) -> None:
    """GAT-4, GAT-9, HLD-6: a short run with coverage in each CI; a failure prints the bytes."""
    if importlib.util.find_spec("atheris") is None:
        pytest.skip(f"atheris has no wheel for Python {sys.version_info.major}.{sys.version_info.minor}")
    argv = [sys.executable, "-m", "tests.fuzz.run", name, str(SECONDS), str(tmp_path / "corpus")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "DONE" in done.stderr, "the fuzzer ended without having fuzzed"
