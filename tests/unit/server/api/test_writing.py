"""tidegate.server.api.writing."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.unit.server.api.running import Whole
from tidegate.server.api.writing import to_json

if TYPE_CHECKING:
    from pathlib import Path


class Thing(msgspec.Struct):
    """An answer."""

    names: list[str]


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"a": "é\u202e"}, {"a": "é\u202e"}),
        ({"a": ["x\udcff", 1, None]}, {"a": ["x\\xff", 1, None]}),
        ({"x\udc80": {"b": ("\ud800", 2.5)}}, {"x\\x80": {"b": ["\\ud800", 2.5]}}),
        (Thing(["\udc41", "ok"]), {"names": ["\\udc41", "ok"]}),
    ],
)
def test_what_is_no_utf8_is_shown(value: object, read: object) -> None:
    """SRV-2, ASK-6: such a text is shown as its bytes, and all else is what it was."""
    assert json.loads(to_json(value)) == read


def test_a_folder_whose_name_is_no_utf8_keeps_nothing_from_anybody(tmp_path: Path) -> None:
    """SRV-2: lists, the log, questions, their conflicts and the stream of events go on with such a task."""
    with Whole(tmp_path) as whole:
        whole.folder = str(tmp_path / "odd\udcff")
        os.mkdir(whole.folder)
        other = tmp_path / "plain"
        other.mkdir()

        async def create() -> Any:
            registry = whole.server.registry
            from tests.unit.server.kit import policy

            task = await registry.create(folder=whole.folder, policy=policy(), by="me")
            registry.begin_exec(task, command=("echo", "\udcfe"), hold="offline", ask="no", say=lambda _: None)
            return task

        task = whole.on_loop(create())
        whole.open_question(task.id)
        shown = str(tmp_path / "odd\\xff")
        (listed,) = whole.get("/api/tasks")["tasks"]
        assert (listed["folder"], listed["execs"][0]["command"]) == (shown, ["echo", "\\xfe"])
        assert any(line.get("folder") == shown for line in whole.get("/api/log")["lines"])
        (question,) = whole.get("/api/questions")["questions"]
        assert question["folder"] == shown
        path = f"/api/questions/{question['id']}/answer"
        assert whole.send("POST", path, {"answer": "deny"}).status == 200
        conflict = whole.send("POST", path, {"answer": "deny"})
        assert (conflict.status, conflict.json["question"]["folder"]) == (409, shown)
