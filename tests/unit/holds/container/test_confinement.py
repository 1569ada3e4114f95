"""confinement.py: a container's rights are none."""

from __future__ import annotations

import itertools
import json
import os
from typing import TYPE_CHECKING

import pytest

from tidegate.holds.container.confinement import check_process, confining
from tidegate.holds.container.engine import DOCKER, PODMAN, Engine
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", [DOCKER, PODMAN])
def test_every_right_is_dropped(tmp_path: Path, name: str) -> None:
    """No capability, no new privileges, our filter, a bound of processes, own IPC and control groups (HLD-13)."""
    options = confining(Engine(name, {}), str(tmp_path))
    pairs = list(itertools.pairwise(options))
    for wanted in (("--cap-drop", "ALL"), ("--security-opt", "no-new-privileges"), ("--ipc", "private")):
        assert wanted in pairs
    assert "--privileged" not in options
    assert ("--http-proxy=false" in options) == (name == PODMAN)
    path = next(text.partition("=")[2] for text in options if text.startswith("seccomp="))
    assert os.stat(path).st_mode & 0o777 == 0o600
    with open(path, encoding="ascii") as file:
        assert json.load(file)["syscalls"]
    assert confining(Engine(name, {}), str(tmp_path)) == options


def test_a_process_with_rights_is_seen() -> None:
    """A first process that has rights, is another one or is gone stops the start (HLD-11)."""
    for pid, before in ((os.getpid(), os.getpid()), (1, 2), (1 << 22, 1 << 22)):
        with pytest.raises(StartError):
            check_process(pid, before)
