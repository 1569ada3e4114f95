"""Secrets over the API: names and hosts, and nothing that is a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.server.api.running import Whole
from tidegate.runtime import secret_store
from tidegate.runtime.secret_store import Stored

if TYPE_CHECKING:
    from pathlib import Path

VALUE = b"ghp_abcdefgh12345678"


def test_secrets_are_listed_and_given_by_name(tmp_path: Path) -> None:
    """SRV-2, INS-5: what there is, and what a task has; a viewer sees the same; nobody sees a value."""
    with Whole(tmp_path) as whole:
        one = Stored("TOKEN", (("a.test", 443), ("2001:db8::1", 8443)), "header", "X-Key", "MY_TOKEN", "sealed")
        secret_store.save(whole.state, secret_store.seal(whole.state, one, VALUE))
        expected = {
            "name": "TOKEN",
            "hosts": ["a.test:443", "[2001:db8::1]:8443"],
            "place": "header",
            "field": "X-Key",
            "variable": "MY_TOKEN",
            "source": "sealed",
        }
        assert whole.get("/api/secrets") == {"secrets": [expected]}
        viewer = whole.send("POST", "/api/tokens", {"name": "laptop", "role": "viewer"}).json["secret"]
        seen = whole.ask("GET", "/api/secrets", token=viewer)
        assert seen.json == {"secrets": [expected]}
        task = whole.task(secrets=["TOKEN"])
        assert task["secrets"] == [{"name": "TOKEN", "hosts": expected["hosts"], "variable": "MY_TOKEN"}]
        assert whole.task()["secrets"] == []
        answers = [whole.ask("GET", path, token=viewer) for path in ("/api/tasks", f"/api/tasks/{task['id']}")]
        assert all(answer.status == 200 for answer in answers)
        assert all(VALUE not in answer.body for answer in (seen, *answers))
        whole.send("POST", f"/api/tasks/{task['id']}/end")
        assert whole.get(f"/api/tasks/{task['id']}")["secrets"] == task["secrets"]


def test_a_secret_that_is_none_makes_no_task(tmp_path: Path) -> None:
    """SRV-2: one that does not exist and what is no name are refused; no task was made."""
    with Whole(tmp_path) as whole:
        folder = str(tmp_path)
        for names in (["MISSING"], ["../x"], [""], "TOKEN", [1]):
            answer = whole.send("POST", "/api/tasks", {"folder": folder, "hosts": ["a.test"], "secrets": names})
            assert 400 <= answer.status < 500, (names, answer.status)
        assert whole.get("/api/tasks")["tasks"] == []
