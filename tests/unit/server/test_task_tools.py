"""tidegate.server.task_tools: which tools tasks may be created with, and that no command begins without them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.server.kit import Front, _blocking, actions, policy, served
from tidegate.model.errors import StartError, UsageError
from tidegate.runtime.server_link import find_server
from tidegate.server.shapes import task_shape_of_record
from tidegate.server.task_tools import checked, need_offered, offered

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from tidegate.server.serve import Server


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where tools are declared."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = tmp_path / "config" / "tidegate" / "tools.yaml"
    file.parent.mkdir(parents=True, mode=0o700)
    file.write_text("tools: {shout: {command: [/bin/true], description: Shout.}}\n")
    file.chmod(0o600)
    return file


def test_a_server_offers_what_is_declared(file: Path) -> None:
    """SRV-6: each once; a name that nothing declares, and a file that is wrong, are errors and no smaller offer."""
    assert offered(()) == ()
    assert offered(("shout", "shout")) == ("shout",)
    with pytest.raises(UsageError, match="there is no tool 'other'") as caught:
        offered(("shout", "other"))
    assert caught.value.fix == "one of shout"
    file.write_text("tools: [x]\n")
    assert offered(()) == ()  # whoever offers none is not kept from starting
    with pytest.raises(UsageError):
        offered(("shout",))
    file.unlink()
    with pytest.raises(UsageError) as caught:
        offered(("shout",))
    assert caught.value.fix == f"declare it in {file}"


def test_a_task_is_created_with_what_is_offered_alone() -> None:
    """SRV-6: in the words of whoever asked, and what to write instead."""
    assert checked(("a", "b", "a"), ("b", "a")) == ("a", "b")
    with pytest.raises(UsageError, match="no task with the tool 'c'") as caught:
        checked(("a", "c"), ("a", "b"))
    assert caught.value.fix == "one of a, b"
    with pytest.raises(UsageError, match="no task with the tool 'a'") as caught:
        checked(("a",), ())
    assert "serve --tool NAME" in caught.value.fix


@pytest.mark.parametrize("hold", ["netns", "landlock", "uid", "docker", "podman"])
def test_no_command_begins_without_a_tool_of_its_task(hold: str) -> None:
    """SRV-6, HLD-7: where the server does not offer it any more; a hold without a gate has no way to it anyway."""
    need_offered(("a",), hold, ("a", "b"))
    need_offered((), hold, ())
    with pytest.raises(StartError, match="'b', which this server does not offer") as caught:
        need_offered(("a", "b"), hold, ("a",))
    assert "--tool b" in caught.value.fix
    need_offered(("a",), "offline", ())
    need_offered(("a",), "open", ())


@pytest.mark.usefixtures("isolated")
def test_they_are_on_record_and_outlive_the_server(tmp_path: Path) -> None:
    """SRV-6, HLD-8, JRN-2: a front is told of them; one server that offers less begins none of its commands."""

    async def begin(server: Server, offers: tuple[str, ...]) -> dict[str, Any]:
        server.registry.tools = offers
        link = await _blocking(find_server, server.state, print)
        try:
            told: dict[str, Any] = await _blocking(
                link.join, {"task": "made", "command": ("true",), "hold": "netns", "ask": "no", "own_names": ()}
            )
            return told
        finally:
            link.close()

    async def first(server: Server) -> str:
        server.registry.tools = ("shout", "other")
        with pytest.raises(UsageError, match="no task with the tool 'third'"):
            await server.registry.create(folder=str(tmp_path), policy=policy(), tools=("shout", "third"), by="me")
        assert not server.registry.living()
        task = await server.registry.create(
            folder=str(tmp_path), policy=policy(), name="made", tools=["shout"], by="me"
        )
        assert server.registry.view(task)["tools"] == ["shout"]
        assert (await begin(server, ("shout",)))["tools"] == ["shout"]
        front = await Front.open(server, tmp_path)  # a `run` names its own
        assert server.registry.view(server.registry.get("t1"))["tools"] == []
        await front.finish()
        return task.id

    async def second(server: Server) -> None:
        with pytest.raises(StartError, match="'shout', which this server does not offer"):
            await begin(server, ("other",))
        (task,) = server.registry.living()
        assert not task.execs
        assert (await begin(server, ("shout",)))["tools"] == ["shout"]
        await server.registry.end(task, by="me")
        record = server.store.task(task.id)
        assert record is not None
        assert task_shape_of_record(record)["tools"] == ["shout"]
        assert task_shape_of_record(record.replace(operator=b'{"tools": 3}'))["tools"] == []

    made = served(tmp_path, first)
    served(tmp_path, second)
    (created,) = [line for line in actions(tmp_path) if line["type"] == "task.created" and line["task"] == made]
    assert created["tools"] == ["shout"]
    assert json.dumps(actions(tmp_path)).count('"tools"') == 1
