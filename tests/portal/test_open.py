"""What a task has open, in its panel: seen while it lasts, its bytes as they move, and cut by hand (SRV-3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.talker import Talker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.api import Lab
    from tests.portal.kit import Visit
    from tests.served import Served


@pytest.fixture
def talker(served: Served, lab: Lab) -> Iterator[Talker]:
    """One whose host sends back what it gets."""
    lab.origin("raw", "1.2.3.4", 443)
    with Talker.behind(served, "--allow", "ask.test", "--deny", "no.test") as found:
        yield found


def test_an_open_connection_is_seen_while_it_lasts(visit: Callable[..., Visit], talker: Talker) -> None:
    """SRV-3, JRN-1: one row while it is open, with bytes that count up; then its line, and no row twice."""
    one = visit()
    one.go(f"task/{talker.id}")
    one.page.get_by_text("Nothing yet.").wait_for()
    assert talker.says("open ask.test:443") == "200"
    row = one.page.locator(".line[data-how=open]:visible")
    row.wait_for()
    assert row.locator(".where").inner_text() == "ask.test:443"
    one.page.locator(".line[data-how=open] .how", has_text="open").wait_for()  # it may have been seen before that
    assert talker.says("send 5000") == "sent"
    one.page.locator(".line[data-how=open] .size", has_text="↑ 5.0 KB").wait_for()
    one.page.locator(".panel .sum", has_text="0 connections · 1 open").wait_for()
    row.click()
    assert one.axe() == []
    about = one.page.locator(".detail")
    assert "open, tunneled" in about.inner_text()
    assert "Address\n1.2.3.4" in about.inner_text()
    assert talker.says("open no.test:443") == "403"  # what is refused was never open
    one.page.locator(".line[data-how=refused]").wait_for()
    assert row.count() == 1
    assert talker.says("close 0") == "closed"
    one.page.locator(".line[data-how=passed]").wait_for()
    one.page.locator(".panel .sum", has_text="2 connections").wait_for()
    one.wait("() => document.querySelectorAll('.line[data-how=open]:not([hidden])').length === 0")
    one.page.locator(".detail", has_text="has ended").wait_for()
    assert one.page.get_by_role("button", name="Cut this connection").count() == 0


def test_one_is_cut_and_the_others_stay(visit: Callable[..., Visit], talker: Talker) -> None:
    """POL-8: by its button; the task's other connections to the same host go on."""
    for _ in range(3):
        assert talker.says("open ask.test:443") == "200"
    one = visit()
    one.go(f"task/{talker.id}")  # they were open before anybody looked
    rows = one.page.locator(".line[data-how=open]:visible")
    one.wait("() => document.querySelectorAll('.line[data-how=open]:not([hidden])').length === 3")
    rows.nth(1).click()
    one.page.get_by_role("button", name="Cut this connection").click()
    one.note("ask.test:443: closed")
    assert talker.says("read 1") == "end"
    one.page.locator(".line[data-how=passed]").wait_for()
    one.wait("() => document.querySelectorAll('.line[data-how=open]:not([hidden])').length === 2")
    assert talker.says("send 10") == "sent"


def test_it_is_cut_with_the_keyboard(visit: Callable[..., Visit], talker: Talker) -> None:
    """SRV-3: arrows choose it, the next stop of the tab key is its button, which stays while bytes move."""
    assert talker.says("open ask.test:443") == "200"
    one = visit()
    one.go(f"task/{talker.id}")
    one.page.locator(".line[data-how=open]:visible").wait_for()
    one.page.locator(".scroll").focus()
    one.page.keyboard.press("Home")
    one.page.get_by_role("button", name="Cut this connection").wait_for()
    one.page.keyboard.press("Tab")
    one.wait("() => document.activeElement.textContent === 'Cut this connection'")
    assert talker.says("send 7000") == "sent"
    one.page.locator(".detail", has_text="7.0 KB up").wait_for()
    one.wait("() => document.activeElement.textContent === 'Cut this connection'")
    one.page.keyboard.press("Enter")
    assert talker.says("read 0") == "end"


def test_a_viewer_sees_and_does_not_cut(visit: Callable[..., Visit], talker: Talker) -> None:
    """SRV-2: a viewer has the row and no button."""
    assert talker.says("open ask.test:443") == "200"
    one = visit("--viewer")
    one.go(f"task/{talker.id}")
    row = one.page.locator(".line[data-how=open]:visible")
    row.click()
    one.page.locator(".detail", has_text="Bytes").wait_for()
    assert one.page.get_by_role("button", name="Cut this connection").count() == 0


def test_who_comes_back_to_a_task_sees_what_is_open_by_then(visit: Callable[..., Visit], talker: Talker) -> None:
    """SRV-3: what was missed while another page was looked at is read anew: no row too many, none too few."""
    one = visit()
    one.go(f"task/{talker.id}")
    assert talker.says("open ask.test:443") == "200"
    one.page.locator(".line[data-how=open]:visible").wait_for()
    one.go("rules")
    one.page.get_by_role("heading", name="Rules").wait_for()
    assert talker.says("close 0") == "closed"
    for _ in range(2):
        assert talker.says("open ask.test:443") == "200"
    one.go(f"task/{talker.id}")
    one.wait("() => document.querySelectorAll('.line[data-how=open]:not([hidden])').length === 2")
    one.page.locator(".line[data-how=passed]").wait_for()
