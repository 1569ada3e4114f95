"""One listener, many tasks: each connection is its own user's task's, and no other's (GAT-2, GAT-6)."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.owners import connect_as
from tests.unit.gate.kit import policy_of, read_exactly, small, wait
from tests.unit.gate.test_identity import ALICE, BOB, CONNECT, dropped
from tidegate.gate.gate import GateTask
from tidegate.gate.identity import IMPOSSIBLE, Stranger
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]


class Shared:
    """A gate with a shared listener, and tasks at it by their user."""

    def __init__(self, serve: Serve, **users: tuple[int, Any]) -> None:
        self.told: list[tuple[Stranger, int]] = []
        self.gate = serve(stranger=lambda who, count: self.told.append((who, count)))
        sock = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.address = sock.getsockname()
        self.listener = self.gate.on_thread(lambda: self.gate.gate.add_shared(sock.detach()))
        self.tasks = {name: GateTask(name, policy) for name, (_, policy) in users.items()}
        self.seats = {name: self.sit(uid, name) for name, (uid, _) in users.items()}

    def sit(self, uid: int, name: str) -> Any:
        """Give a user's task a seat."""
        return self.gate.on_thread(lambda: self.listener.seat(uid, self.tasks[name]))

    def ask(self, uid: int) -> tuple[socket.socket, bytes]:
        """Ask for a tunnel as a user: the connection, and the answer's first twelve bytes."""
        client = connect_as(uid, self.address)
        try:
            client.sendall(CONNECT)
            return client, read_exactly(client, 12)
        except (ConnectionResetError, BrokenPipeError):
            return client, b""

    def answer(self, uid: int) -> bytes:
        """Only the answer."""
        client, said = self.ask(uid)
        client.close()
        return said


@pytest.fixture
def two(lab: Lab, serve: Serve) -> Shared:
    """Alice may reach 1.2.3.4:443, Bob nothing."""
    lab.origin("raw", "1.2.3.4", 443)
    return Shared(serve, alice=(ALICE, policy_of("1.2.3.4:443")), bob=(BOB, policy_of()))


def test_each_user_meets_the_own_tasks_policy(two: Shared) -> None:
    """GAT-2: a task cannot use another's gate, though both connect to the same port."""
    assert two.answer(ALICE) == b"HTTP/1.1 200"
    assert two.answer(BOB) == b"HTTP/1.1 403"
    by_task = {event.task: event for event in two.gate.events(2)}
    assert by_task["alice"].reason is Reason.ALLOWED
    assert by_task["bob"].reason is Reason.LITERAL_NOT_NAMED


def test_who_has_no_seat_is_refused_and_told_of(two: Shared) -> None:
    """GAT-2: an unknown user, root, and one who has closed; none of it is in a task's journal."""
    assert two.answer(41099) == b""
    assert two.answer(0) == b""
    gone = connect_as(ALICE, two.address)
    gone.sendall(CONNECT)
    gone.close()
    wait(lambda: len(two.told) == 3 or bool(two.gate.recording.events))
    assert [(who.reason, who.uid, who.task) for who, _ in two.told[:2]] == [
        (Reason.FOREIGN_PEER, 41099, ""),
        (Reason.UNKNOWN_PEER, 0, ""),
    ]
    for who, _ in two.told[2:]:
        assert (who.reason, who.uid) == (Reason.UNKNOWN_PEER, -1)
    # The last one may have been accepted before it closed; then it was Alice's, and is hers.
    assert {event.task for event in two.gate.recording.events} <= {"alice"}


def test_the_bound_of_connections_is_each_tasks_own(lab: Lab, serve: Serve) -> None:
    """GAT-6: the 257th of one is dropped and recorded, another is unharmed; one leaves and the next is served."""
    lab.origin("raw", "1.2.3.4", 443)
    shared = Shared(serve, alice=(ALICE, policy_of("1.2.3.4:443")), bob=(BOB, policy_of("1.2.3.4:443")))
    open_ = []
    for _ in range(256):
        client, said = shared.ask(ALICE)
        assert said == b"HTTP/1.1 200"
        open_.append(client)
    assert shared.answer(ALICE) == b""
    event = shared.gate.event()
    assert (event.task, event.reason, event.how) == ("alice", Reason.TOO_MANY_CONNECTIONS, How.REFUSED)
    assert shared.answer(BOB) == b"HTTP/1.1 200"
    open_.pop().close()
    wait(lambda: shared.tasks["alice"].connections == 255)
    assert shared.answer(ALICE) == b"HTTP/1.1 200"
    for client in open_:
        client.close()
    shared.gate.idle()


def test_a_seat_is_given_back(two: Shared) -> None:
    """HLD-3: who left is refused at once; open connections live on, or are cut and recorded; the uid can be reused."""
    client, said = two.ask(ALICE)
    assert said == b"HTTP/1.1 200"
    two.gate.on_thread(lambda: two.gate.gate.remove_listener(two.seats["alice"], cut=False))
    assert two.answer(ALICE) == b""
    read_exactly(client, 27)
    client.sendall(b"x")
    assert client.recv(1) == b"x"
    client.close()
    two.gate.idle()
    two.tasks["next"] = GateTask("next", policy_of())
    seat = two.sit(ALICE, "next")
    two.seats["alice"].close()  # a late one leaves the next one's seat alone
    assert two.answer(ALICE) == b"HTTP/1.1 403"
    assert two.gate.events(2)[-1].task == "next"
    two.gate.on_thread(lambda: two.gate.gate.remove_listener(seat, cut=True))
    assert two.answer(ALICE) == b""


def test_cutting_a_seat_cuts_its_connections_only(lab: Lab, serve: Serve) -> None:
    """POL-7: Alice's are ended and recorded, Bob's go on."""
    lab.origin("raw", "1.2.3.4", 443)
    shared = Shared(serve, alice=(ALICE, policy_of("1.2.3.4:443")), bob=(BOB, policy_of("1.2.3.4:443")))
    hers, his = shared.ask(ALICE)[0], shared.ask(BOB)[0]
    shared.gate.on_thread(lambda: shared.gate.gate.remove_listener(shared.seats["alice"], cut=True))
    read_exactly(hers, 27)
    assert dropped(hers)
    read_exactly(his, 27)
    his.sendall(b"x")
    assert his.recv(1) == b"x"
    his.close()
    hers.close()
    assert [(event.task, event.reason) for event in shared.gate.events(2)] == [
        ("alice", Reason.STOPPING),
        ("bob", Reason.ALLOWED),
    ]


@pytest.mark.parametrize("uid", [ALICE, -5, 1 << 32, *sorted(IMPOSSIBLE)])
def test_one_seat_for_a_user_and_none_for_root(two: Shared, uid: int) -> None:
    """A uid belongs to one live task (HLD-3), and some can be nobody's; the neighbour can."""
    with pytest.raises(ValueError, match=str(uid)):
        two.listener.seat(uid, two.tasks["bob"])
    assert two.sit(41003, "bob").uid == 41003


def test_commands_of_one_task_share_the_bound(lab: Lab, serve: Serve) -> None:
    """GAT-6: two commands, two users, one task."""
    lab.origin("raw", "1.2.3.4", 443)
    policy = policy_of("1.2.3.4:443", limits=small(connections=1))
    shared = Shared(serve, alice=(ALICE, policy), bob=(BOB, policy))
    shared.tasks["bob"].join(shared.tasks["alice"])
    first, said = shared.ask(ALICE)
    assert said == b"HTTP/1.1 200"
    assert shared.answer(BOB) == b""
    first.close()
    shared.gate.idle()
    assert shared.answer(BOB) == b"HTTP/1.1 200"


def test_a_shared_listener_that_is_broken_rests_and_is_no_tasks_doing(two: Shared) -> None:
    """HLD-7: as any listener; there is no task whose journal it could be in."""
    two.gate.on_thread(lambda: two.listener._sock.shutdown(socket.SHUT_RDWR))
    wait(lambda: bool(two.gate.on_thread(lambda: two.listener.fd not in two.gate.gate.reactor.table)))
