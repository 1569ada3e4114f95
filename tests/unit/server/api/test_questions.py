"""Questions over the API: listed, answered once, and what they remember."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from tests.unit.server.api.running import Answer, Whole
from tidegate.journal.sinks.signature import read_key
from tidegate.journal.sinks.target import Target
from tidegate.model import question as model
from tidegate.server.reach import reach_out

if TYPE_CHECKING:
    from pathlib import Path


def _answer(whole: Whole, number: int, **body: object) -> Answer:
    return whole.send("POST", f"/api/questions/{number}/answer", body)


def test_an_open_question_is_shown_with_what_a_person_needs(whole: Whole) -> None:
    """ASK-1: task, host, port, rule, time left and how many wait; connections to one place share it."""
    task = whole.task(name="build")
    whole.open_question(task["id"])
    whole.open_question(task["id"])
    (found,) = whole.get("/api/questions")["questions"]
    assert (found["task_name"], found["host"], found["port"], found["waiting"]) == ("build", "ask.test", 443, 2)
    assert (found["state"], found["rule_name"], found["folder"]) == ("open", "no-rule", whole.folder)
    assert found["deadline_at"] - found["opened_at"] == pytest.approx(900)
    assert whole.get(f"/api/questions/{found['id']}") == found


@pytest.mark.parametrize(
    ("answer", "allowed"), [("allow", True), ("task", True), ("deny", False), ("deny-task", False)]
)
def test_an_answer_releases_those_who_wait(whole: Whole, answer: str, *, allowed: bool) -> None:
    """ASK-2: after the answer the connections are on their way, as it says, and the question says by whom."""
    released = whole.open_question(whole.task()["id"])
    (question,) = whole.get("/api/questions")["questions"]
    found = _answer(whole, question["id"], answer=answer)
    assert found.status == 200
    assert (found.json["state"], found.json["answer"], found.json["by"]) == ("answered", answer, "the command line")
    whole.on_loop(whole.server.gate.call(lambda: None))
    assert [decision.allowed for decision in released] == [allowed]


def test_the_second_answer_is_told_what_the_first_was(whole: Whole) -> None:
    """ASK-2: two answers at once: one wins, the other gets 409 with the question as it was answered."""
    whole.open_question(whole.task()["id"])
    (question,) = whole.get("/api/questions")["questions"]
    answers: list[Answer] = []
    ready = threading.Barrier(2)

    def say(word: str) -> None:
        ready.wait(60)
        answers.append(_answer(whole, question["id"], answer=word))

    threads = [threading.Thread(target=say, args=(word,)) for word in ("allow", "deny")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    first, second = sorted(answers, key=lambda answer: answer.status)
    assert (first.status, second.status) == (200, 409)
    assert second.json["error"]["code"] == "already-answered"
    assert second.json["question"]["answer"] == first.json["answer"]


def test_an_answer_with_an_end_that_is_none_is_refused_and_nothing_happens(whole: Whole) -> None:
    """ASK-7: terms go with allow and task only, and not with a time that is over; the question stays open."""
    whole.open_question(whole.task()["id"])
    (question,) = whole.get("/api/questions")["questions"]
    for body in (
        {"answer": "deny", "connections": 3},
        {"answer": "remember", "bytes": 5},
        {"answer": "allow", "until": 5},
    ):
        refused = _answer(whole, question["id"], **body)
        assert refused.status in {400, 409}
    assert whole.get(f"/api/questions/{question['id']}")["state"] == "open"
    assert _answer(whole, question["id"], answer="task", connections=3, bytes=1000).status == 200


def test_questions_that_are_not_there(whole: Whole) -> None:
    """SRV-1: an unknown question is 404, to look at and to answer."""
    for number in ("99", "x", "-1"):
        assert whole.ask("GET", f"/api/questions/{number}", unix=True).status == 404
        assert whole.send("POST", f"/api/questions/{number}/answer", {"answer": "allow"}).status == 404


def test_a_viewer_cannot_answer(whole: Whole) -> None:
    """SRV-2: a viewer sees the question, and its answer is 403 and changes nothing."""
    released = whole.open_question(whole.task()["id"])
    token = whole.send("POST", "/api/tokens", {"name": "a"}).json["secret"]
    (question,) = whole.ask("GET", "/api/questions", token=token).json["questions"]
    path = f"/api/questions/{question['id']}/answer"
    body = b'{"answer": "allow"}'
    assert whole.ask("POST", path, body, token=token, Content_Type="application/json").status == 403
    assert whole.get(f"/api/questions/{question['id']}")["state"] == "open"
    assert not released


def test_a_remembered_host_is_listed_and_forgotten(whole: Whole) -> None:
    """ASK-8: remembered by folder with when and by whom; forgotten once, and recorded."""
    whole.open_question(whole.task()["id"])
    (question,) = whole.get("/api/questions")["questions"]
    _answer(whole, question["id"], answer="remember")
    (rule,) = whole.get("/api/rules")["rules"]
    assert (rule["folder"], rule["host"], rule["port"], rule["by"]) == (
        whole.folder,
        "ask.test",
        443,
        "the command line",
    )
    assert whole.get(f"/api/rules?folder={whole.folder}")["rules"] == [rule]
    assert whole.get("/api/rules?folder=/elsewhere")["rules"] == []
    assert whole.send("DELETE", f"/api/rules/{rule['id']}").status == 200
    assert whole.send("DELETE", f"/api/rules/{rule['id']}").status == 404
    assert whole.get("/api/rules")["rules"] == []
    assert len(whole.get("/api/log?type=rule.forgotten")["lines"]) == 1


def test_asking_for_questions_counts_as_being_there(whole: Whole) -> None:
    """ASK-4: an owner who polls is present; a viewer who polls is not."""
    token = whole.send("POST", "/api/tokens", {"name": "a"}).json["secret"]
    whole.ask("GET", "/api/questions", token=token)
    assert not whole.server.presence.present("t")
    whole.get("/api/questions")
    assert whole.server.presence.present("t")


def test_a_token_of_the_webhook_answers_once_and_a_get_never(whole: Whole, tmp_path: Path) -> None:
    """ASK-5: over the port with no bearer token; a second use and a guess are 401; a GET changes nothing."""
    key = tmp_path / "key"
    key.write_text("0123456789abcdef")
    key.chmod(0o600)
    target = Target("http://127.0.0.1:9/", read_key(str(key)))

    async def begin() -> None:
        reach_out(whole.server, {}, notify=False, target=target, url=whole.api.url, warn=print)

    whole.on_loop(begin())
    assert whole.server.ways is not None
    webhook = whole.server.ways.webhook
    assert webhook is not None
    released = whole.open_question(whole.task()["id"])
    (question,) = whole.get("/api/questions")["questions"]
    token = webhook._token(question["id"], model.Answer.DENY)
    path = "/api/webhook/answer"

    def post(token: str) -> Answer:
        return whole.ask("POST", path, json.dumps({"token": token}).encode(), Content_Type="application/json")

    assert whole.ask("GET", f"{path}?token={token}").status in {401, 405}
    assert whole.get(f"/api/questions/{question['id']}")["state"] == "open"
    assert post("guess").status == 401
    found = post(token)
    assert found.status == 200
    assert (found.json["answer"], found.json["by"]) == ("deny", "webhook")
    assert post(token).status == 401
    whole.on_loop(whole.server.gate.call(lambda: None))
    assert [decision.allowed for decision in released] == [False]
