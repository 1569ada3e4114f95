"""Columns with JSON: there and back, and nothing is loaded before there is some."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.state.columns import dumps, loads

SOURCE = str(Path(__file__).parents[3] / "src")


@pytest.mark.parametrize("value", [["a", "ü"], {"x": 1.5}, None, ""])
def test_there_and_back(value: object) -> None:
    """SRV-4: what is written is what is read."""
    assert loads(dumps(value)) == value


def test_what_is_no_json_is_an_error() -> None:
    """SRV-4: a damaged column is not taken for an empty one."""
    with pytest.raises(ValueError, match="Expecting"):
        loads("{")


def test_a_look_into_the_store_loads_little(tmp_path: Path) -> None:
    """ASK-8: a `run` of somebody who has a store looks into it twice; re, threads and dates are not loaded for that."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from tidegate.state.sqlite import open_store\n"
        "from tidegate.model.question import FolderKey\n"
        "store = open_store(sys.argv[2]); key = FolderKey('/x', 1, 2)\n"
        "print(store.rules(key), store.trusted(key)); store.close(); print(*sys.modules)"
    )
    argv = [sys.executable, "-I", "-S", "-c", program, SOURCE, str(tmp_path / "state")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    said, loaded = done.stdout.splitlines()
    assert said == "() None"
    assert not {"json", "re", "sqlite3", "threading", "datetime", "contextlib", "urllib", "enum"} & set(loaded.split())
