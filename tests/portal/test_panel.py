"""The live panel of a task with real connections: what it shows, how it is filtered, and ten thousand rows (SRV-3)."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.product import PYTHON
from tests.served import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.portal.kit import Visit
    from tests.served import Served

MOST_ROWS = 120  # in the page at once, whatever the list has
MANY = 10_000

REQUESTS = """
import os, socket, sys
host, port = os.environ["HTTP_PROXY"].removeprefix("http://").rstrip("/").rsplit(":", 1)
sock = socket.create_connection((host, int(port)))
answers = sock.makefile("rb")
for number in range(int(sys.argv[1])):
    name = b"h%d.ask.test" % (number % 100)
    sock.sendall(b"GET http://%s/ HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n" % (name, name))
    size = 0
    while (line := answers.readline()) != b"\\r\\n":
        if line.lower().startswith(b"content-length:"):
            size = int(line.split(b":")[1])
    assert answers.read(size) == b"hello\\n"
print("done", flush=True)
sys.stdin.read()
"""


def _task_of(served: Served) -> str:
    return str(until(lambda: next((one["id"] for one in served.json("task", "list")), "")))


def test_connections_appear_as_they_happen(visit: Callable[..., Visit], served: Served) -> None:
    """JRN-1, SRV-3: an allowed and a refused connection, with bytes, reasons, filter, pause and the facts of one."""
    one = visit()
    command = "for x in 1 2; do read line; curl -s http://ask.test/ http://no.test/; done; read line"
    task = served.start(
        "run", "--allow", "ask.test", "--deny", "no.test", "--", "sh", "-c", command, stdin=subprocess.PIPE
    )
    assert task.stdin is not None
    try:
        one.go(f"task/{_task_of(served)}")
        one.page.get_by_text("Nothing yet.").wait_for()
        task.stdin.write("\n")
        task.stdin.flush()
        lines = one.page.locator(".line:visible")
        lines.nth(1).wait_for()
        refused = one.page.locator(".line[data-how=refused]")
        assert refused.locator(".where").inner_text() == "no.test:80"
        assert refused.locator(".how").inner_text() == "refused: deny rule"
        passed = one.page.locator(".line[data-how=passed]")
        assert passed.locator(".where").inner_text() == "ask.test:80"
        assert "↓" in passed.locator(".size").inner_text()
        one.page.get_by_role("button", name="Pause the list").click()
        task.stdin.write("\n")
        task.stdin.flush()
        one.page.locator(".panel .sum", has_text="paused, 2 new").wait_for()
        one.wait("() => [...document.querySelectorAll('.line')].filter((line) => !line.hidden).length === 2")
        one.page.get_by_role("button", name="Go on").click()
        lines.nth(3).wait_for()
        one.page.get_by_label("refused only").check()
        one.wait("() => [...document.querySelectorAll('.line')].filter((line) => !line.hidden).length === 2")
        one.page.get_by_label("Filter by host").fill("ask")
        one.page.get_by_text("No connection matches.").wait_for()
        one.page.get_by_label("refused only").uncheck()
        lines.first.click()
        detail = one.page.locator(".detail")
        assert "a rule" not in detail.inner_text()
        assert "Address\n1.2.3.4" in detail.inner_text()
        one.page.locator(".chart figcaption", has_text="2 connections refused").wait_for()
    finally:
        task.communicate("\n", timeout=60)
    one.page.locator("h1 + .pill", has_text="ended").wait_for()
    one.page.reload()  # what an ended task was refused is counted after a reload as well
    one.expect_line("live")
    one.go("")
    one.page.locator(".sum.red", has_text="2 connections refused").wait_for()


def test_who_went_away_was_not_refused(visit: Callable[..., Visit], served: Served) -> None:
    """SRV-3, ASK-2: a client that gave up while a person was asked was not refused; a denied host was."""
    one = visit()
    one.go("")
    command = "curl -s -m 3 http://asked.test/; read line; curl -s http://no.test/; read line"
    task = served.start("run", "--wait", "--deny", "no.test", "--", "sh", "-c", command, stdin=subprocess.PIPE)
    assert task.stdin is not None
    try:
        one.go(f"task/{_task_of(served)}")
        gone = one.page.locator(".line[data-how=passed]")
        gone.wait_for()
        assert gone.locator(".how").inner_text() == "not connected: client gone"
        assert not gone.locator(".size").inner_text()
        assert "0 connections refused" in one.page.locator(".chart figcaption").inner_text()
        task.stdin.write("\n")
        task.stdin.flush()
        one.page.locator(".line[data-how=refused] .how", has_text="refused: deny rule").wait_for()
        one.page.locator(".chart figcaption", has_text="1 connection refused").wait_for()
        one.page.locator(".reach tbody tr").nth(0).wait_for()
        assert [row.split() for row in one.page.locator(".reach tbody tr").all_inner_texts()] == [
            ["no.test:80", "–", "1"]
        ]
    finally:
        said = task.communicate("\n", timeout=60)[1]
    assert "not connected, the client went away while a person was asked" in said


def test_an_operator_denies_pauses_and_ends(visit: Callable[..., Visit], served: Served) -> None:
    """POL-7, POL-8, ASK-2: hosts, pause, wait, phase and end of a living task from its page, each seen by the task."""
    one = visit()
    command = "while read line; do curl -s -m 30 http://ask.test/; done"
    task = served.start("run", "--allow", "ask.test", "--", "sh", "-c", command, stdin=subprocess.PIPE)
    assert task.stdin is not None
    assert task.stdout is not None

    def fetch() -> str:
        assert task.stdin is not None
        assert task.stdout is not None
        task.stdin.write("\n")
        task.stdin.flush()
        return task.stdout.readline()

    assert fetch() == "hello\n"
    one.go(f"task/{_task_of(served)}")
    one.page.get_by_role("button", name="Pause", exact=True).click()
    one.note("New connections are refused")
    assert "paused" in fetch()
    field = one.page.get_by_label("A host, for this task")
    field.fill("ask.test")  # before the buttons are drawn anew, which takes nothing of it away
    field.focus()
    assert served.tidegate("resume").returncode == 0
    one.page.get_by_role("button", name="Pause", exact=True).wait_for()
    assert one.page.evaluate("document.activeElement.value") == "ask.test"
    one.page.get_by_role("button", name="Pause", exact=True).click()
    one.page.get_by_role("button", name="Go on", exact=True).click()
    one.note("New connections pass again")
    one.page.locator(".hosts").get_by_role("button", name="Deny").click()
    one.note("ask.test: refused for this task")
    assert "ask.test" in fetch()
    one.page.get_by_label("Its questions wait").select_option("4 hours")
    one.note("Questions of this task wait so long from now on")
    one.wait("() => document.querySelector('.wait select').selectedOptions[0].textContent === '4 hours'")
    assert served.json("task", "show", _task_of(served))["wait_seconds"] == 14400
    one.page.get_by_role("button", name="To phase install").click()
    one.page.locator("h1 + .pill", has_text="install").wait_for()
    one.page.get_by_role("button", name="End", exact=True).click()
    one.page.get_by_role("button", name="Cancel").click()
    assert task.poll() is None
    one.page.get_by_role("button", name="End", exact=True).click()
    one.page.get_by_role("button", name="End it").click()
    one.page.locator("h1 + .pill", has_text="ended").wait_for()
    task.communicate(timeout=60)
    assert one.page.get_by_role("button", name="End", exact=True).count() == 0


@pytest.mark.slow
def test_ten_thousand_connections(
    visit: Callable[..., Visit], served: Served, record_property: Callable[[str, object], None]
) -> None:
    """SRV-3: ten thousand real requests, as they happen and from the record: few rows exist, all are reached."""
    one = visit()
    program = served.product.folder / "requests.py"
    program.write_text(REQUESTS)
    task = served.start("run", "--allow", "*.ask.test", "--", PYTHON, str(program), str(MANY), stdin=subprocess.PIPE)
    assert task.stdout is not None
    try:
        one.go(f"task/{_task_of(served)}")
        one.page.locator(".line").first.wait_for()
        one.page.evaluate(
            """() => {
              window.longest = 0;
              let last = performance.now();
              const frame = (now) => {
                window.longest = Math.max(window.longest, now - last);
                last = now;
                requestAnimationFrame(frame);
              };
              requestAnimationFrame(frame);
            }"""
        )
        assert task.stdout.readline() == "done\n"
        record_property("longest_frame_live_ms", round(one.page.evaluate("window.longest")))
        print(f"the longest time between two frames while they came: {one.page.evaluate('window.longest'):.0f} ms")
        one.page.reload()
        one.expect_line("live")
        view = one.page.locator(".scroll")
        view.wait_for()
        rows = "document.querySelectorAll('.line').length"
        for _ in range(MANY):
            text = one.page.locator(".panel .sum").inner_text()
            if "so far" not in text:
                break
            view.evaluate("(node) => { node.scrollTop = node.scrollHeight; }")
            one.wait("(before) => document.querySelector('.panel .sum').textContent !== before", text)
            assert one.page.evaluate(rows) <= MOST_ROWS
        assert text == f"{MANY:,} connections"
        view.evaluate("(node) => { node.scrollTop = node.scrollHeight; }")
        one.page.locator(".line[aria-posinset='10000']", has_text="h0.ask.test:80").wait_for()
        assert one.page.evaluate(rows) <= MOST_ROWS
        took = one.page.evaluate(
            """async () => {
              const view = document.querySelector(".scroll");
              let worst = 0;
              for (let step = 0; step < 60; step += 1) {
                const began = performance.now();
                view.scrollTop = view.scrollHeight * ((step * 37) % 60) / 60;
                await new Promise(requestAnimationFrame);
                await new Promise(requestAnimationFrame);
                worst = Math.max(worst, performance.now() - began);
              }
              return worst;
            }"""
        )
        record_property("slowest_scroll_ms", round(took))
        print(f"the slowest of 60 jumps in {MANY:,} rows took {took:.0f} ms, two frames included")
        one.page.get_by_label("Filter by host").fill("h77.ask")
        one.wait("() => document.querySelector('.panel .sum').textContent === '100 connections'")
    finally:
        task.communicate(timeout=60)
