"""Who reached what: the charts of the first page and of a task (SRV-3)."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.portal.kit import Visit
    from tests.served import Served

ROWS = """() => [...document.querySelectorAll(".reach tbody tr")].map((row) => [
  ...[...row.children].map((cell) => cell.textContent).filter(Boolean),
  [...row.querySelectorAll("rect")].map((bar) => Math.round(bar.getAttribute("width"))).join(),
].join(" "))"""


def test_each_host_has_a_bar_and_its_numbers(visit: Callable[..., Visit], served: Served, lab: Lab) -> None:
    """SRV-3: what passed and what was refused, of all tasks and of one, while it lives and when it has ended."""
    lab.dns.set("a.test", A=["1.2.3.9"])
    lab.origin("http", "1.2.3.9", 80)
    page = visit()
    page.go("")
    assert page.page.locator(".reach").is_hidden()
    get = "curl -s http://a.test/"
    line = f"{get}; {get}; {get}; curl -s http://b.test/; echo ready; read -r _; {get}"
    words = ("run", "--quiet", "--allow", "a.test", "--", "sh", "-c", line)
    task = served.start(*words, stdin=subprocess.PIPE)
    assert task.stdout is not None
    while "ready" not in task.stdout.readline():
        assert task.poll() is None
    page.wait(
        f"() => ({ROWS})().map((row) => row.split(' ').slice(0, 3).join(' ')).join() === 'a.test:80 3 –,b.test:80 – 1'"
    )
    assert page.page.evaluate(ROWS)[1].endswith("0,33")  # a third as long, and red
    (one,) = served.json("task", "list")
    page.go(f"task/{one['id']}")
    page.wait(f"() => ({ROWS})().length === 2")
    task.communicate("\n", timeout=120)
    page.go("")
    page.go(f"task/{one['id']}")
    page.wait(f"() => (({ROWS})()[0] || '').startsWith('a.test:80 4 –')")
    caption = page.page.locator(".reach caption").inner_text()
    assert caption == "What it reached"
