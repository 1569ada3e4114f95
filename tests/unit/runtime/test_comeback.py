"""tidegate.runtime.comeback; with real servers and containers in tests/holds/test_server_restarts.py."""

from __future__ import annotations

import json
import os
import select
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.holds.hold import RunningTask
from tidegate.runtime.comeback import BACK, Comeback
from tidegate.runtime.server_link import ServerLink

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 180.0
ROW = ["a.test", 80, "allow", "tunneled", "allowed", "a.test", "n", "s", "", "runtime", 1, 2, 3]


class Next:
    """The next server: what it hears and says is written out in the tests."""

    def __init__(self, folder: Path) -> None:
        (folder / "run").mkdir()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / "run" / "front.sock"))
        self.listener.listen()
        self.listener.settimeout(PATIENCE)
        self.peers: list[socket.socket] = []

    def meet(self) -> Any:
        """Accept somebody; the first that they say."""
        self.peers.append(self.listener.accept()[0])
        self.peers[-1].settimeout(PATIENCE)
        return self.hear()

    def hear(self) -> Any:
        """The next frame."""
        head = self.peers[-1].recv(4, socket.MSG_WAITALL)
        return json.loads(self.peers[-1].recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))

    def say(self, *messages: list[Any]) -> None:
        """Say these at once."""
        bodies = [json.dumps(message).encode() for message in messages]
        self.peers[-1].sendall(b"".join(len(body).to_bytes(4, "big") + body for body in bodies))

    def close(self) -> None:
        """End it."""
        for one in (self.listener, *self.peers):
            one.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Next]:
    """The next server."""
    found = Next(tmp_path)
    yield found
    found.close()


def _link() -> ServerLink:
    """A conversation with a server that has ended after this."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    link = ServerLink(ours, print)  # type: ignore[arg-type]
    link.configure({"task": "t1", "policy": {"much": "text"}, "log": "/l", "rotate": True})
    theirs.close()
    return link


def _comeback(link: ServerLink, state: Path, patience: float = PATIENCE) -> Comeback:
    task = RunningTask(0, -1, None)
    task.serve_again = lambda _deliver, _met, _ports: None
    return Comeback(link, task, str(state), patience=patience)


def _outcome(comeback: Comeback) -> tuple[list[str], int, str]:
    while True:
        assert select.select([comeback.fileno()], [], [], PATIENCE)[0]
        said, gate, why = comeback.hear()
        if gate >= 0 or why:
            return said, gate, why


def test_the_next_server_gets_what_the_first_was_told(server: Next, tmp_path: Path) -> None:
    """HLD-8: but for the policy, which is the server's to know; nothing that it says meanwhile is lost."""
    link = _link()
    link.heard(_frame(["end", "the server is stopping", True]) + _frame(["summary", [ROW], 1]))
    comeback = _comeback(link, tmp_path)
    assert comeback.may_return()
    assert "is stopping; the command goes on without a network" in comeback.begin()
    word, order = server.meet()
    assert (word, order["task"], order["again"], "policy" in order) == ("run", "t1", True, False)
    server.say(["ready", {"phase": "runtime", "met": {}, "ports": {}}], ["serving"], ["warn", "x" * 5000])
    said, gate, why = _outcome(comeback)
    assert (said, why, gate) == ([BACK], "", link.fileno())
    assert server.hear()[0] == "begin"
    server.say(["summary", [ROW, ["b.test", *ROW[1:]]], 2])
    counted = link.finish()
    assert counted is not None
    assert [row[0] for row in counted[0]] == ["a.test", "b.test"]
    assert (counted[0][0][10:], counted[1], link.gap) == ((2, 4, 6), 3, False)


def test_a_server_that_says_no_for_good_is_asked_once(server: Next, tmp_path: Path) -> None:
    """HLD-7: the task was ended meanwhile; who was killed has left no counts."""
    link = _link()
    comeback = _comeback(link, tmp_path)
    assert "the server is gone" in comeback.begin()
    server.meet()
    server.say(["failed", "the task t1 has ended meanwhile", "start it again", "task-ended"])
    _said, gate, why = _outcome(comeback)
    assert gate == -1
    assert "the task t1 has ended meanwhile" in why
    assert link.gap


def test_a_server_that_cannot_yet_is_asked_again(server: Next, tmp_path: Path) -> None:
    """HLD-8: one that ends in the midst, and one that has too much to do; the third takes it in."""
    link = _link()
    comeback = _comeback(link, tmp_path)
    comeback.begin()
    server.meet()
    server.peers[-1].close()
    server.meet()
    server.say(["failed", "as many commands run behind this server as it takes", "", "too-many"])
    server.meet()
    server.say(["ready", {"phase": "runtime", "met": {}, "ports": {}}], ["serving"])
    _said, gate, why = _outcome(comeback)
    assert (gate, why) == (link.fileno(), "")
    link.close()


def test_without_a_server_it_is_given_up(tmp_path: Path) -> None:
    """HLD-7: after a while the task ends, and is told why."""
    comeback = _comeback(_link(), tmp_path, patience=0.5)
    comeback.begin()
    _said, gate, why = _outcome(comeback)
    assert gate == -1
    assert "no server came" in why
    assert comeback.fileno() == -1


def test_a_task_that_ends_meanwhile_looks_no_more(server: Next, tmp_path: Path) -> None:
    """HLD-9: no process stays, also where it waits for a server that does not answer."""
    comeback = _comeback(_link(), tmp_path)
    comeback.begin()
    server.meet()
    child = comeback._child
    comeback.close()
    comeback.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def _frame(message: list[Any]) -> bytes:
    body = json.dumps(message).encode()
    return len(body).to_bytes(4, "big") + body
