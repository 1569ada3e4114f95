"""tidegate.runtime.installation."""

from __future__ import annotations

import os
import sys

from tidegate.runtime.installation import installation_paths

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
    paths = installation_paths()
    assert len(set(paths)) == len(paths)
    assert not any(a != b and a.startswith(b + "/") for a in paths for b in paths)
