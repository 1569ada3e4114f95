"""tidegate.tools.refusing: connections that are one too many, on a clock that is the test's."""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING

import pytest

from tidegate.tools import refusing
from tidegate.tools.refusing import ANSWER, HEAD_SECONDS, SECONDS, Refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = b"GET / HTTP/1.1\r\n\r\n"


class Refused:
    """A client, and what refuses it from 100.0 on."""

    def __init__(self) -> None:
        self.poll = select.poll()
        self.all = Refusals(self.poll)
        self.clients: list[socket.socket] = []
        self.client = self.add()

    def add(self) -> socket.socket:
        client, theirs = socket.socketpair()
        client.settimeout(30)
        self.clients.append(client)
        self.all.add(theirs, 100.0)
        return client

    def hear(self) -> None:
        for fd, _ in self.poll.poll(0):
            self.all.hear(fd)

    def told(self, client: socket.socket) -> bytes:
        """What is there to be read now."""
        client.setblocking(False)
        try:
            return client.recv(1000)
        except BlockingIOError:
            return b"-"


@pytest.fixture
def one() -> Iterator[Refused]:
    """One client."""
    made = Refused()
    yield made
    made.all.close()
    for client in made.clients:
        client.close()


@pytest.mark.parametrize("cut", range(1, len(HEAD)))
def test_the_answer_comes_after_the_head(one: Refused, cut: int) -> None:
    """SRV-6, B37: wherever the head is cut; then what follows is thrown away until the client closes."""
    with one.client:
        one.client.sendall(HEAD[:cut])
        one.hear()
        assert one.told(one.client) == b"-"
        one.client.sendall(HEAD[cut:])
        one.hear()
        assert one.told(one.client) == ANSWER
        one.client.sendall(b"more")
        one.hear()
        assert one.told(one.client) == b""
    one.hear()
    assert one.all.wait(100.0) is None


def test_a_head_that_does_not_come_is_waited_for_so_long(one: Refused) -> None:
    """SRV-6: then it is told; and closed when the client does not, with whatever it says meanwhile."""
    with one.client:
        assert one.all.wait(100.0) == HEAD_SECONDS * 1000 + 1
        assert one.told(one.client) == b"-"
        left = one.all.wait(100.0 + HEAD_SECONDS)
        assert left == (SECONDS - HEAD_SECONDS) * 1000 + 1
        assert (one.told(one.client), one.told(one.client)) == (ANSWER, b"")
        one.client.sendall(b"more")
        assert one.all.wait(100.0 + SECONDS) is None
        with pytest.raises(BrokenPipeError):
            one.client.sendall(b"more")


def test_the_oldest_makes_room(one: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-6: it has its answer, too."""
    monkeypatch.setattr(refusing, "MOST", 2)
    clients = [one.client, one.add(), one.add()]
    assert [one.told(client) for client in clients] == [ANSWER, b"-", b"-"]
    for client in clients:
        client.close()
    one.hear()
    assert one.all.wait(100.0) is None


def test_so_much_is_thrown_away(one: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-6: and then it is closed; its neighbour, that says less, is not."""
    monkeypatch.setattr(refusing, "MOST_BYTES", 100)
    much, little = one.add(), one.add()
    for client in (much, little):
        client.sendall(HEAD + bytes(40))
    one.hear()
    much.sendall(bytes(60))
    one.hear()
    with pytest.raises(BrokenPipeError):
        much.sendall(b"more")
    little.sendall(b"more")


def test_another_process_lets_go_without_a_word(one: Refused) -> None:
    """SRV-6: a worker that was forked meanwhile says nothing to clients that are not its own."""
    with one.client:
        one.all.close()
        assert one.client.recv(100) == b""
        assert one.all.wait(100.0) is None
