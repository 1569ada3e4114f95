"""arguments.py: what people add to their own launcher."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import pytest

from tidegate.holds.container.arguments import launcher_arguments

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_they_leave_the_container_nothing(tmp_path: Path, engine: str) -> None:
    """No network, no right, the task's label; the files that are named are there (HLD-4, HLD-13)."""
    folder = tmp_path / "with blank"
    folder.mkdir()
    (line,) = launcher_arguments(engine, "task-1", str(folder), {"HTTP_PROXY": "http://127.0.0.1:3128"})
    words = shlex.split(line)
    pairs = list(zip(words, words[1:], strict=False))  # noqa: RUF007  as one reads it
    for wanted in (("--network", "none"), ("--label", "tidegate.run=task-1"), ("--cap-drop", "ALL")):
        assert wanted in pairs
    variables = words[words.index("--env-file") + 1]
    with open(variables, encoding="ascii") as file:
        assert file.read() == "HTTP_PROXY=http://127.0.0.1:3128\n"
    assert os.stat(variables).st_mode & 0o777 == 0o600
    assert any("dst=/etc/resolv.conf,readonly" in word for word in words)
