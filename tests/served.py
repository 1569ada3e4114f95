"""A running server of the product, as a person starts it: `./tidegate serve` beside the product's `run`s."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import IO, TYPE_CHECKING, Any, Self

from tests.product import PATIENCE, Started

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.product import Product


def until(condition: Callable[[], Any], what: object = "it did not happen") -> Any:
    """Wait until something is so, and return it; `what` is printed where it is not."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, str(what)
        time.sleep(0.01)
    return found


def hear(stream: IO[str] | None, words: str) -> str:
    """Read lines until one has these words, and return it; an end before that fails the test."""
    assert stream is not None
    while words not in (line := stream.readline()):
        assert line, f"it ended without {words!r}"
    return line


class Served:
    """`./tidegate serve WORDS` as a child of the test; in the end it is told to end, and waited for."""

    def __init__(self, product: Product, *words: str) -> None:
        self.product = product
        self.state: Path = product.state
        self.process = self._start(words)
        try:
            self.info = json.loads(until(self._announced))
        except BaseException:
            self._end()
            raise
        self.pid = int(self.info["pid"])

    def _start(self, words: tuple[str, ...]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.product.argv("serve", *words),
            cwd=self.product.folder,
            env=self.product.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _announced(self) -> str:
        assert self.process.poll() is None, self.process.stdout and self.process.stdout.read()
        try:
            text = (self.state / "run" / "server.json").read_text()
        except FileNotFoundError:
            return ""
        return text if os.path.exists(f"/proc/{json.loads(text)['pid']}") else ""  # not one that was killed

    def kill(self) -> None:
        """End it as a crash would."""
        os.kill(self.pid, signal.SIGKILL)
        self.process.communicate(timeout=PATIENCE)

    def stop(self) -> str:
        """Tell it to end; return what it said."""
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
        out, _ = self.process.communicate(timeout=PATIENCE)
        return out

    def _end(self) -> None:
        # Nobody is left who would: neither the program nor its pipe may be.
        self.process.kill()
        self.process.wait(PATIENCE)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def tidegate(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run `./tidegate WORDS` to its end."""
        return self.product.tidegate(*words, **options)

    def json(self, *words: str) -> Any:
        """Return what a command prints as JSON."""
        done = self.tidegate(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """Start `./tidegate WORDS`."""
        defaults: dict[str, Any] = {
            "cwd": self.product.folder,
            "env": self.product.environment,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
        }
        return Started(self.product.argv(*words), **(defaults | options))

    def actions(self) -> list[dict[str, Any]]:
        """Return the lines of the action log."""
        path = self.state / "log" / "actions.jsonl"
        return [json.loads(line) for line in path.read_bytes().splitlines()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        except BaseException:
            self._end()
            raise
