"""What becomes of an open page when its server goes away, comes back, or no longer knows its token (HLD-8, SRV-1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.portal.kit import portal_url
from tests.served import Served

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.portal.kit import Curls, Visit


def test_a_server_that_was_killed_and_started_again(visit: Callable[..., Visit], served: Served, curls: Curls) -> None:
    """HLD-8: the page says that it has no server, comes back with the same token, and forgets what is over."""
    one = visit()
    curls.start("http://ask.test/")
    one.card("ask.test").wait_for()
    one.may_lose_the_line = True
    served.kill()
    one.expect_line("lost")
    one.page.locator("#link-text", has_text="reconnecting").wait_for()
    one.page.get_by_text("The server does not answer").wait_for()
    one.card("ask.test").get_by_role("button", name="Allow once").click()
    one.note("the server does not answer")
    with Served(served.product) as again:
        assert again.info["api_port"] == served.info["api_port"]
        one.expect_line("live")
        one.page.locator("#banner").wait_for(state="hidden")
        one.note("The server was started anew")
        one.wait("() => !document.querySelector('.card')")
        one.wait("() => document.title === 'Needs you · Tidegate'")
        curls.start("http://ask.test/")
        one.card("ask.test").get_by_role("button", name="Deny", exact=True).click()
        one.page.locator(".card[data-state=answered]").wait_for()
        one.close()


def test_a_reload_keeps_the_token_and_another_tab_has_none(visit: Callable[..., Visit], served: Served) -> None:
    """SRV-1: no cookie: the token is this tab's own; it is not in the address, and a code works once."""
    one = visit()
    assert one.page.url == f"{one.origin}/#/"
    one.page.reload()
    one.expect_line("live")
    other = one.context.new_page()
    other.goto(one.origin)
    other.get_by_role("heading", name="Sign in").wait_for()
    url = portal_url(served)
    other.goto(url)
    other.locator("#link[data-state=live]").wait_for()
    third = one.context.new_page()
    third.goto(url)
    third.get_by_text("This code does not work").wait_for()
    assert one.context.cookies() == []


def test_a_revoked_token_signs_the_page_out(visit: Callable[..., Visit], served: Served) -> None:
    """SRV-2: revoking ends the page at once, and it says so; signing out revokes too."""
    one, other = visit(), visit()
    assert served.tidegate("token", "revoke", "1").returncode == 0
    one.page.get_by_text("This page was signed out").wait_for()
    other.go("settings")
    other.page.get_by_role("button", name="Sign out").click()
    other.page.get_by_role("heading", name="Sign in").wait_for()
    assert "portal 2" not in served.tidegate("token", "list").stdout
