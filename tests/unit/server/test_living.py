"""tidegate.server.living: a command in a real gate; how tasks use it is in test_tasks.py."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from tests.descriptors import descriptors
from tests.unit.gate.kit import policy_of
from tidegate.gate.gate import Gate
from tidegate.holds.inside import PROXY, TaskSockets
from tidegate.journal.tasklog import TaskLog
from tidegate.model.errors import StartError
from tidegate.model.publish import Publish
from tidegate.model.question import FolderKey
from tidegate.model.verdict import Phase
from tidegate.server.books import TaskBooks
from tidegate.server.living import RUN, Exec, Living


class _Nothing:
    def record(self, _event: object) -> None:
        """Nobody's."""

    def flush(self) -> None:
        """Nothing to write."""


def _task(folder: Path) -> Living:
    task = Living(
        id="t1",
        kind=RUN,
        name="",
        folder=FolderKey(str(folder), 1, 2),
        command=("true",),
        phase=Phase.RUNTIME,
        policy=policy_of("a.test"),
        created_at=1.0,
        hold="netns",
        network="",
        wait_seconds=900,
        by="me",
    )
    log = TaskLog(str(folder / "log"), "t1", clock=lambda: 1.0, warn=print)
    task.books = TaskBooks(log, set(), lambda _line: None)
    return task


def _exec(task: Living, number: int = 1) -> Exec:
    exec_ = Exec(
        task, id=f"t1-{number}", command=("true",), hold="netns", ask="no", started_at=1.0, say=lambda _message: None
    )
    task.execs[exec_.id] = exec_
    return exec_


def _sockets() -> TaskSockets:
    return TaskSockets((PROXY,), (socket.create_server(("127.0.0.1", 0)).detach(),))


@pytest.mark.usefixtures("isolated")
def test_a_command_leaves_nothing_behind(tmp_path: Path) -> None:
    """HLD-8: descriptors, marks and listeners are back when it has ended, also a second time."""
    gate = Gate(recorder=_Nothing(), wall=time.time)  # noqa: TID251  the clock comes in here
    task = _task(tmp_path)
    before = descriptors()
    one, two = _exec(task, 1), _exec(task, 2)
    for exec_, port in ((one, 8091), (two, 8092)):
        exec_.publish(gate, (Publish(("127.0.0.1",), port, 80),))
        exec_.serve(gate, _sockets(), (), task.policy)
    assert one.gate_task is not None
    assert two.gate_task is not None
    assert one.gate_task.family == {one.gate_task, two.gate_task}
    assert 8091 in gate.marks
    for exec_ in (one, two, one):
        assert exec_.release(gate) == ([], 0)
    assert not gate.listeners
    probe = 1  # what marks asks with stays
    assert len(descriptors() - before) <= probe
    assert 8091 not in gate.marks
    assert task.books is not None
    task.books.close()
    gate.close()


@pytest.mark.usefixtures("isolated")
def test_a_next_hold_needs_one_before(tmp_path: Path) -> None:
    """HLD-7: a front that says things out of order gets an error, and the gate no listener."""
    gate = Gate(recorder=_Nothing(), wall=time.time)  # noqa: TID251  likewise
    task = _task(tmp_path)
    exec_ = _exec(task)
    with pytest.raises(StartError, match="before"):
        exec_.serve_next(gate, _sockets(), (), Phase.INSTALL)
    assert not gate.listeners
    exec_.serve(gate, _sockets(), (), task.policy)
    exec_.serve_next(gate, _sockets(), (), Phase.INSTALL)
    assert len(gate.listeners) == 1
    assert exec_.gate_task is not None
    assert exec_.gate_task.phase is Phase.INSTALL
    exec_.release(gate)
    assert task.books is not None
    task.books.close()
    gate.close()


@pytest.mark.usefixtures("isolated")
def test_a_command_that_was_ended_is_served_no_more(tmp_path: Path) -> None:
    """HLD-7, POL-7: a front that goes on while the operator ends its task gets no route that nobody would close."""
    gate = Gate(recorder=_Nothing(), wall=time.time)  # noqa: TID251  likewise
    task = _task(tmp_path)
    one, two = _exec(task, 1), _exec(task, 2)
    two.serve(gate, _sockets(), (), task.policy)
    before = descriptors()
    one.release(gate)
    with pytest.raises(StartError, match="ended"):
        one.serve(gate, _sockets(), (), task.policy)
    with pytest.raises(StartError, match="ended"):
        one.publish(gate, (Publish(("127.0.0.1",), 8093, 80),))
    with pytest.raises(StartError, match="already"):
        two.serve(gate, _sockets(), (), task.policy)
    with pytest.raises(OSError, match="non-socket"):
        _exec(task, 3).serve(gate, TaskSockets((PROXY,), (os.open("/dev/null", os.O_RDONLY),)), (), task.policy)
    assert len(gate.listeners) == 1
    assert two.gate_task is not None
    assert two.gate_task.family == {two.gate_task}
    assert descriptors() <= before
    two.release(gate)
    assert not gate.listeners
    assert task.books is not None
    task.books.close()
    gate.close()


def test_a_task_is_shown_whole(tmp_path: Path) -> None:
    """SRV-2: the shape that the API promises."""
    task = _task(tmp_path)
    _exec(task)
    assert set(task.view(3)) == {
        "id", "name", "folder", "command", "phase", "state", "created_at", "ended_at", "outcome", "hold", "network",
        "wait_seconds", "paused", "execs", "connections", "refused", "questions", "by", "secrets",
        "tools", "warnings",
    }  # fmt: skip
    assert (task.view(3)["questions"], task.view()["folder"]) == (3, str(tmp_path))
    assert task.books is not None
    task.books.close()
