"""tidegate.server.ledger: what of a task outlives the server; the rest is seen in test_tasks.py and test_serve.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.server.kit import Front, actions, policy, served
from tidegate.model.errors import NotSavedError, StartError
from tidegate.model.verdict import Verdict
from tidegate.policy.snapshot import from_json

if TYPE_CHECKING:
    from tidegate.server.serve import Server


@pytest.mark.usefixtures("isolated")
def test_a_tasks_record_has_its_policy_frozen(tmp_path: Path) -> None:
    """POL-8: what the operator adds stands beside the snapshot, which stays what it was."""

    async def act(server: Server) -> None:
        task = await server.registry.create(folder=str(tmp_path), policy=policy("a.test"), name="n", by="me")
        await server.registry.change(task, deny=["a.test"], by="me")
        await server.registry.pause(task, paused=True, by="me")
        record = server.store.task(task.id)
        assert record is not None
        assert from_json(json.loads(record.policy)) == policy("a.test")
        kept = json.loads(record.operator)
        assert (kept["rules"], kept["paused"], kept["set_up"]) == ({"a.test": "deny"}, True, False)
        assert (record.name, record.by, record.owner_pid, record.folder.path) == ("n", "me", 0, str(tmp_path))

    served(tmp_path, act)


@pytest.mark.usefixtures("isolated")
def test_a_task_that_cannot_be_kept_does_not_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HLD-7, JRN-5: a store that fails stops the start of the task, and takes nothing else with it."""

    async def act(server: Server) -> None:
        def fails(_record: object) -> None:
            raise NotSavedError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(server.store, "create_task", fails)
            with pytest.raises(StartError, match="disk is full"):
                await Front.open(server, tmp_path)
        assert server.registry.living() == []
        front = await Front.open(server, tmp_path)
        await front.finish()

    served(tmp_path, act)


def test_an_open_network_is_on_record(tmp_path: Path) -> None:
    """HLD-5: `open` is an event of its own, whoever looks."""

    async def act(server: Server) -> None:
        task = await server.registry.create(folder=str(tmp_path), policy=policy(), by="me")
        exec_ = server.registry.begin_exec(task, command=("ls",), hold="open", ask="no", say=lambda _message: None)
        await server.registry.end_exec(exec_)

    served(tmp_path, act)
    assert [line["exec"][-2:] for line in actions(tmp_path) if line["type"] == "open.network"] == ["-1"]


def test_allow_and_deny_are_words_of_the_record(tmp_path: Path) -> None:
    """POL-8: what is kept of an operator's rule is read back as that rule."""

    async def act(server: Server) -> None:
        task = await server.registry.create(folder=str(tmp_path), policy=policy(), by="me")
        await server.registry.change(task, allow=["a.test:443"], deny=["b.test"], by="me")
        assert task.operator == {"a.test:443": Verdict.ALLOW, "b.test": Verdict.DENY}
        kept = server.store.task(task.id)
        assert kept is not None
        assert json.loads(kept.operator)["rules"] == {"a.test:443": "allow", "b.test": "deny"}

    served(tmp_path, act)
