"""A written action log for the tests of the chain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tidegate.journal.actions import ActionLog
from tidegate.journal.verify import Verified, verify

AT = 1795910400.125  # 2026-11-29T00:00:00.125Z


class Written:
    """A log below a folder, what it warned of, and a look at it."""

    def __init__(self, base: Path) -> None:
        self.folder = base / "log"
        self.keys = base / "keys"
        self.keys.mkdir(exist_ok=True)
        self.live = self.folder / "actions.jsonl"
        self.warned: list[str] = []

    def open(self, **options: Any) -> ActionLog:
        """Open it as a server does."""
        return ActionLog(str(self.folder), str(self.keys), clock=lambda: AT, warn=self.warned.append, **options)

    def write(self, count: int, **options: Any) -> None:
        """Write lines and close."""
        log = self.open(**options)
        for number in range(count):
            log.append("net.blocked", f"t{number}", host=f"h{number}.test:443")
        log.close()

    def verify(self) -> Verified:
        """Look at it."""
        return verify(str(self.folder), str(self.keys))

    def lines(self) -> list[bytes]:
        """Return the lines of the live file."""
        return self.live.read_bytes().splitlines(keepends=True)

    def found(self) -> list[tuple[int, str]]:
        """Return line and first words of each finding."""
        return [(one.line, one.what) for one in self.verify().findings]
