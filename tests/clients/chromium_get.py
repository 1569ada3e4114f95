"""Run inside a task: open URLs in a headless Chromium and print the text of each page, or the error of its load.

    python chromium_get.py PROFILE WORDS... -- URL...

WORDS are further options of Chromium. It is driven through the DevTools protocol over a pipe (descriptors 3 and 4),
because `--dump-dom` prints nothing where a page did not load. A URL is loaded once, in a tab of its own.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from typing import Any

OPTIONS = (
    "--headless", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps",
)  # fmt: skip
PATIENCE = 30  # seconds for a page


class Browser:
    """One Chromium and the two ends of its pipe."""

    def __init__(self, profile: str, words: list[str]) -> None:
        """Start it."""
        # It takes 3 and 4 for its own, so the pipes' ends are put there before it starts.
        ends = os.pipe(), os.pipe()
        (take, self._out), (self._in, give) = [
            [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in pair] for pair in ends
        ]
        for fd in (fd for pair in ends for fd in pair):
            os.close(fd)
        os.dup2(take, 3)
        os.dup2(give, 4)
        self._process = subprocess.Popen(
            ["chromium", *OPTIONS, f"--user-data-dir={profile}", *words],
            pass_fds=(3, 4), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for fd in (take, give, 3, 4):
            os.close(fd)
        self._buffer = b""
        self._number = 0

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Ask for something and return the answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._buffer:
                part = os.read(self._in, 65536)
                if not part:
                    sys.exit("chromium has ended")
                self._buffer += part
            head, _, self._buffer = self._buffer.partition(b"\0")
            answer = json.loads(head)
            if answer.get("id") == self._number:
                return answer.get("result", {})

    def text(self, url: str) -> str:
        """Return a page's text, or why it did not load."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        error = self.call("Page.navigate", session, url=url).get("errorText")
        if error:
            return str(error)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            code = "document.readyState == 'complete' ? document.body.innerText : null"
            found = self.call("Runtime.evaluate", session, expression=code).get("result", {}).get("value")
            if found is not None:
                return str(found).strip()
            time.sleep(0.05)
        return "no page"

    def close(self) -> None:
        """End it."""
        self.call("Browser.close")
        self._process.wait(20)


def main(words: list[str]) -> None:
    """Print what each URL shows."""
    middle = words.index("--")
    browser = Browser(words[0], words[1:middle])
    for url in words[middle + 1 :]:
        print(browser.text(url))
    browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
