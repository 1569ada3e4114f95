"""A person with a launcher of their own, an engine, and a server of tidegate's: for tests of what outlives a server."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engines import IMAGE
from tests.product import Product
from tests.served import Served

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 120


class Launcher:
    """A person with a launcher of their own, an engine, and a server of tidegate's."""

    def __init__(self, root: Path, name: str, environment: dict[str, str]) -> None:
        self.product = Product(root, user=False)
        self.product.environment |= environment
        self.name = name
        self.environment = {**os.environ, **environment}
        self.containers: list[str] = []
        self.server = Served(self.product)

    def attach(self, container: str, task: str) -> subprocess.Popen[str]:
        """Start `attach` and wait until the gate is there."""
        argv = self.product.argv("attach", "--container", container, "--task", task)
        process = subprocess.Popen(
            argv, cwd=self.product.folder, env=self.product.environment, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "is behind the gate" in line, line + process.stderr.read()
        return process

    def engine(self, *arguments: str) -> str:
        """Have the engine do something."""
        argv = [self.name, *arguments]
        done = subprocess.run(argv, env=self.environment, capture_output=True, text=True, check=False, timeout=PATIENCE)
        return done.stdout + done.stderr

    def launch(self, *options: str) -> str:
        """Start a container with these options."""
        made = self.engine("run", "-d", *options, IMAGE, "sleep", "1000").split()[-1]
        self.containers.append(made)
        return made

    def remove(self, container: str) -> None:
        """End a container at once."""
        self.engine("rm", "-f", *(("--time", "0") if self.name == "podman" else ()), container)

    def close(self) -> None:
        """End everything."""
        for container in self.containers:
            self.remove(container)
        self.server.stop()


@pytest.fixture
def launcher(engine: tuple[str, dict[str, str]]) -> Iterator[Launcher]:
    """One person, one engine, one server; all of it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tidegate-attach-test-", dir="/var/tmp") as root:
        made = Launcher(Path(root), *engine)
        with contextlib.closing(made):
            yield made
