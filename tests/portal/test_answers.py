"""Questions of real connections, answered in a real browser (ASK-2, ASK-3, ASK-4, ASK-8, SRV-2, SRV-3)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.served import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Route

    from tests.lab.api import Lab
    from tests.portal.kit import Curls, Visit
    from tests.served import Served

WATCH = """() => {
  window.seen = 0;
  new MutationObserver(() => {
    if (!window.seen && document.querySelector(".card[data-state=open]")) window.seen = Date.now() / 1000;
  }).observe(document.body, { childList: true, subtree: true });
}"""
PRESS_AGAIN = """() => new Promise((resolve) => {
  const press = () => document.body.dispatchEvent(
    new KeyboardEvent("keydown", { code: "KeyN", ctrlKey: true, shiftKey: true, bubbles: true }));
  new MutationObserver((_, me) => {
    if (!document.querySelector(".card[data-state=answered]")) return;
    me.disconnect();
    press();
    resolve();
  }).observe(document.body, { subtree: true, attributes: true, childList: true });
  press();
})"""
"""Denies the card in front, and presses again the moment it is settled."""
CLICK_MOVED = """() => new Promise((resolve) => {
  new MutationObserver((_, me) => {
    if (document.querySelectorAll(".card").length !== 1) return;
    me.disconnect();
    setTimeout(() => {
      document.querySelector(".card [data-answer=deny]").click();
      resolve();
    }, 0);
  }).observe(document.body, { subtree: true, childList: true });
})"""
"""Presses a button the moment its card has moved up."""
GENEROUS = 60.0  # seconds; what is reported is what counts


def test_from_the_card_to_forgetting(
    visit: Callable[..., Visit], curls: Curls, record_property: Callable[[str, object], None]
) -> None:
    """SRV-3, ASK-2, ASK-8: a card, the shortcut lets through once, remembering for good, forgetting asks again."""
    one = visit()
    one.page.evaluate(WATCH)
    first = curls.start("http://ask.test/")
    one.card("ask.test").wait_for()
    took = float(one.wait("() => window.seen")) - curls.questions()[0]["opened_at"]
    record_property("card_after_seconds", round(took, 3))
    print(f"the card was there after {took * 1000:.0f} ms")
    assert took < GENEROUS
    one.wait("() => document.title === '(1) Needs you · Tidegate'")
    assert (one.page.locator("#icon").get_attribute("href") or "").startswith("data:image/svg+xml")
    one.shortcut("Y")
    assert curls.result(first)[:2] == (0, "hello\n")
    one.page.locator(".card[data-state=answered]", has_text="let through once by").wait_for()

    second = curls.start("http://ask.test/")
    one.card("ask.test").get_by_role("button", name="Always in this folder").click()
    assert curls.result(second)[:2] == (0, "hello\n")
    assert curls.result(curls.start("http://ask.test/"))[:2] == (0, "hello\n")  # nobody was asked
    one.wait("() => !document.querySelector('.card[data-state=open]')")

    one.go("rules")
    one.page.get_by_role("button", name="Forget ask.test:80").click()
    one.note("ask.test:80 is forgotten")
    one.page.get_by_text("Nothing is remembered yet").wait_for()
    one.go("")
    third = curls.start("http://ask.test/")
    one.card("ask.test").get_by_role("button", name="Deny", exact=True).click()
    assert curls.result(third)[1] != "hello\n"


def test_denying_tells_curl_why(visit: Callable[..., Visit], curls: Curls) -> None:
    """ASK-2: Mod+Shift+N refuses, and the body that curl gets says that a person did; the page says who."""
    one = visit()
    task = curls.start("http://ask.test/")
    one.card("ask.test").wait_for()
    one.shortcut("N")
    assert "a person refused it" in curls.result(task)[1]
    one.page.locator(".card[data-state=answered]", has_text="refused by").wait_for()


def test_for_this_task_holds_within_its_bounds(visit: Callable[..., Visit], served: Served, curls: Curls) -> None:
    """ASK-7: let through for the task, one connection at most: the next one is asked about again."""
    one = visit()
    urls = ("http://ask.test/1", "http://ask.test/2")
    task = served.start("run", "--wait", "--", "sh", "-c", f"curl -s -m 60 {urls[0]}; curl -s -m 60 {urls[1]}")
    card = one.card("ask.test")
    card.get_by_text("Bound what").click()
    card.get_by_label("Connections").fill("1")
    card.get_by_role("button", name="For this task", exact=True).click()
    one.page.locator(".card[data-state=answered]").wait_for()
    one.card("ask.test").get_by_role("button", name="Deny for this task").click()
    out, _ = curls.result(task)[1:]
    assert out.startswith("hello\n")
    assert "a person refused it" in out


@pytest.mark.slow
def test_time_that_is_over_refuses(visit: Callable[..., Visit], served: Served) -> None:
    """ASK-1: the shortest wait is a minute; then the task is refused, and the page says that nobody answered."""
    one = visit()
    made = served.tidegate("task", "create", "--name", "short", "--wait-for", "1m")
    assert made.returncode == 0, made.stderr
    task = served.start("exec", "short", "--wait", "--", "curl", "--silent", "--max-time", "100", "http://ask.test/")
    card = one.card("ask.test")
    card.wait_for()
    assert re.fullmatch(r"1:00|0:\d\d", card.locator(".ring .left").inner_text())
    card.locator(".ring[data-soon=true]").wait_for()
    one.page.locator(".card[data-state=expired]", has_text="nobody answered in time").wait_for(timeout=90_000)
    out, _ = task.communicate(timeout=60)
    assert "nobody answered in time" in out


def test_two_browsers_one_answer(visit: Callable[..., Visit], served: Served, curls: Curls) -> None:
    """ASK-2: one person answers, both pages show it, with who it was."""
    first, second = visit(), visit()
    task = curls.start("http://ask.test/")
    second.card("ask.test").wait_for()
    first.card("ask.test").get_by_role("button", name="Allow once").click()
    assert curls.result(task)[:2] == (0, "hello\n")
    for one in (first, second):
        one.page.locator(".card[data-state=answered]", has_text="let through once by owner 'portal 1'").wait_for()
    assert [line["by"] for line in served.actions() if line["type"] == "question.answered"] == ["owner 'portal 1'"]


def test_who_is_second_is_told_so(visit: Callable[..., Visit], served: Served, curls: Curls) -> None:
    """ASK-2: a press that arrives after another answer changes nothing, and the page says who was faster."""
    one = visit()
    task = curls.start("http://ask.test/")
    one.card("ask.test").wait_for()

    def late(route: Route) -> None:
        number = str(curls.questions()[0]["id"])
        assert served.tidegate("answer", number, "allow").returncode == 0
        route.continue_()

    one.page.route("**/answer", late)
    one.card("ask.test").get_by_role("button", name="Deny", exact=True).click()
    one.note("already")
    assert curls.result(task)[:2] == (0, "hello\n")


def test_a_viewer_sees_and_cannot_answer(visit: Callable[..., Visit], curls: Curls) -> None:
    """SRV-2: the viewer's page has no answers and ignores the keys, and the server refuses what its token asks."""
    visit()  # an owner is there, else nobody is asked
    one = visit("--viewer")
    task = curls.start("http://ask.test/")
    card = one.card("ask.test")
    card.get_by_text("You are looking on").wait_for()
    assert card.locator(".buttons").is_hidden()
    one.shortcut("Y")
    number = curls.questions()[0]["id"]
    status = one.page.evaluate(
        """async (id) => (await fetch(`/api/questions/${id}/answer`, { method: "POST", body: '{"answer":"allow"}',
          headers: { "Content-Type": "application/json", Authorization: `Bearer ${sessionStorage["tidegate-token"]}` },
        })).status""",
        number,
    )
    assert status == 403
    assert curls.questions()[0]["state"] == "open"
    for page in ("rules", "settings", "tasks"):
        one.go(page)
        one.page.locator("h1").wait_for()
        assert one.page.get_by_role("button", name="Forget").count() == 0
        assert one.page.get_by_role("button", name="Save the hosts").is_hidden()
    assert task.poll() is None


def test_a_new_card_does_not_take_the_keys(visit: Callable[..., Visit], curls: Curls, lab: Lab) -> None:
    """SRV-3: the card in front stays there when others come; the keys answer that one, and not the next at once."""
    lab.dns.set("b.ask.test", A=["1.2.3.4"])
    one = visit()
    first = curls.start("http://a.ask.test/")
    one.page.locator(".card[data-front]", has_text="a.ask.test").wait_for()
    second = curls.start("http://b.ask.test/")
    one.card("b.ask.test").wait_for()
    assert "a.ask.test" in one.page.locator(".card[data-front]").inner_text()
    one.page.evaluate(PRESS_AGAIN)
    assert "a person refused it" in curls.result(first)[1]
    one.page.evaluate(CLICK_MOVED)
    one.note("The cards have just moved")
    one.page.locator(".card[data-front]", has_text="b.ask.test").wait_for()
    one.page.keyboard.press("Control+Shift+Y")
    assert curls.result(second)[:2] == (0, "hello\n")


def test_nobody_there_is_an_immediate_no(visit: Callable[..., Visit], curls: Curls) -> None:
    """ASK-4: with only a viewer's page open nobody is there to answer; an owner's page makes the same command wait."""
    visit("--viewer")
    assert "nobody is there to answer" in curls.result(curls.start("http://ask.test/"))[1]
    visit()
    task = curls.start("http://ask.test/")
    until(curls.questions)
    assert task.poll() is None
