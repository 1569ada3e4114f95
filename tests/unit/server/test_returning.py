"""tidegate.server.returning: what a server left, behind the next one, with a real gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.server.kit import Front, _blocking, policy, served, until
from tidegate.model.errors import StartError
from tidegate.runtime.server_link import find_server
from tidegate.server import returning
from tidegate.server.serve import LOST

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.api import Lab
    from tidegate.server.serve import Server

A, B = "1.2.3.4:443", "1.2.3.5:443"


async def _left(server: Server, folder: Path) -> Front:
    """A `run` in a container, and one that is none; the server ends under both."""
    front = await Front.open(server, folder, hold="docker", rules=policy(A, B))
    await Front.open(server, folder, task="t2", rules=policy(A))
    await server.registry.change(server.registry.get("t1"), deny=[B], by="me")
    await server.stop()
    return front


async def _come_back(server: Server, before: Front) -> Front:
    """What the front of a `run` does behind the next server."""
    link = await _blocking(find_server, server.state, print)
    assert link is not None
    front = Front(server, link, before.log)
    await _blocking(link.rejoin, before.link)
    await front.serve()
    return front


@pytest.mark.usefixtures("isolated")
def test_a_run_in_a_container_goes_on_as_its_record_says(tmp_path: Path, lab: Lab) -> None:
    """HLD-8: its policy and what the operator changed; one that is in no container has ended, and is marked so."""
    lab.origin("raw", "1.2.3.4", 443)
    lab.origin("raw", "1.2.3.5", 443)
    before = served(tmp_path, lambda server: _left(server, tmp_path))

    async def next_one(server: Server) -> None:
        assert [(task.id, task.kind) for task in server.registry.living()] == [("t1", "run")]
        other = server.store.task("t2")
        assert other is not None
        assert other.outcome in ("ended", LOST)
        front = await _come_back(server, before)
        assert b" 200 " in (await front.connect(A))[2]
        assert b" 403 " in await front.asks(B)
        with pytest.raises(StartError, match="has ended meanwhile"):
            await _come_back(server, before)  # it is there already
        counted = await front.finish()
        assert counted is not None
        await until(lambda: not server.registry.living())
        with pytest.raises(StartError, match="has ended meanwhile"):
            await _come_back(server, before)

    served(tmp_path, next_one)


@pytest.mark.usefixtures("isolated")
def test_one_that_nobody_comes_for_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HLD-8: its front ended while there was no server."""
    served(tmp_path, lambda server: _left(server, tmp_path))
    monkeypatch.setattr(returning, "EXPECTED", 0.05)

    async def next_one(server: Server) -> Any:
        def ended() -> Any:
            record = server.store.task("t1")
            return record if record is not None and record.ended_at is not None else None

        await until(lambda: ended() is not None)
        return ended()

    record = served(tmp_path, next_one)
    assert record.outcome == returning.NEVER_CAME
