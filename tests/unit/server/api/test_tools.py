"""Tools over the API: names and hosts; what declares them wrongly is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.server.api.running import Whole

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_tools_are_listed_with_their_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-2, SRV-3, SRV-6: for a viewer too; neither program nor what it is given; read anew at each look."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = tmp_path / "config" / "tidegate" / "tools.yaml"
    file.parent.mkdir(parents=True, mode=0o700)
    with Whole(tmp_path) as whole:
        assert whole.get("/api/tools") == {"tools": [], "problem": ""}
        file.write_text(
            "tools:\n  charge: {command: [/bin/true, --key=hunter2], description: Charge., hosts: [api.pay.test:443]}\n"
            "  gone: {command: [/nowhere/x], description: Gone., apply_task_hosts: true}\n"
        )
        file.chmod(0o600)
        viewer = whole.send("POST", "/api/tokens", {"name": "laptop", "role": "viewer"}).json["secret"]
        seen = whole.ask("GET", "/api/tools", token=viewer)
        charge, gone = seen.json["tools"]
        assert (charge["name"], charge["hosts"], charge["works"]) == ("charge", ["api.pay.test:443"], True)
        assert (charge["for_tasks"], gone["for_tasks"]) == (False, False)
        assert (charge["apply_task_hosts"], gone["apply_task_hosts"], gone["works"]) == (False, True, False)
        assert b"hunter2" not in seen.body
        assert b"/bin/true" not in seen.body
        file.write_text("tools: [x]\n")
        found = whole.get("/api/tools")
        assert found["tools"] == []
        assert "a list where a mapping belongs" in found["problem"]


def test_an_owner_creates_tasks_with_tools_that_the_server_offers(tmp_path: Path) -> None:
    """SRV-2, SRV-6: of those alone, whoever asks; nothing over the API offers one; a viewer creates nothing."""
    with Whole(tmp_path) as whole:
        body = {"folder": whole.folder, "tools": ["charge"]}
        refused = whole.send("POST", "/api/tasks", body)
        assert (refused.status, refused.json["error"]["code"]) == (400, "tool")
        assert "serve --tool NAME" in refused.json["error"]["fix"]
        offer = whole.send("PATCH", "/api/settings", {"tools": ["charge"]})
        assert offer.status == 400, offer
        assert whole.send("POST", "/api/tasks", body).status == 400
        whole.server.registry.tools = ("charge",)
        assert whole.task(tools=["charge", "charge"])["tools"] == ["charge"]
        assert whole.task()["tools"] == []
        for wrong in (["charge", "other"], ["../charge"], "charge", [3]):
            assert whole.send("POST", "/api/tasks", {"folder": whole.folder, "tools": wrong}).status == 400, wrong
        assert len(whole.get("/api/tasks")["tasks"]) == 2
        viewer = whole.send("POST", "/api/tokens", {"name": "laptop", "role": "viewer"}).json["secret"]
        asked = whole.ask(
            "POST", "/api/tasks", json.dumps(body).encode(), token=viewer, Content_Type="application/json"
        )
        assert asked.status == 403
        assert len(whole.get("/api/tasks")["tasks"]) == 2
