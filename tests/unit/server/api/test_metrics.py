"""`/metrics` over real doors: who may, in which format, and what Prometheus' own parsers read."""

from __future__ import annotations

import pytest

from tests.sinks.receivers import Hook, until
from tests.unit.server.api.running import Whole

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


def test_a_viewers_token_reads_metrics(whole: Whole) -> None:
    """JRN-6, SRV-1: none without a token, none for a page of another origin; no cache keeps them."""
    assert whole.ask("GET", "/metrics").status == 401
    token = whole.send("POST", "/api/tokens", {"name": "prometheus"}).json["secret"]
    found = whole.ask("GET", "/metrics", token=token)
    assert found.status == 200
    assert found.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert found.headers["cache-control"] == "no-store"
    assert whole.ask("GET", "/metrics", token=token, Sec_Fetch_Site="cross-site").status == 403
    assert whole.ask("GET", "/metrics", token=token, Origin="https://evil.test").status == 403
    assert whole.ask("POST", "/metrics", b"", token=token).status == 405


def test_both_formats_are_read_by_prometheus(whole: Whole) -> None:
    """JRN-6: with a living task, an open question and a sink that cannot send."""
    parser = pytest.importorskip("prometheus_client.parser", reason="prometheus-client is not installed")
    strict = pytest.importorskip("prometheus_client.openmetrics.parser")
    task = whole.task()
    whole.open_question(task["id"])
    with Hook() as hook:
        pass
    body = {"url": hook.url, "key": hook.key.decode()}
    assert whole.send("PUT", "/api/sinks/siem", body).status == 200
    until(lambda: whole.get("/api/health")["failing_sinks"])
    older = whole.ask("GET", "/metrics", unix=True).body.decode()
    newer = whole.ask("GET", "/metrics", unix=True, Accept=OPENMETRICS)
    assert newer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    for parse, body_text in (
        (parser.text_string_to_metric_families, older),
        (strict.text_string_to_metric_families, newer.body.decode()),
    ):
        found = {one.name: one.samples for one in parse(body_text)}
        assert found["tidegate_tasks_living"][0].value == 1
        assert found["tidegate_questions_open"][0].value == 1
        (failing,) = found["tidegate_sink_failing"]
        assert (failing.labels, failing.value) == ({"sink": "siem", "kind": "webhook"}, 1)
        assert found["tidegate_sink_lag_lines"][0].value >= 1
        assert found["tidegate_action_log_lines"][0].value >= 2
