"""Tasks over the API."""

from __future__ import annotations

import os

import pytest

from tests.unit.server.api.running import Whole


def test_a_task_lives_until_it_is_ended(whole: Whole) -> None:
    """SRV-2: created, shown, listed as living, ended once, and on record after that."""
    task = whole.task(name="build", hosts=["api.test:443"])
    assert (task["state"], task["name"], task["folder"]) == ("living", "build", whole.folder)
    assert whole.get(f"/api/tasks/{task['id']}") == task
    assert whole.get("/api/tasks?living=true")["tasks"] == [task]
    ended = whole.send("POST", f"/api/tasks/{task['id']}/end").json
    assert (ended["state"], ended["outcome"]) == ("ended", "ended by the command line")
    assert whole.get("/api/tasks?living=true")["tasks"] == []
    assert whole.get("/api/tasks?living=false")["tasks"] == [ended]
    again = whole.send("POST", f"/api/tasks/{task['id']}/end")
    assert (again.status, again.json["error"]["code"]) == (409, "task-ended")


def test_tasks_come_in_pages_newest_first(whole: Whole) -> None:
    """SRV-2: pages join without a gap, and the last says that it is."""
    made = [whole.task(name=f"t{number}")["name"] for number in range(5)]
    names: list[str] = []
    before = ""
    for _ in range(3):
        page = whole.get(f"/api/tasks?limit=2{before}")
        names += [task["name"] for task in page["tasks"]]
        before = f"&before={page['tasks'][-1]['id']}"
    assert not page["more"]
    assert sorted(names) == made
    assert len(names) == 5


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"folder": "/nonexistent/folder"}, "/nonexistent/folder"),
        ({"hosts": ["https://a.test"]}, "https://a.test"),
        ({"hosts": ["10.0.0.0/8"]}, "10.0.0.0/8"),
        ({"policy": "profile: [\n"}, "policy:"),
        ({"policy": ""}, "policy"),
        ({"policy": "profile: closed\n", "hosts": ["a.test"]}, "three ways"),
        ({"hosts": [], "network": "none"}, "three ways"),
    ],
)
def test_a_task_that_cannot_be_made_is_not(whole: Whole, body: dict[str, object], said: str) -> None:
    """SRV-2, POL-2: a folder that is none, a host that is no rule, or no policy is refused with the reason."""
    answer = whole.send("POST", "/api/tasks", {"folder": whole.folder} | body)
    assert answer.status in {400, 409}
    assert said in answer.json["error"]["what"]
    assert whole.get("/api/tasks")["tasks"] == []


def test_the_operator_changes_a_living_task(whole: Whole) -> None:
    """POL-7, POL-8: phase, pause, wait, hosts and cut act on it, are shown at once, and are in the log."""
    path = f"/api/tasks/{whole.task()['id']}"
    assert whole.send("POST", f"{path}/phase", {"phase": "install"}).json["phase"] == "install"
    assert whole.send("POST", f"{path}/pause", {"paused": True}).json["paused"] is True
    assert whole.send("POST", f"{path}/pause", {"paused": False}).json["paused"] is False
    assert whole.send("POST", f"{path}/wait", {"wait_seconds": 120}).json["wait_seconds"] == 120
    assert whole.send("POST", f"{path}/hosts", {"deny": ["b.test"]}).status == 200
    assert whole.send("POST", f"{path}/cut", {}).json == {"cut": 0}
    assert whole.send("POST", f"{path}/cut", {"host": "B.test.", "port": 443}).json == {"cut": 0}
    assert whole.send("POST", f"{path}/cut", {"connection": 7}).json == {"cut": 0}
    kinds = [line["type"] for line in whole.get("/api/log")["lines"]]
    assert {"task.created", "task.phase", "task.changed"} <= set(kinds)


@pytest.mark.parametrize(
    ("verb", "body", "status"),
    [
        ("phase", {"phase": "later"}, 400),
        ("pause", {}, 400),
        ("wait", {"wait_seconds": 59}, 400),
        ("wait", {"wait_seconds": 28801}, 400),
        ("wait", {"wait_seconds": 90.5}, 400),
        ("hosts", {}, 400),
        ("hosts", {"allow": ["*x.test"]}, 400),
        ("cut", {"host": "a b"}, 400),
        ("cut", {"port": 0}, 400),
        ("cut", {"connection": 0}, 400),
        ("cut", {"connection": "1"}, 400),
        ("end", {"now": True}, 400),
        ("nothing", {}, 404),
    ],
)
def test_what_cannot_be_done_to_it(whole: Whole, verb: str, body: dict[str, object], status: int) -> None:
    """SRV-1: a change that is none is refused, and the task stays as it was."""
    task = whole.task()
    assert whole.send("POST", f"/api/tasks/{task['id']}/{verb}", body).status == status
    assert whole.get(f"/api/tasks/{task['id']}") == task


def test_a_task_that_is_not_there(whole: Whole) -> None:
    """SRV-1: 404 for all that is asked of it; a name or the beginning of an id is no id here."""
    task = whole.task(name="build")
    for wrong in ("none", "build", task["id"][:8], "..", "%2e%2e"):
        assert whole.ask("GET", f"/api/tasks/{wrong}", unix=True).status == 404
        assert whole.ask("GET", f"/api/tasks/{wrong}/connections", unix=True).status == 404
        assert whole.send("POST", f"/api/tasks/{wrong}/end").status == 404


def test_its_record_comes_in_pages(whole: Whole) -> None:
    """SRV-2: the lines of network.jsonl, newest first, page by page; those of an ended task too."""
    task = whole.task()
    path = os.path.join(whole.state, "tasks", task["id"], "network.jsonl")
    assert whole.get(f"/api/tasks/{task['id']}/connections") == {"connections": [], "before": None}
    with open(path, "a", encoding="ascii") as file:
        file.writelines(f'{{"port": {number}}}\n' for number in range(5))
    for _ in range(2):
        ports: list[int] = []
        before = ""
        while True:
            page = whole.get(f"/api/tasks/{task['id']}/connections?limit=2{before}")
            ports += [line["port"] for line in page["connections"]]
            if page["before"] is None:
                break
            before = f"&before={page['before']}"
        assert ports == [4, 3, 2, 1, 0]
        whole.send("POST", f"/api/tasks/{task['id']}/end")


def test_what_is_open_is_there_for_viewers_too(whole: Whole) -> None:
    """SRV-2, SRV-3: a living task without connections, one that has ended, and none at all."""
    task = whole.task()
    viewer = whole.send("POST", "/api/tokens", {"name": "tests"}).json["secret"]
    answer = whole.ask("GET", f"/api/tasks/{task['id']}/open", token=viewer)
    assert (answer.status, answer.json) == (200, {"open": [], "more": 0, "seconds": 15.0})
    assert whole.send("POST", f"/api/tasks/{task['id']}/end").status == 200
    assert whole.get(f"/api/tasks/{task['id']}/open") == {"open": [], "more": 0, "seconds": 0.0}
    assert whole.ask("GET", "/api/tasks/none/open", unix=True).status == 404
    assert whole.ask("GET", f"/api/tasks/{task['id']}/open").status == 401
