"""What a person is told who looks elsewhere, and what the log page says of the log (SRV-3, JRN-2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.portal.kit import Curls, Visit
    from tests.served import Served

ELSEWHERE = """
window.told = [];
document.hasFocus = () => false;
window.Notification = class {
  static permission = "granted";
  constructor(title, options) { window.told.push(`${title}: ${options.body}`); }
  close() {}
};
"""
"""The browser's part, written down: it shows its notifications to nobody here."""


def test_a_question_is_told_where_nobody_looks(visit: Callable[..., Visit], curls: Curls) -> None:
    """SRV-3: a notification and a line for a screen reader, once for each new question, and the title counts them."""
    one = visit()
    curls.start("http://a.ask.test/")
    one.card("a.ask.test").wait_for()
    one.context.add_init_script(ELSEWHERE)
    one.page.reload()
    one.card("a.ask.test").wait_for()
    one.go("tasks")
    one.page.locator(".tasks li").first.wait_for()
    curls.start("http://b.ask.test/")
    one.wait("() => document.title === '(2) Tasks · Tidegate'")
    told = one.wait("() => window.told.length > 0 && window.told")
    assert len(told) == 1  # the one that was there when the page was opened is not news
    assert told[0].startswith("Tidegate: a task waits for you: curl ")
    assert told[0].endswith(" asks for b.ask.test:80")
    one.wait("() => document.querySelector('#voice').textContent.endsWith(' asks for b.ask.test:80')")
    one.wait("() => document.querySelector('#nav-count').textContent.trim() === '2'")


def test_nobody_is_notified_who_looks(visit: Callable[..., Visit], curls: Curls) -> None:
    """SRV-3: with the page in front there is the card and the screen reader's line, and no notification."""
    one = visit()
    one.context.add_init_script(ELSEWHERE.replace("=> false", "=> true"))
    one.page.reload()
    one.expect_line("live")
    curls.start("http://ask.test/")
    one.card("ask.test").wait_for()
    one.wait("() => document.querySelector('#voice').textContent.endsWith('asks for ask.test:80')")
    assert one.page.evaluate("window.told") == []


def test_a_changed_log_is_said(visit: Callable[..., Visit], served: Served) -> None:
    """JRN-2: the log page verifies the chain; after one byte was changed it names the file and the line."""
    one = visit()
    one.go("log")
    one.page.locator(".chain[data-ok=true]", has_text="The chain holds").wait_for()
    one.page.locator(".lines .type", has_text="server.started").wait_for()  # the lines come beside the verdict
    assert one.page.locator(".lines .type").all_inner_texts()[-1] == "server.started"
    path = served.state / "log" / "actions.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"type":"server.started"', b'"type":"server.starter"', 1))
    one.page.get_by_role("button", name="Read again").click()
    one.page.locator(".chain[data-ok=false]", has_text="not what was written").wait_for()
    assert "actions.jsonl, line 1:" in one.page.locator(".warnings .alarm").first.inner_text()
