"""Who may do what, for every operation that the document names: nothing in it is forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.unit.server.api.running import Whole

OPEN = {  # a code or a token each, a token's number, nothing
    ("post", "/api/session"), ("post", "/api/webhook/answer"), ("post", "/api/proof"), ("get", "/api/openapi.json"),
}  # fmt: skip
ONLY_UNIX = {("post", "/api/codes")}


def _operations(whole: Whole) -> list[tuple[str, str]]:
    document = whole.get("/api/openapi.json")
    methods = {"get", "post", "put", "patch", "delete"}
    found = [(method, path) for path, item in document["paths"].items() for method in item if method in methods]
    assert len(found) >= 25
    return found


def _secret(whole: Whole, role: str, **more: Any) -> tuple[int, str]:
    made = whole.send("POST", "/api/tokens", {"name": f"{role} {len(more)}", "role": role, **more}).json
    return made["token"]["id"], made["secret"]


def test_every_operation_asks_who_it_is(tmp_path: Path) -> None:
    """SRV-1, SRV-2: nobody gets in without a good token, a viewer changes nothing, whatever the body, and an owner may.

    A refusal by role comes before anything is looked up or read: a viewer learns nothing of ids from it.
    """
    with Whole(tmp_path) as whole:
        task = whole.task(name="one")["id"]
        whole.open_question(task)
        _, viewer = _secret(whole, "viewer")
        _, owner = _secret(whole, "owner")
        number, revoked = _secret(whole, "owner", expires_at=4e9)
        assert whole.send("DELETE", f"/api/tokens/{number}").status == 200
        for method, template in _operations(whole):
            if template == "/api/events":
                continue  # it does not end; below
            paths = {template.replace("{id}", name) for name in (task, "999", "nothing-of-that-name")}
            for path in paths:
                for body in (None, b"{}", b"not json"):
                    headers = {"Content_Type": "application/json"} if body is not None else {}

                    def ask(token: str) -> int:
                        return whole.ask(method.upper(), path, body, token=token, **headers).status  # noqa: B023

                    if (method, template) not in OPEN:
                        assert ask("") == 401, (method, path)
                        assert ask(viewer) == 403 or method == "get", (method, path)
                        assert (ask(owner) == 403) == ((method, template) in ONLY_UNIX), (method, path)
                    if method != "get":
                        break  # an owner's bodies change things: one is enough
        for token, status in (("", 401), (revoked, 401), ("tg_" + "x" * 43, 401)):
            assert whole.ask("GET", "/api/events", token=token).status == status


def test_what_a_viewer_cannot_do_leaves_no_trace(tmp_path: Path) -> None:
    """SRV-2: with bodies that an owner's would do: nothing has changed, and an owner's does it."""
    with Whole(tmp_path) as whole:
        task = whole.task(name="one")["id"]
        whole.open_question(task)
        (question,) = whole.get("/api/questions")["questions"]
        _, viewer = _secret(whole, "viewer")
        _, owner = _secret(whole, "owner")
        asked = [
            ("POST", f"/api/questions/{question['id']}/answer", {"answer": "task"}),
            ("POST", "/api/tasks", {"folder": whole.folder}),
            ("POST", f"/api/tasks/{task}/pause", {"paused": True}),
            ("POST", f"/api/tasks/{task}/hosts", {"deny": ["a.test"]}),
            ("PATCH", "/api/settings", {"network_default": "allowlist"}),
            ("POST", "/api/tokens", {"name": "more", "role": "owner"}),
            ("POST", f"/api/tasks/{task}/end", {}),
        ]

        def state() -> Any:
            return [whole.get(f"/api/{name}") for name in ("tasks", "questions", "settings", "rules")]

        before = state()
        for method, path, body in asked:
            data = json.dumps(body).encode()
            assert whole.ask(method, path, data, token=viewer, Content_Type="application/json").status == 403
        assert state() == before
        for method, path, body in asked:
            data = json.dumps(body).encode()
            assert whole.ask(method, path, data, token=owner, Content_Type="application/json").status in (200, 201)
        assert state() != before
