"""The product as a person runs it: `./tidegate` in a folder and a home of its own, as root or as an ordinary user."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.lab.api import as_user

if TYPE_CHECKING:
    from types import TracebackType

REPOSITORY = Path(__file__).resolve().parent.parent
LAUNCHER = str(REPOSITORY / "tidegate")
PYTHON = os.path.realpath(sys.executable)
"""A Python that a task sees wherever this clone lies: the clone may be in /tmp, and a task's /tmp is its own."""
PATIENCE = 180.0
"""Seconds for what a program of a test is to do: a bound for what hangs, no measure. On a machine with ten times more
to do than processors, five seconds of work take a minute."""


class Started(subprocess.Popen[str]):
    """A program of a test. Where the body of its `with` fails, it is killed: nobody is left to tell it to end."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for it, or end it."""
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, trace)


class Product:
    """Runs `./tidegate run` in `folder` with `home` as HOME; as uid 12345 where `user` is true and we are root."""

    def __init__(self, root: Path, *, user: bool) -> None:
        self.user = user and os.geteuid() == 0
        self.home = root / "home"
        self.folder = self.home / "project"
        self.folder.mkdir(parents=True)
        # as_user hands over the home folder itself; what is in it is made before it runs.
        for path in (self.home, self.folder):
            if self.user:
                os.chown(path, 12345, 12345)
        self.environment = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
        }

    def argv(self, *words: str) -> list[str]:
        """Return the command line of `./tidegate WORDS` as this product's user."""
        argv = [LAUNCHER, *words]
        return as_user(argv, str(self.home)) if self.user else argv

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """Start `./tidegate run WORDS` and return it."""
        defaults: dict[str, Any] = {
            "cwd": self.folder,
            "env": self.environment,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
        }
        return Started(self.argv("run", *words), **(defaults | options))

    def run(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run `./tidegate run WORDS` to its end."""
        timeout = options.pop("timeout", PATIENCE)
        process = self.start(*words, **options)
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            process.communicate()
            raise
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def tidegate(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run `./tidegate WORDS` to its end."""
        defaults: dict[str, Any] = {
            "cwd": self.folder,
            "env": self.environment,
            "stdin": subprocess.DEVNULL,
            "capture_output": True,
            "text": True,
            "timeout": PATIENCE,
        }
        return subprocess.run(self.argv(*words), check=False, **(defaults | options))

    @property
    def state(self) -> Path:
        """Return the folder of tidegate's records."""
        return self.home / ".local" / "state" / "tidegate"
