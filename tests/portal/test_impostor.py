"""A page that is left open while another program takes its server's port: it gets no token, and the page says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.portal.impostor import Impostor, passes_on, says
from tests.portal.kit import portal_url
from tests.served import PATIENCE, Served, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.portal.kit import Visit

WORDS = "could not prove that it is your Tidegate server"


def _token(one: Visit) -> str:
    return str(one.page.evaluate("sessionStorage.getItem('tidegate-token')"))


ANSWERS = (
    says(200, {"proof": "A" * 43}),
    says(200, {"proof": ""}),
    says(200, {"proof": 7}),
    says(200, []),
    says(200, None),
    says(404, {"error": {"code": "not-found", "what": "nothing here", "fix": ""}}),
    lambda _path, _body: (200, b"<!doctype html>hello"),
)
AGAIN = "void document.dispatchEvent(new Event('visibilitychange'))"
"""The page waits no longer than until somebody looks at it again."""


def _asked_for(impostor: Impostor) -> set[str]:
    """What it was asked for, but for the picture that a browser asks for by itself."""
    lines = {head.split("\n")[0] for head, _ in impostor.heard}
    return lines - {"GET /icon.svg HTTP/1.1"}


def _ask_again(one: Visit, impostor: Impostor) -> None:
    """Have the page ask the impostor once more, and wait until it has judged the answer."""
    before = len(impostor.proofs())
    until(lambda: one.page.evaluate(AGAIN) or len(impostor.proofs()) > before + 1)


def test_who_cannot_prove_it_gets_nothing(visit: Callable[..., Visit], served: Served) -> None:
    """SRV-1: the page asks for a proof, sends nothing else, says so, and goes on once its server is back."""
    one = visit()
    token = _token(one)
    assert token.startswith("tg_")
    one.may_lose_the_line = True
    served.stop()
    with Impostor(served.info["api_port"], ANSWERS[0]) as impostor:
        for answer in ANSWERS:
            impostor.answer = answer
            _ask_again(one, impostor)
            one.expect_line("stranger")
            one.page.locator("#banner", has_text=WORDS).wait_for()
        assert one.axe() == []
        one.go("rules")
        one.go("tasks")
        _ask_again(one, impostor)
        assert _asked_for(impostor) == {"POST /api/proof HTTP/1.1"}
        assert "authorization" not in impostor.said().lower()
        assert token not in impostor.said()
        asked = impostor.proofs()
        assert all(set(each) == {"token", "number"} for each in asked)
        assert len({each["number"] for each in asked}) == len(asked)
        assert one.page.evaluate("sessionStorage.length") == 0  # for whoever serves this page if it is loaded again
    with Served(served.product) as again:
        assert again.info["api_port"] == served.info["api_port"]
        one.expect_line("live")
        assert one.page.locator("#banner").is_hidden()
        assert _token(one) == token
        one.page.reload()
        one.expect_line("live")
        one.close()


def test_a_button_sends_nothing_either(visit: Callable[..., Visit], served: Served) -> None:
    """SRV-1: what a person does on the page meanwhile is refused here, and not sent."""
    one = visit()
    one.may_lose_the_line = True
    one.go("settings")
    one.page.locator("#wait").wait_for()
    served.stop()
    with Impostor(served.info["api_port"], says(200, {"proof": "A" * 43})) as impostor:
        one.expect_line("stranger")
        one.page.get_by_label("Name of the new token").fill("mine")
        one.page.get_by_role("button", name="Make a token").click()
        one.note("not your Tidegate server")
        assert _asked_for(impostor) == {"POST /api/proof HTTP/1.1"}
    one.close()


def test_a_proof_from_elsewhere_or_before_does_not_fit(visit: Callable[..., Visit], served: Served) -> None:
    """SRV-1: one that is fetched from the real server, which listens elsewhere now, and one that was heard before."""
    one = visit()
    token = _token(one)
    one.may_lose_the_line = True
    served.stop()
    port = served.info["api_port"]
    with Impostor(port, says(404, {})) as impostor, Served(served.product) as again:
        assert again.info["api_port"] != port
        impostor.answer = passes_on(again.info["api_port"])
        one.expect_line("stranger")
        proofs = []
        relay = impostor.answer

        def keeping(path: str, body: bytes) -> tuple[int, bytes]:
            status, content = relay(path, body)
            proofs.append(content)
            return status, content

        impostor.answer = keeping
        until(lambda: one.page.evaluate(AGAIN) or proofs)
        assert len(json.loads(proofs[0])["proof"]) == 43  # the real server gave one
        impostor.answer = lambda _path, _body: (200, proofs[0])
        _ask_again(one, impostor)
        one.expect_line("stranger")
        assert token not in impostor.said()
        assert "authorization" not in impostor.said().lower()
        one.close()


def test_a_server_that_forgot_the_token_is_not_given_it(visit: Callable[..., Visit], served: Served) -> None:
    """SRV-2: a token that was revoked meanwhile is not sent any more: the page signs out by the number alone."""
    one = visit()
    one.may_lose_the_line = True
    served.stop()
    with Impostor(served.info["api_port"], says(401, {"error": {"code": "x", "what": "not known", "fix": ""}})) as one_:
        one.page.get_by_role("heading", name="Sign in").wait_for(timeout=PATIENCE * 1000)
        assert _asked_for(one_) == {"POST /api/proof HTTP/1.1"}
    one.close()


def test_localhost_becomes_the_address(visit: Callable[..., Visit], served: Served) -> None:
    """SRV-1: `localhost` may be ::1 too, where somebody else can listen: the page goes to 127.0.0.1, code and all."""
    one = visit()
    page = one.context.new_page()
    one.origin = one.origin.replace("127.0.0.1", "localhost")
    one.faults.clear()
    page.goto(portal_url(served).replace("127.0.0.1", "localhost"))
    page.wait_for_url("http://127.0.0.1:*/**")
    page.locator("#link[data-state=live]").wait_for()
    page.close()
    one.faults.clear()  # requests of two origins, which this is about
