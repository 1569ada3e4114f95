"""In a real container, made by runc with what Docker gives one: `run` works, or says how to start the container."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.holds import held
from tests.product import REPOSITORY

CONTAINER = os.path.join(held.HERE, "container.py")
RUN = [sys.executable, "-I", f"{REPOSITORY}/scripts/launcher/boot.py", str(REPOSITORY), sys.prefix, "run", "--"]


def run_inside(wishes: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `tidegate run` in a container with these wishes (container.py)."""
    if os.geteuid() != 0:
        pytest.skip("runc makes such a container for root only")
    if not shutil.which("runc"):
        pytest.skip("runc is not installed (scripts/setup installs it as root)")
    argv = [sys.executable, CONTAINER, wishes, *RUN[:-1], *options, "--", "/bin/echo", "it ran"]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
@pytest.mark.xdist_group("container")
@pytest.mark.parametrize(
    ("wishes", "fix"),
    [
        ("smc", "--security-opt seccomp=unconfined"),
        ("mc", "--security-opt systempaths=unconfined"),
        ("m", "--cap-add SETFCAP"),
    ],
)
def test_a_container_that_does_not_let_it_is_told_how_to(wishes: str, fix: str) -> None:
    """Exit 78, one line with the option that the container lacks, and nothing ran (HLD-7, HLD-12)."""
    done = run_inside(wishes)
    assert (done.returncode, done.stdout) == (78, ""), done.stderr
    assert done.stderr.count("\n") == 1
    assert fix in done.stderr


@pytest.mark.slow
@pytest.mark.xdist_group("container")
def test_a_container_that_lets_it_holds_tasks() -> None:
    """The neighbour: with both options the command runs, behind its gate and with its connections captured (HLD-1)."""
    done = run_inside("c")
    assert (done.returncode, done.stdout) == (0, "it ran\n"), done.stderr


@pytest.mark.slow
@pytest.mark.xdist_group("container")
@pytest.mark.parametrize("wishes", ["smc", "mc", "m", "c"])
def test_the_hold_without_namespaces_works_in_each(wishes: str) -> None:
    """Where `netns` says what the container lacks, `landlock` runs the command, as it names itself (HLD-2, HLD-12)."""
    held.need("landlock")
    done = run_inside(wishes, "--hold", "landlock")
    assert (done.returncode, done.stdout) == (0, "it ran\n"), done.stderr
    if wishes != "c":
        assert "--hold landlock" in run_inside(wishes).stderr
