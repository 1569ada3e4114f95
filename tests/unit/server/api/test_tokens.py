"""Tokens, codes and phones over the API."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from hashlib import sha256
from xml.etree import ElementTree as ET

import pytest

from tests.unit.server.api.running import Answer, Whole
from tidegate.server.api.tokens import MAX_SESSIONS, SESSION_SECONDS, draw

JSON = "application/json"


def test_a_token_is_made_listed_and_revoked(whole: Whole) -> None:
    """SRV-2: its secret is shown once and never in the list; revoked it opens nothing; both are in the log."""
    made = whole.send("POST", "/api/tokens", {"name": "laptop", "role": "owner"}).json
    assert whole.ask("GET", "/api/health", token=made["secret"]).status == 200
    listed = whole.ask("GET", "/api/tokens", unix=True)
    assert [token["name"] for token in listed.json["tokens"]] == ["laptop"]
    assert made["secret"].encode() not in listed.body
    assert whole.send("DELETE", f"/api/tokens/{made['token']['id']}").status == 200
    assert whole.ask("GET", "/api/health", token=made["secret"]).status == 401
    assert whole.get("/api/tokens")["tokens"] == []
    log = whole.ask("GET", "/api/log", unix=True)
    kinds = [line["type"] for line in log.json["lines"]]
    assert (kinds.count("token.created"), kinds.count("token.revoked")) == (1, 1)
    assert made["secret"].encode() not in log.body


def test_an_owner_s_token_makes_others_and_a_viewer_s_sees_none(whole: Whole) -> None:
    """SRV-2: tokens are an owner's business."""
    owner = whole.send("POST", "/api/tokens", {"name": "o", "role": "owner"}).json["secret"]
    viewer = whole.send("POST", "/api/tokens", {"name": "v"}).json["secret"]
    assert whole.ask("GET", "/api/tokens", token=viewer).status == 403
    assert whole.ask("GET", "/api/tokens", token=owner).status == 200
    for token, status in ((viewer, 403), (owner, 201)):
        body = b'{"name": "new"}'
        assert whole.ask("POST", "/api/tokens", body, token=token, Content_Type=JSON).status == status


def test_a_code_becomes_a_token_once(whole: Whole) -> None:
    """SRV-1: the opener's code stands in the fragment of the URL, works once over loopback, and gives a token."""
    made = whole.send("POST", "/api/codes", {"role": "viewer"}).json
    assert made["url"] == f"http://127.0.0.1:{whole.port}/#code={made['code']}"
    body = b'{"code": "%s"}' % made["code"].encode()
    first = whole.ask("POST", "/api/session", body, Content_Type=JSON)
    assert (first.status, first.json["role"]) == (201, "viewer")
    assert first.json["expires_at"] == pytest.approx(whole.server.wall() + SESSION_SECONDS, abs=60)
    assert whole.ask("GET", "/api/health", token=first.json["token"]).json["role"] == "viewer"
    assert whole.ask("POST", "/api/session", body, Content_Type=JSON).status == 401


def test_codes_are_made_on_this_machine_only(whole: Whole) -> None:
    """SRV-1: over loopback no code is given out, to an owner neither, and guesses are slowed down."""
    owner = whole.send("POST", "/api/tokens", {"name": "o", "role": "owner"}).json["secret"]
    assert whole.ask("POST", "/api/codes", b"{}", token=owner, Content_Type=JSON).status == 403
    statuses = [whole.ask("POST", "/api/session", b'{"code": "x"}', Content_Type=JSON).status for _ in range(12)]
    assert statuses == [401] * 10 + [429] * 2
    assert whole.ask("GET", "/api/health", token=owner).status == 200


def test_sessions_of_the_portal_give_way(whole: Whole) -> None:
    """SRV-2: one more session than may be is made, and the one that was used least recently ends."""
    tokens = []
    for _ in range(MAX_SESSIONS + 1):
        code = whole.send("POST", "/api/codes", {}).json["code"]
        tokens.append(whole.send("POST", "/api/session", {"code": code}).json["token"])
    assert whole.ask("GET", "/api/health", token=tokens[0]).status == 401
    assert {whole.ask("GET", "/api/health", token=token).status for token in tokens[1:]} == {200}


def test_no_phone_is_paired_where_none_can_reach(whole: Whole) -> None:
    """SRV-2: without a listener outside of loopback pairing is 409 and says how to have one."""
    answer = whole.send("POST", "/api/pair", {})
    assert answer.status == 409
    assert "--listen" in answer.json["error"]["fix"]


def test_a_qr_code_is_a_picture_that_needs_nothing_else() -> None:
    """SRV-2: the SVG is well formed, has no link, script or style, and differs by its URL."""
    svg = draw("https://192.0.2.1:7332/#code=abc")
    root = ET.fromstring(svg)
    assert root.tag.endswith("svg")
    assert {child.tag.rpartition("}")[2] for child in root.iter()} <= {"svg", "path", "g", "rect"}
    assert svg != draw("https://192.0.2.1:7332/#code=abd")


NUMBER = "n" * 43


def _proof(whole: Whole, token: int, number: str = NUMBER, **headers: str) -> Answer:
    body = json.dumps({"token": token, "number": number}).encode()
    return whole.ask("POST", "/api/proof", body, Content_Type=JSON, **headers)


def _proven(secret: str, origin: str, number: str = NUMBER) -> dict[str, str]:
    key = sha256(secret.encode()).digest()
    made = hmac.digest(key, f"tidegate proof 1\n{origin}\n{number}".encode(), "sha256")
    return {"proof": urlsafe_b64encode(made).rstrip(b"=").decode()}


@pytest.mark.parametrize("role", ["owner", "viewer"])
def test_a_page_has_the_server_prove_itself(whole: Whole, role: str) -> None:
    """SRV-1: whoever knows the token can check it; each number has a proof of its own, and no token travels."""
    made = whole.send("POST", "/api/tokens", {"name": "page", "role": role}).json
    origin = f"http://127.0.0.1:{whole.port}"
    answer = _proof(whole, made["token"]["id"])
    assert (answer.status, answer.json) == (200, _proven(made["secret"], origin))
    assert _proof(whole, made["token"]["id"], "m" * 43).json == _proven(made["secret"], origin, "m" * 43)
    assert whole.ask("GET", "/api/health", token=answer.json["proof"]).status == 401  # it opens nothing


def test_a_proof_is_for_where_the_server_listens(whole: Whole) -> None:
    """SRV-1: whatever name it was asked by; so one that is passed on to a page of another port does not fit there."""
    made = whole.send("POST", "/api/tokens", {"name": "page"}).json
    asked = _proof(whole, made["token"]["id"], Host=f"localhost:{whole.port}")
    assert asked.json == _proven(made["secret"], f"http://127.0.0.1:{whole.port}")
    assert _proof(whole, made["token"]["id"], Host="127.0.0.1:1").status == 421
    page = _proof(whole, made["token"]["id"], Origin="http://127.0.0.1:1")
    assert page.status == 403


def test_no_proof_of_a_token_that_is_over_or_none(whole: Whole) -> None:
    """SRV-2: 401 for one that is revoked or never was; what is no number is 400; over the socket 409."""
    made = whole.send("POST", "/api/tokens", {"name": "page"}).json
    number = made["token"]["id"]
    assert _proof(whole, number + 1).status == 401
    for wrong in ("", "n" * 42, "n" * 44, "n" * 42 + "=", "n" * 42 + "\n"):
        assert _proof(whole, number, wrong).status == 400
    body = json.dumps({"token": number, "number": NUMBER}).encode()
    assert whole.ask("POST", "/api/proof", body, unix=True, Content_Type=JSON).status == 409
    assert whole.send("DELETE", f"/api/tokens/{number}").status == 200
    assert _proof(whole, number).status == 401
