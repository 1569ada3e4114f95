"""Tokens, codes and phones over the API."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from tests.unit.server.api.running import Whole
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
