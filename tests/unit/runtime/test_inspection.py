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
from tidegate.runtime import inspection
from tidegate.runtime.inspection import CODINGS, PACKAGES, make_reading, missing, only_registries, wants_inspection

if TYPE_CHECKING:
    from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
REGISTRIES = join(load_policy(b"registries: read", "p", Layer.USER))
READ = join(load_policy(b"network: {runtime: {allow: [{host: a.test, methods: [GET]}]}}", "p", Layer.COMMAND_LINE))


def test_it_is_made_for_what_is_read_only() -> None:
    """INS-1: no authority without a rule with methods or paths."""
    assert wants_inspection(REGISTRIES)  # the presets of its profile
    assert not wants_inspection(join(command_line(profile="closed")))
    assert make_reading(join(command_line(allow=["a.test"], profile="closed")), "t", "", time.time) is None  # noqa: TID251
    reading = make_reading(READ, "t", "", time.time)  # noqa: TID251
    assert wants_inspection(READ)
    assert reading is not None
    assert reading.inspector.covers(canonical_host("a.test"))
    assert [text.startswith("-----BEGIN CERTIFICATE-----") for text in reading.authority] == [True]


def test_what_a_task_can_do_without() -> None:
    """INS-7, INS-8: registries alone; what a person's rule or an agent's model service asks for is needed."""
    assert only_registries(REGISTRIES)
    assert not only_registries(READ)
    assert not only_registries(REGISTRIES.replace(guarded=(("api.a.test", 443),)))


def test_nothing_heavy_is_loaded_before_the_first_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-1, INS-7: a start loads no library; without the packages it fails and says what to do."""
    program = (
        "import sys, time\nfrom tidegate.model.destination import Destination\n"
        "from tidegate.model.host import canonical_host\nfrom tidegate.model.rule import Layer\n"
        "from tidegate.policy.layers import PolicyLayer, join\n"
        "from tidegate.runtime.inspection import make_reading\n"
        "policy = join(PolicyLayer(Layer.USER, 'u', registries='read'))\n"
        "reading = make_reading(policy, 't', '', time.time)\nhost = canonical_host('pypi.org')\n"
        "assert reading.inspector.covers(host)\n"
        "heavy = lambda: [name for name in ('cryptography', 'ssl', 'h2') if name in sys.modules]\n"
        "print(heavy())\nreading.inspector.client(Destination(host, 443), b'')\nprint(heavy())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(tidegate.__file__))},
    )
    assert done.stdout.splitlines() == ["[]", "['cryptography', 'ssl']"], done.stderr
    monkeypatch.setattr(inspection, "missing", lambda: ["h2"])
    with pytest.raises(StartError, match=r"has hosts read, and .*not installed \(h2\)") as caught:
        make_reading(READ, "t", "", time.time)  # noqa: TID251
    assert "cryptography" in caught.value.fix
    with pytest.raises(StartError, match="package registries are read-only") as caught:
        make_reading(REGISTRIES, "t", "", time.time)  # noqa: TID251
    assert "or --registries tunnel" in caught.value.fix


def test_what_is_missing_is_looked_for_without_loading_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-7: folders of that name along the path, or what is loaded already."""
    assert missing() == []
    for name in [*sys.modules]:
        if name.partition(".")[0] in PACKAGES:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert missing() == list(PACKAGES)
    (tmp_path / "h2").mkdir()
    assert missing() == ["cryptography"]


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


def test_the_packages_are_those_that_are_installed() -> None:
    """INS-7: what is looked for is what pyproject and the launcher's set-up install."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)["project"]
    assert set(PACKAGES.values()) < set(project["dependencies"])
    assert project["optional-dependencies"]["inspect"] == list(CODINGS)
