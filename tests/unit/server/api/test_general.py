"""Health and settings; events are in test_sse.py, the document in test_openapi.py."""

from __future__ import annotations

import pytest

from tests.unit.server.api.running import Whole


def test_health_says_who_asks_and_what_lives(whole: Whole) -> None:
    """SRV-2: version, role, living tasks and open questions."""
    task = whole.task()
    whole.open_question(task["id"])
    found = whole.get("/api/health")
    assert (found["ok"], found["role"], found["living"], found["open_questions"]) == (True, "owner", 1, 1)
    token = whole.send("POST", "/api/tokens", {"name": "a"}).json["secret"]
    assert whole.ask("GET", "/api/health", token=token).json["role"] == "viewer"


def test_settings_are_changed_in_part_and_recorded(whole: Whole) -> None:
    """SRV-2, POL-13: what is given is changed, the rest stays; it is in the store, in the log, and in force at once."""
    before = whole.get("/api/settings")
    rest = {"notify": True, "webhook": "", "relay_image": "", "webhook_key_set": False, "fixed": []}
    assert before == {"network_default": "none", "default_hosts": [], "wait_seconds": 900} | rest
    changed = whole.send("PATCH", "/api/settings", {"default_hosts": ["api.test:443"], "wait_seconds": 120}).json
    assert changed == {"network_default": "none", "default_hosts": ["api.test:443"], "wait_seconds": 120} | rest
    assert whole.get("/api/settings") == changed
    assert whole.server.store.settings().wait_seconds == 120
    assert whole.task()["wait_seconds"] == 120
    (line,) = whole.get("/api/log?type=settings.changed")["lines"]
    assert line["default_hosts"] == ["api.test:443"]
    assert line["by"] == "the command line"


@pytest.mark.parametrize(
    "change",
    [
        {"default_hosts": ["https://a.test/"]},
        {"default_hosts": ["a.test", "*a.test"]},
        {"network_default": "all"},
        {"wait_seconds": 59},
        {"wait_secs": 100},
    ],
)
def test_a_bad_setting_changes_nothing(whole: Whole, change: dict[str, object]) -> None:
    """SRV-2, POL-2: a host that is no rule, or a value out of its bounds, is 400 with all as it was."""
    answer = whole.send("PATCH", "/api/settings", change)
    assert answer.status == 400
    assert answer.json["error"]["what"]
    assert whole.get("/api/settings")["default_hosts"] == []


def test_a_viewer_cannot_change_settings(whole: Whole) -> None:
    """SRV-2: PATCH is an owner's."""
    token = whole.send("POST", "/api/tokens", {"name": "a"}).json["secret"]
    body = b'{"wait_seconds": 120}'
    answer = whole.ask("PATCH", "/api/settings", body, token=token, Content_Type="application/json")
    assert answer.status == 403
    assert whole.ask("GET", "/api/settings", token=token).json["wait_seconds"] == 900
