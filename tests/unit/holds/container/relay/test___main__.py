"""The program as a folder, run by its name, with nothing of this repository to be found."""

from __future__ import annotations

import subprocess
import sys

from tests.unit.holds.container.relay.running import PATIENCE, argv, program


def test_a_role_that_is_none_is_usage() -> None:
    """HLD-16: status 2 and the roles."""
    done = subprocess.run(argv("gate"), capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (2, "")
    assert "worker FOLDER PORT GRACE" in done.stdout


def test_it_imports_little_of_ours_and_little_else() -> None:
    """The rule in its head: any Python of an image runs it; TLS is loaded only by the role that has it."""
    code = "import sys, runpy; runpy.run_path(sys.argv[1], run_name='relay'); print(*sorted(sys.modules))"
    words = [sys.executable, "-I", "-S", "-B", "-c", code, program()]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=PATIENCE)
    loaded = set(done.stdout.split())
    own = "tidegate.holds.container.relay"
    shared = {"tidegate.holds.inside", "tidegate.model", "tidegate.model.caught", "tidegate.model.value"}
    assert {name for name in loaded if name.split(".")[0] == "tidegate" and not own.startswith(name)} == shared | {
        f"{own}.{name}" for name in ("caught", "ends", "far", "pairs", "roles", "rules", "words", "worker")
    }
    assert not {name for name in loaded if name.split(".")[0] in {"ssl", "asyncio", "subprocess"}}
