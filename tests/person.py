"""A person who runs `./tidegate run --ask` in a terminal window, looks at it and presses keys."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pyte

from tests.unit.runtime.pty_session import PATIENCE, Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.product import Product

READY = "Press a key"


class Person(Session):
    """One window with a terminal emulator in it. `raw` is all that the terminal was ever sent."""

    def __init__(self, *argv: str, rows: int = 24, columns: int = 80, env: dict[str, str] | None = None) -> None:
        super().__init__(*argv, rows=rows, columns=columns, env=env)
        self.raw = bytearray()
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)

    @classmethod
    def at(cls, product: Product, *words: str, **options: Any) -> Person:
        """Run `./tidegate WORDS` in the product's folder."""
        line = 'cd "$1"; shift; exec "$@"'
        return cls(
            "sh", "-c", line, "sh", str(product.folder), *product.argv(*words), env=product.environment, **options
        )

    @property
    def text(self) -> str:
        """What the window shows now."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def look(self, seconds: float = 0.05) -> str:
        """Take what comes within that time, and return what the window shows."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not self._read(left):
                break
            self._show()
        self._show()
        return self.text

    def _show(self) -> None:
        data, self.seen = self.seen, b""
        self.raw += data
        self._stream.feed(data)

    def sees(self, *texts: str, patience: float = PATIENCE) -> str:
        """Wait until the window shows all of these texts."""
        return self.sees_that(lambda shown: all(text in shown for text in texts), str(texts), patience)

    def sees_that(self, true: Callable[[str], object], what: str, patience: float = PATIENCE) -> str:
        """Wait until something is true of what the window shows."""
        end = time.monotonic() + patience
        while not true(self.look()):
            assert time.monotonic() < end, f"not seen: {what}\n{self.text}\n{bytes(self.raw[-2000:])!r}"
        return self.text

    def press(self, key: str) -> None:
        """Press one key once keys count, as a person does: after a moment."""
        self.sees(READY)
        self.look(0.2)
        self.type(key)

    def end(self) -> int:
        """Wait for the end and return the exit status."""
        end = time.monotonic() + PATIENCE
        while self._read(end - time.monotonic()):
            assert time.monotonic() < end, f"it does not end:\n{self.text}"
            self._show()
        self._show()
        return self.wait()
