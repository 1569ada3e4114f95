"""Settings, tokens and phones, changed in the browser and in force in the server (POL-13, SRV-1, SRV-2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab.links import MACHINE4
from tests.portal.kit import Chromium, Visit, portal_url
from tests.product import Product
from tests.served import Served, until
from tests.sinks.receivers import Otlp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.lab.api import Lab
    from tests.portal.kit import Curls

PHONE_PORT = 7332
WRITTEN = "[...document.querySelectorAll('input, textarea')].map((one) => one.value).join()"


def test_settings_are_in_force_and_shown_elsewhere(visit: Callable[..., Visit], served: Served, curls: Curls) -> None:
    """POL-13, ASK-1: the wait is that of the next task, another page shows it, and a bad host is refused."""
    one, other = visit(), visit()
    for page in (one, other):
        page.go("settings")
    waits = [option.inner_text() for option in one.page.locator("#wait option").all()]
    assert (waits[0], waits[-1]) == ("1 minute", "8 hours")
    one.page.get_by_label("A question waits").select_option("2 hours")
    one.note("Saved")
    other.wait("() => document.querySelector('#wait').selectedOptions[0].textContent === '2 hours'")
    one.page.get_by_label("Default hosts").fill("pypi.org\nhttps://x.test/")
    one.page.get_by_role("button", name="Save the hosts").click()
    one.page.locator(".toast.bad", has_text="a rule names a host, not a URL").wait_for()
    one.page.get_by_label("Default hosts").fill("pypi.org\n*.x.test:8443")
    one.page.get_by_role("button", name="Save the hosts").click()
    other.wait("() => document.querySelector('#hosts').value === 'pypi.org\\n*.x.test:8443'")
    curls.start("http://ask.test/")
    question = until(curls.questions)[0]
    assert 7190 < question["deadline_at"] - question["opened_at"] <= 7200
    assert [line["by"] for line in served.actions() if line["type"] == "settings.changed"] == ["owner 'portal 1'"] * 2


def test_a_webhook_is_set_in_the_page_and_only_its_place_is_shown(visit: Callable[..., Visit], served: Served) -> None:
    """ASK-5, SRV-3: in force without a restart, shown elsewhere, and neither path nor key is there to be read again."""
    one, other = visit(), visit()
    for page in (one, other):
        page.go("settings")
    one.page.get_by_label("Webhook", exact=True).fill("https://chat.test/hook/SECRET-PATH")
    one.page.get_by_role("button", name="Post questions there").click()
    one.page.locator(".toast.bad", has_text="a webhook needs a key").wait_for()
    one.page.get_by_label("Key that signs").fill("SECRET-KEY-0123456789")
    one.page.get_by_role("button", name="Post questions there").click()
    for page in (one, other):
        page.page.get_by_text("Questions are posted to https://chat.test/...").wait_for()
        assert "SECRET" not in page.page.evaluate(
            "document.body.innerHTML + [...document.querySelectorAll('input')].map((one) => one.value)"
        )
    assert "SECRET" not in (served.state / "log" / "actions.jsonl").read_text()
    one.page.get_by_role("button", name="Remove the webhook").click()
    other.page.get_by_text("Questions are posted nowhere.").wait_for()
    one.page.get_by_label("Show notifications on the server's desktop").uncheck()
    other.wait("() => !document.querySelector('.check input').checked")
    assert served.json("settings")["notify"] is False


def test_a_token_is_shown_once_and_can_be_revoked(visit: Callable[..., Visit], served: Served) -> None:
    """SRV-2: a viewer's token made in the page works, is listed, and works no more once revoked."""
    one = visit()
    one.go("settings")
    one.page.get_by_label("Name of the new token").fill("a script")
    one.page.get_by_role("button", name="Make a token").click()
    secret = one.page.locator(".secret").inner_text()
    ask = """async (secret) => {
      const answer = await fetch("/api/health", { headers: { Authorization: `Bearer ${secret}` } });
      return answer.ok ? (await answer.json()).role : answer.status;
    }"""
    assert one.page.evaluate(ask, secret) == "viewer"
    one.page.get_by_role("button", name="Revoke a script").click()
    one.wait("() => !document.body.textContent.includes('a script')")
    assert one.page.evaluate(ask, secret) == 401
    one.page.get_by_role("button", name="Pair a phone").click()
    one.page.locator(".toast.bad", has_text="tidegate serve --listen").wait_for()  # this server has no door for one
    assert "a script" not in served.tidegate("token", "list").stdout


@pytest.mark.slow
def test_a_phone_is_paired_and_stays_so(chromium: Chromium, tmp_path: Path, lab: Lab) -> None:
    """SRV-2: the QR code's address signs a phone in over TLS; closing its tab does not sign it out, revoking does."""
    assert lab
    with Served(Product(tmp_path, user=False), "--listen", f"{MACHINE4}:{PHONE_PORT}") as served:
        desk = Visit(chromium, portal_url(served))
        desk.go("settings")
        with desk.page.expect_response("**/api/pair") as answer:
            desk.page.get_by_role("button", name="Pair a phone").click()
        pairing = answer.value.json()
        picture = desk.page.get_by_alt_text("QR code for the phone")
        picture.wait_for()
        assert desk.wait("() => document.querySelector('.shown img').naturalWidth > 100")
        assert pairing["fingerprint"] in desk.page.locator(".secret").inner_text()
        phone = Visit(chromium, pairing["url"], ignore_https_errors=True, viewport={"width": 360, "height": 740})
        assert phone.origin == f"https://{MACHINE4}:{PHONE_PORT}"
        phone.page.close()
        phone.page = phone.context.new_page()
        with phone.page.expect_response("**/api/proof") as proof:
            phone.page.goto(phone.origin)
        assert proof.value.status == 200
        phone.expect_line("live")
        assert phone.page.evaluate("isSecureContext && Boolean(crypto.subtle)")
        desk.page.reload()
        desk.page.get_by_role("button", name="Revoke phone 1").click()
        phone.page.get_by_text("This page was signed out").wait_for()
        phone.close()
        desk.close()


def test_sinks_are_shown_with_what_is_wrong_with_them(visit: Callable[..., Visit], served: Served) -> None:
    """JRN-6, SRV-3: for a viewer too: where the log goes and why it does not, while the page is open."""
    one = visit("--viewer")
    one.go("settings")
    one.page.get_by_text("The log is sent nowhere: tidegate sinks set NAME URL does it.").wait_for()
    with Otlp() as otlp:
        words = ("sinks", "set", "soc", otlp.url, "--type", "token.*", "--min", "notice")
        assert served.tidegate(*words).returncode == 0
        row = one.page.locator(".sinks li")
        row.get_by_text("up to date").wait_for()
        assert "otlp at localhost · only token.* · notice and worse · 0 lines sent" in row.inner_text()
        served.tidegate("token", "create", "first")
        row.get_by_text("1 line sent, last ").wait_for()
        assert one.axe() == []
    served.tidegate("token", "create", "second")
    row.get_by_text("Connection refused, since ").wait_for()
    assert row.locator(".pill.red", has_text="failing").count() == 1
    assert served.tidegate("sinks", "remove", "soc").returncode == 0
    one.page.get_by_text("The log is sent nowhere").wait_for()
