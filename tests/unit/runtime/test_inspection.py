"""The inspector of a task is made where a policy asks for it, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tomllib
from typing import TYPE_CHECKING

import pytest

import tidegate
from tidegate.model.errors import StartError
from tidegate.model.host import canonical_host
from tidegate.model.rule import Layer
from tidegate.policy.layers import command_line, join
from tidegate.policy.loader import load_policy
from tidegate.runtime.inspection import CODINGS, PACKAGES, make_reading, wants_inspection

if TYPE_CHECKING:
    from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
READ = join(load_policy(b"network: {runtime: {allow: [{host: a.test, methods: [GET]}]}}", "p", Layer.COMMAND_LINE))


def test_it_is_made_for_what_is_read_only() -> None:
    """INS-1: no authority without a rule with methods or paths."""
    assert not wants_inspection(join())
    assert make_reading(join(command_line(allow=["a.test"])), "t", "", time.time) is None  # noqa: TID251
    reading = make_reading(READ, "t", "", time.time)  # noqa: TID251
    assert wants_inspection(READ)
    assert reading is not None
    assert reading.inspector.covers(canonical_host("a.test"))
    assert [text.startswith("-----BEGIN CERTIFICATE-----") for text in reading.authority] == [True]


def test_nothing_heavy_is_loaded_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-1: a run that reads nothing pays nothing; without the packages the start fails and says what to do."""
    program = (
        "import sys\nfrom tidegate.policy.layers import join\n"
        "from tidegate.runtime.inspection import make_reading\nmake_reading(join(), 't', '', float)\n"
        "print(any(name in sys.modules for name in ('cryptography', 'ssl', 'h2')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(tidegate.__file__))},
    )
    assert done.stdout.strip() == "False", done.stderr
    monkeypatch.setitem(sys.modules, "tidegate.inspect.authority", None)
    with pytest.raises(StartError, match="not installed") as caught:
        make_reading(READ, "t", "", time.time)  # noqa: TID251
    assert "cryptography" in caught.value.fix


def test_the_key_gets_into_no_core(tmp_path: Path) -> None:
    """INS-1: a process that crashes with an authority in it leaves no core; its neighbour without one does."""
    program = (
        "import os, resource, sys, time\nfrom tests.unit.runtime.test_inspection import READ\n"
        "from tidegate.runtime.inspection import make_reading\n"
        "hard = resource.getrlimit(resource.RLIMIT_CORE)[1]\nresource.setrlimit(resource.RLIMIT_CORE, (hard, hard))\n"
        "sys.argv[1] == 'read' and make_reading(READ, 't', '', time.time)\nos.abort()\n"
    )
    cores = []
    for kind in ("read", "plain"):
        process = subprocess.Popen(
            [sys.executable, "-c", program, kind],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((ROOT, os.path.join(ROOT, "src")))},
        )
        _, status = os.waitpid(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert os.WIFSIGNALED(status), status
        cores.append(os.WCOREDUMP(status))
    assert not cores[0]
    if not cores[1]:
        pytest.skip("this machine writes no core of the neighbour either")


def test_the_packages_are_those_of_the_extra() -> None:
    """INS-1: pyproject's extra and what is installed on first use are one list."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        extra = tomllib.load(file)["project"]["optional-dependencies"]["inspect"]
    assert extra == [*PACKAGES.values(), *CODINGS]
