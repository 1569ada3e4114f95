"""The action log over the API."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.unit.server.api.running import Whole

if TYPE_CHECKING:
    from pathlib import Path


def test_the_log_comes_in_pages_and_by_type_and_task(tmp_path: Path) -> None:
    """SRV-3, JRN-2: newest first; pages join; a type and a task narrow it."""
    with Whole(tmp_path) as whole:
        tasks = [whole.task()["id"] for _ in range(3)]
        everything = [line["seq"] for line in whole.get("/api/log?limit=1000")["lines"]]
        assert everything == sorted(everything, reverse=True)
        paged: list[int] = []
        while True:
            before = f"&before={paged[-1]}" if paged else ""
            page = [line["seq"] for line in whole.get(f"/api/log?limit=2{before}")["lines"]]
            if not page:
                break
            paged += page
        assert paged == everything
        created = whole.get("/api/log?type=task.created")["lines"]
        assert [line["task"] for line in created] == tasks[::-1]
        assert {line["task"] for line in whole.get(f"/api/log?task={tasks[0]}")["lines"]} == {tasks[0]}
        assert whole.get("/api/log?type=none")["lines"] == []


def test_a_changed_line_is_found(tmp_path: Path) -> None:
    """JRN-2: verify says that all is well, and of a changed byte in which file and line it is."""
    with Whole(tmp_path) as whole:
        whole.task(name="before")
        whole.task(name="last")
        good = whole.get("/api/log/verify")
        assert (good["ok"], good["findings"]) == (True, [])
        path = os.path.join(whole.state, "log", "actions.jsonl")
        with open(path, "rb") as file:
            lines = file.read().splitlines(keepends=True)
        at = next(number for number, line in enumerate(lines, 1) if b"before" in line)
        lines[at - 1] = lines[at - 1].replace(b"before", b"beforE")
        with open(path, "r+b") as file:
            file.write(b"".join(lines))
        bad = whole.get("/api/log/verify")
        assert not bad["ok"]
        assert (bad["findings"][0]["file"], bad["findings"][0]["line"]) == (path, at)


def test_a_log_that_is_no_file_is_said(tmp_path: Path) -> None:
    """JRN-2: a pipe in its place is one clear answer to those who look, and the server goes on."""
    with Whole(tmp_path) as whole:
        whole.task(name="before")
        live = os.path.join(whole.state, "log", "actions.jsonl")
        os.rename(live, f"{live}.kept")
        os.mkfifo(live)
        answer = whole.send("GET", "/api/log")
        assert answer.status == 503
        assert "a pipe stands in the place of a file" in answer.json["error"]["what"]
        verdict = whole.get("/api/log/verify")
        assert not verdict["ok"]
        assert verdict["findings"] == [{"file": live, "line": 0, "what": "a pipe stands in the place of a file"}]
        os.rename(f"{live}.kept", live)
        assert whole.get("/api/log/verify")["ok"]
