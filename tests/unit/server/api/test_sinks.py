"""The sinks over the API: who may, what is shown, what is refused."""

from __future__ import annotations

from tests.sinks.receivers import Hook, until
from tests.unit.server.api.running import Whole

SECRET = "t0ken-in-the-path"


def test_a_sink_is_set_shown_and_removed(whole: Whole) -> None:
    """JRN-6, SRV-2: everybody sees its host and how it does, never path or key; the log names it."""
    with Hook() as hook:
        url = f"{hook.url}/{SECRET}"
        hook.path += f"/{SECRET}"
        body = {"url": url, "key": hook.key.decode(), "types": ["net.*"]}
        made = whole.send("PUT", "/api/sinks/siem", body)
        assert made.status == 200, made.body
        whole.server.log.append("net.blocked", "t", host="h.test:1")
        until(lambda: hook.seqs)
        until(lambda: whole.get("/api/sinks")["sinks"][0]["sent"] == 1)
        token = whole.send("POST", "/api/tokens", {"name": "a"}).json["secret"]
        (shown,) = whole.ask("GET", "/api/sinks", token=token).json["sinks"]
        assert (shown["name"], shown["kind"], shown["host"]) == ("siem", "webhook", "localhost")
        everything = (
            made.body
            + whole.ask("GET", "/api/sinks", token=token).body
            + whole.ask("GET", "/api/log", token=token).body
        )
        assert SECRET.encode() not in everything
        assert hook.key not in everything
        assert whole.get("/api/health")["failing_sinks"] == []
        assert whole.send("DELETE", "/api/sinks/siem").status == 200
    assert whole.get("/api/sinks")["sinks"] == []
    kinds = [line["type"] for line in whole.get("/api/log")["lines"] if line["type"].startswith("sink.")]
    assert kinds == ["sink.removed", "sink.set"]


def test_a_viewer_sets_nothing(whole: Whole) -> None:
    """JRN-6, SRV-2: PUT, DELETE and a test are an owner's."""
    token = whole.send("POST", "/api/tokens", {"name": "a"}).json["secret"]
    body = b'{"url": "otlp+http://127.0.0.1:9"}'
    assert whole.ask("PUT", "/api/sinks/x", body, token=token, Content_Type="application/json").status == 403
    assert whole.ask("DELETE", "/api/sinks/x", token=token).status == 403
    assert whole.ask("POST", "/api/sinks/x/test", token=token).status == 403
    assert whole.get("/api/sinks")["sinks"] == []


def test_what_cannot_be_a_sink(whole: Whole) -> None:
    """JRN-6: 400 with what to write instead; nothing is set. A sink that is not there is 404."""
    for name, body in (
        ("x", {"url": "https://h.test/"}),
        ("x", {"url": "syslog+udp://h.test"}),
        ("X", {"url": "otlp+https://h.test"}),
        ("..", {"url": "otlp+https://h.test"}),
        ("x", {"url": "otlp+https://h.test", "types": ["*"]}),
        ("x", {"url": "otlp+https://h.test", "colour": "red"}),
    ):
        answer = whole.send("PUT", f"/api/sinks/{name}", body)
        assert answer.status == 400, (body, answer.body)
        assert answer.json["error"]["what"]
    assert whole.send("DELETE", "/api/sinks/x").status == 404
    assert whole.send("POST", "/api/sinks/x/test").json["error"]["code"] == "no-such-sink"
    assert whole.get("/api/sinks")["sinks"] == []
