"""The page of tools: each with the hosts that it says it talks to (SRV-3, SRV-6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.tools_kit import declare, tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.portal.kit import Visit
    from tests.served import Served


def test_tools_are_shown_with_their_hosts(visit: Callable[..., Visit], served: Served) -> None:
    """SRV-3, SRV-6: for a viewer too; text from a declaration is text; the search looks at hosts."""
    one = visit("--viewer")
    one.go("tools")
    one.page.get_by_text("No tool is declared").wait_for()
    charge = tool("", more={"hosts": ["api.pay.test:443"], "description": "<b>Charge</b> a card."})
    held = tool("", more={"hosts": ["b.test"], "apply_task_hosts": True})
    declare(served.product, charge=charge, held=held)
    one.go("rules")
    one.go("tools")
    rows = one.page.locator(".tools li")
    rows.first.wait_for()
    first, second = rows.all_inner_texts()
    assert "api.pay.test:443 · not limited by the task's hosts" in first
    assert "<b>Charge</b> a card." in first
    assert "b.test · only the task's hosts, no redirects" in second
    one.page.get_by_label("Search tools and hosts").fill("pay.test")
    one.wait("() => document.querySelectorAll('.tools li').length === 1")
    one.page.get_by_label("Search tools and hosts").fill("nothing")
    one.page.get_by_text("No tool matches.").wait_for()
