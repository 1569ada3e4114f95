"""Every page, in dark and light, on a phone and on a desk: axe has no finding, and nothing sticks out (SRV-3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.served import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.portal.kit import Curls, Visit
    from tests.served import Served

WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_every_page(visit: Callable[..., Visit], served: Served, curls: Curls, scheme: str, width: int) -> None:
    """SRV-3: with a question, a rule, a task that ended and one that lives, on every page."""
    one = visit(viewport={"width": width, "height": 800}, color_scheme=scheme)

    def judge(what: str) -> None:
        one.page.evaluate("scrollTo(0, 0)")
        assert one.axe() == [], what
        assert one.page.evaluate(WIDE) == 0, f"{what} is wider than {width} pixels"

    judge("the first page with nothing")
    first = curls.start("http://ask.test/", "--deny", "no.test")
    one.card("ask.test").get_by_role("button", name="Always in this folder").click()
    curls.result(first)
    one.wait("() => !document.querySelector('.card')")
    curls.start("http://xn--pypi-kmd.ask.test/", "--phase", "install")
    one.card("xn--pypi-kmd").wait_for()
    one.page.locator(".card[data-front]").wait_for()
    one.page.get_by_text("Bound what").click()
    judge("the first page")
    task = next(task["id"] for task in served.json("task", "list") if task["state"] == "living")
    one.go(f"task/{task}")
    one.card("xn--pypi-kmd").wait_for()
    judge("a task that waits")
    one.page.get_by_role("button", name="End", exact=True).click()
    judge("the question back")
    one.page.get_by_role("button", name="Cancel").click()
    ended = until(lambda: served.json("task", "list", "--all")[-1]["id"])
    one.go(f"task/{ended}")
    one.page.locator(".line").first.click()
    one.page.locator(".detail").wait_for()
    judge("a task with connections")
    for page, ready in (
        ("tasks", ".tasks li"),
        ("rules", ".rules li"),
        ("tools", ".empty"),
        ("log", "[data-ok]"),
        ("settings", ".rules li"),
    ):
        one.go(page)
        one.page.locator(ready).first.wait_for()
        judge(page)
    one.page.get_by_label("Name of the new token").fill("a script")
    one.page.get_by_role("button", name="Make a token").click()
    one.page.locator(".secret").wait_for()
    judge("a new token")
    one.go("task/none")
    one.page.get_by_text("there is no task").wait_for()
    judge("a task that is not there")
    one.page.evaluate("sessionStorage.clear()")
    one.page.reload()
    one.page.get_by_role("heading", name="Sign in").wait_for()
    judge("signing in")
