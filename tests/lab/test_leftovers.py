"""Proves that a test which fails in its middle fails alone (tests/leftovers.py)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from tests.lab.api import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

FAILS = {
    "body": """
        def test_it():
            held = leak()
            assert not held
        """,
    "chained": """
        def test_it():
            held = leak()
            try:
                raise OSError
            except OSError:
                held.append(leak())
                assert not held
        """,
    "fixture": """
        @pytest.fixture
        def held():
            held = leak()
            yield held
            assert not held

        def test_it(held):
            assert held
        """,
    "both": """
        @pytest.fixture
        def held():
            held = leak()
            yield held
            held.append(leak())

        def test_it(held):
            assert not held
        """,
    "set-up": """
        @pytest.fixture
        def held():
            held = leak()
            raise OSError(held)

        def test_it(held):
            pass
        """,
    "waits": """
        @pytest.fixture
        def peer():
            ours, theirs = socket.socketpair()
            ours.settimeout(60)
            yield theirs
            assert ours.recv(1) == b""  # once nobody holds the other end
            ours.close()

        def test_it(peer):
            held = socket.socket(fileno=peer.detach())
            assert not held
        """,
    "nothing": """
        def test_it():
            pass
        """,
    "passes": """
        def test_it():
            held = leak()
        """,
}
HEAD = """
import os, socket, subprocess, sys
import pytest

def leak():
    child = subprocess.Popen(["sleep", "1000"], stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    with open({pids!r}, "a") as file:
        file.write(f"{{child.pid}}\\n")
    return [child, socket.socket(), open(os.devnull), socket.socketpair()]
"""
AFTER = "\ndef test_the_next():\n    pass\n"


@pytest.mark.parametrize("kind", FAILS)
def test_one_failure_is_one_failure(tmp_path: Path, kind: str) -> None:
    """The next test passes, no program lives on; neighbours: nothing is made of it, and who passes must close."""
    pids = tmp_path / "pids"
    pids.touch()
    (tmp_path / "test_inner.py").write_text(HEAD.format(pids=str(pids)) + textwrap.dedent(FAILS[kind]) + AFTER)
    argv = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-c", os.devnull, "--rootdir", str(tmp_path)]
    argv += ["-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:schemathesis", "-p", "tests.leftovers"]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": REPOSITORY, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*argv, "test_inner.py"], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    started = [int(line) for line in pids.read_text().split()]
    living = [pid for pid in started if os.path.exists(f"/proc/{pid}")]
    for pid in living:
        os.kill(pid, signal.SIGKILL)
    last = done.stdout.strip().rpartition("\n")[2]
    expected = {"nothing": "2 passed", "fixture": "2 passed, 1 error", "set-up": "1 passed, 1 error"}
    if kind == "passes":
        assert "failed" in last
        return
    assert last.startswith(f"{expected.get(kind, '1 failed, 1 passed')} in "), done.stdout
    assert living == [], done.stdout
    assert done.returncode == (0 if kind == "nothing" else 1)
