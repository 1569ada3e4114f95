"""The portal with the keyboard alone (SRV-3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.served import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.portal.kit import Curls, Visit
    from tests.served import Served

FOCUS = "() => { const at = document.activeElement; return at.ariaLabel || at.textContent.trim() || at.tagName; }"


def test_a_walk_without_a_mouse(visit: Callable[..., Visit], served: Served, curls: Curls) -> None:
    """SRV-3: skip link, navigation, cards by arrows, answers by Tab and Enter, search by /, rows by arrows."""
    one = visit()
    keys = one.page.keyboard

    def focus() -> str:
        return str(one.page.evaluate(FOCUS))

    first, second = curls.start("http://a.ask.test/"), curls.start("http://b.ask.test/")
    for host in ("a.ask.test", "b.ask.test"):
        one.card(host).wait_for()
    keys.press("Tab")
    assert focus() == "Skip to the content"
    keys.press("Enter")
    assert one.page.evaluate("document.activeElement.id") == "main"
    keys.press("ArrowDown")
    upper = one.page.evaluate("document.activeElement.dataset.question")
    keys.press("ArrowDown")
    lower = one.page.evaluate("document.activeElement.dataset.question")
    assert {upper, lower} == {"1", "2"}
    host = one.page.locator(f"[data-question='{lower}'] .host").inner_text()
    one.page.locator(f"[data-question='{lower}'][data-front]").wait_for()  # where the focus is, is in front
    keys.press("Tab")  # the link to its task
    keys.press("Tab")
    assert focus().startswith("Allow once")
    keys.press("Enter")
    answered = first if host == "a.ask.test" else second
    assert curls.result(answered)[:2] == (0, "hello\n")
    one.page.locator(f"[data-question='{upper}'][data-front]").wait_for()
    keys.press("Control+Shift+N")
    assert "a person refused it" in curls.result(second if answered is first else first)[1]

    keys.press("/")
    until(lambda: focus() == "Search tasks")
    assert one.page.url.endswith("#/tasks")
    keys.type("b.ask")
    one.wait("() => document.querySelectorAll('.tasks li').length === 1")
    keys.press("Escape")
    keys.press("ArrowDown")
    keys.press("Enter")
    one.page.locator(".line").first.wait_for()
    until(lambda: "b.ask.test" in focus())  # the heading of the page that was opened
    one.page.locator(".scroll").focus()
    keys.press("ArrowDown")
    one.page.locator(".line[aria-selected=true]").wait_for()
    one.page.locator(".detail", has_text="b.ask.test:80").wait_for()
    assert served.process.poll() is None


@pytest.mark.parametrize("page", ["tasks", "rules", "settings", "log"])
def test_the_keys_lead_to_the_cards(visit: Callable[..., Visit], curls: Curls, page: str) -> None:
    """SRV-3: on a page that shows no card, the keys answer nothing that is not seen: they lead to the cards."""
    one = visit()
    task = curls.start("http://ask.test/")
    one.card("ask.test").wait_for()
    one.go(page)
    one.page.locator(f"[data-page={page}][aria-current]").wait_for()
    one.page.keyboard.press("Control+Shift+Y")
    one.card("ask.test").wait_for()
    assert [question["state"] for question in curls.questions()] == ["open"]
    assert task.poll() is None
    one.shortcut("Y")
    assert curls.result(task)[:2] == (0, "hello\n")
