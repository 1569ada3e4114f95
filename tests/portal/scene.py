"""Real tasks to look at: one that works and is refused now and then, some that wait for a person, some that ended."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tests.product import PYTHON
from tests.served import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.portal.kit import Visit
    from tests.served import Served

ADDRESS = "1.2.3.4"
HOSTS = ("pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "github.com", "api.stripe.com", "cdn.example.com")
LOOK_ALIKE = "xn--pypi-kmd.org"

BUSY = """
import itertools, sys, time, urllib.request
hosts = ("registry.npmjs.org", "github.com", "registry.npmjs.org", "telemetry.example.net", "registry.npmjs.org")
for number in itertools.count():
    try:
        urllib.request.urlopen(f"http://{hosts[number % 5]}/{number}", timeout=5).read()
    except OSError:
        pass
    time.sleep(0.1 + (number * 7 % 11) / 6)
"""


class Picture(NamedTuple):
    """One page to take: its name, its address, when it is ready, and whether all of it is wanted."""

    name: str
    address: str
    ready: Callable[[Visit], object]
    whole: bool = True


class Scene:
    """The tasks; as a context manager they end with it."""

    def __init__(self, lab: Lab, served: Served, *, seconds: float = 45.0) -> None:
        """Prepare the lab. The tasks begin when somebody is there (`play`); `seconds` is how long they work first."""
        self._served = served
        self._seconds = seconds
        self._running: list[subprocess.Popen[str]] = []
        self._panel = ""
        for host in (*HOSTS, LOOK_ALIKE, "telemetry.example.net"):
            lab.dns.set(host, A=[ADDRESS])
        lab.origin("download", ADDRESS, 80, size=48_000)
        lab.origin("silent", ADDRESS, 443)

    def play(self, visit: Visit) -> None:
        """Begin, where that is not done yet: from here on somebody is there."""
        if self._running:
            return
        self._remember(visit)
        for host in ("api.example.org", "downloads.example.org"):
            self._start("once", f"http://{host}/", "--deny", "*.example.org").communicate(timeout=60)
        self._start("shop", BUSY, "--allow", "registry.npmjs.org:80", "--allow", "github.com:80", program=True)
        self._panel = until(lambda: self._task("shop"))
        self._start("shop", "https://api.stripe.com/v1/charges")
        self._start("import", f"https://{LOOK_ALIKE}/simple/", "--phase", "install")
        self._start("import", "http://cdn.example.com:8443/fonts.css")
        self._served.tidegate("task", "create", "--name", "Nightly report", "--folder", str(self._folder("report")))
        for host in ("api.stripe.com", LOOK_ALIKE, "cdn.example.com"):
            visit.card(host).wait_for()
        time.sleep(self._seconds)  # the bars show time as it passes

    def _remember(self, visit: Visit) -> None:
        for folder, host in (("shop", "pypi.org"), ("shop", "files.pythonhosted.org"), ("report", "github.com")):
            task = self._start(folder, f"http://{host}/", "--ask-for", host, "--deny", f"*.{host}")
            visit.card(host).get_by_role("button", name="Always in this folder").click()
            task.communicate(timeout=60)

    def _folder(self, name: str) -> Any:
        folder = self._served.product.home / name
        folder.mkdir(exist_ok=True)
        return folder

    def _start(self, folder: str, what: str, *words: str, program: bool = False) -> subprocess.Popen[str]:
        product = self._served.product
        command = [PYTHON, "-c", what] if program else ["curl", "--silent", "--max-time", "900", what]
        task = subprocess.Popen(
            product.argv("run", "--wait", "--quiet", *words, "--", *command),
            cwd=self._folder(folder),
            env=product.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._running.append(task)
        return task

    def _task(self, folder: str) -> str:
        found = self._served.json("task", "list")
        tasks = found["tasks"] if isinstance(found, dict) else found
        return next((one["id"] for one in tasks if one["folder"].endswith(folder) and one["state"] == "living"), "")

    def pages(self) -> list[Picture]:
        """Return what there is to take."""
        return [
            Picture("home", "", lambda visit: visit.page.locator(".card[data-front]").wait_for()),
            Picture("tasks", "tasks", lambda visit: visit.page.locator(".tasks li").first.wait_for()),
            Picture("task", f"task/{self._panel}", lambda visit: visit.page.locator(".line").first.wait_for()),
            Picture("rules", "rules", lambda visit: visit.page.locator(".rules li").first.wait_for()),
            Picture("log", "log", lambda visit: visit.page.locator("[data-ok]").wait_for(), whole=False),
            Picture("settings", "settings", lambda visit: visit.page.locator("#wait").wait_for()),
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._running:
            task.terminate()
        for task in self._running:
            task.communicate(timeout=60)
