"""A browser on the portal of a running server: opened as a person opens it, and watched for what it must never do.

Every page that is opened here is watched: a request to another origin, an error or a warning in its console (a breach
of the content security policy is one) and an exception of a script fail the test at its end.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

from tests.clients.kit import absent
from tests.clients.table import MODULES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request

    from tests.served import Served

PATIENCE = 60_000  # milliseconds
FLAGS = (
    "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-quic",
)  # fmt: skip
AXE = Path(MODULES) / "axe-core" / "axe.min.js"
_RUN_AXE = """async () => (await axe.run()).violations.map(
  (one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.target.join(" ")).join(", ")}`)"""
_LINE_LOST = ("net::ERR_CONNECTION_REFUSED", "net::ERR_INCOMPLETE_CHUNKED_ENCODING", "net::ERR_CONNECTION_RESET")


class Chromium:
    """Debian's Chromium, headless. One for all tests of a process; each visit has a profile of its own."""

    def __init__(self) -> None:
        """Start it; where it is not on this machine, tests that need it are left out."""
        path = shutil.which("chromium")
        if path is None:
            absent("chromium")
        self._driver = sync_playwright().start()
        flags = [*FLAGS, "--no-sandbox"] if os.geteuid() == 0 else [*FLAGS]
        self.browser: Browser = self._driver.chromium.launch(executable_path=path, headless=True, args=flags)

    def stop(self) -> None:
        """End it."""
        self.browser.close()
        self._driver.stop()


class Visit:
    """One person at one browser. `faults` is what the page did that it must never do."""

    def __init__(self, chromium: Chromium, url: str, **options: Any) -> None:
        """Open a URL that has a one-time code; `options` are those of a browser context."""
        self.faults: list[str] = []
        self.may_lose_the_line = False
        self.context = chromium.browser.new_context(**options)
        self.context.set_default_timeout(PATIENCE)
        self.origin = url.partition("/#")[0]
        self.page: Page = self.context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(f"exception: {error}"))
        self.context.on("request", self._asked)
        self.page.goto(url)
        self.expect_line("live")

    def _said(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        if self.may_lose_the_line and any(word in message.text for word in _LINE_LOST):
            return
        if "status of 4" in message.text:  # the browser notes an answer of the API; that is not the page's fault
            return
        self.faults.append(f"console: {message.text}")

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme != "data" and f"{parts.scheme}://{parts.netloc}" != self.origin:
            self.faults.append(f"request: {request.url}")

    def expect_line(self, state: str) -> None:
        """Wait until the page says that its line to the server is so."""
        self.page.locator(f"#link[data-state={state}]").wait_for()

    def axe(self) -> list[str]:
        """Return what axe finds against the page as it is; where it is not on this machine, the test is left out."""
        if not AXE.exists():
            absent("axe-core")
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text())
        found: list[str] = self.page.evaluate(_RUN_AXE)
        return found

    def go(self, page: str) -> None:
        """Go to a page of the portal by its address."""
        self.page.evaluate("(hash) => { location.hash = hash; }", f"#/{page}")

    def card(self, host: str) -> Locator:
        """Return the open card that asks for this host."""
        return self.page.locator(".card[data-state=open]", has_text=host)

    def wait(self, expression: str, argument: object = None) -> Any:
        """Wait until an expression of the page is true, and return it."""
        return self.page.wait_for_function(expression, arg=argument).json_value()

    def note(self, text: str) -> None:
        """Wait for a note at the foot of the page."""
        self.page.locator(".toast", has_text=text).first.wait_for()

    def shortcut(self, letter: str) -> None:
        """Press Mod+Shift and a letter, once a card is in front and says so."""
        self.page.locator(".card[data-front]").wait_for()
        self.page.keyboard.press(f"Control+Shift+{letter}")

    def close(self) -> None:
        """Leave, and fail where the page did what it must never do."""
        self.context.close()
        assert not self.faults, "\n".join(self.faults)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def portal_url(served: Served, *words: str) -> str:
    """Return what `tidegate portal --print WORDS` prints: the portal's address with a one-time code."""
    done = served.tidegate("portal", "--print", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Curls:
    """Commands of real tasks that reach for a host and wait until a person has answered."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._running: list[subprocess.Popen[str]] = []

    def start(self, url: str, *words: str) -> subprocess.Popen[str]:
        """Start `tidegate run --wait WORDS -- curl URL`."""
        task = self._served.start(
            "run", "--wait", *words, "--", "curl", "--silent", "--show-error", "--max-time", "90", url
        )
        self._running.append(task)
        return task

    def questions(self) -> list[dict[str, Any]]:
        """Return the questions that are open. Who asks for them is there to answer (ASK-4)."""
        done = self._served.tidegate("questions", "--json")
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    @staticmethod
    def result(task: subprocess.Popen[str]) -> tuple[int, str, str]:
        """Wait for one: its exit status, and what it said on both ways."""
        out, err = task.communicate(timeout=120)
        return task.returncode, out, err

    def end(self) -> None:
        """End those that still run."""
        for task in self._running:
            if task.poll() is None:
                task.terminate()
        for task in self._running:
            task.communicate(timeout=60)
