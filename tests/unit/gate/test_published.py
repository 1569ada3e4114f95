"""tidegate.gate.published: from this machine to a server inside a namespace."""

from __future__ import annotations

import socket
import struct
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.gate.captive import Captive
from tests.unit.gate.kit import read_exactly, wait
from tidegate.gate import published
from tidegate.gate.inward import Inward
from tidegate.gate.marks import Marks
from tidegate.gate.published import PublishedListener, bind
from tidegate.model.errors import StartError
from tidegate.model.publish import parse_publish
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

PORT, INSIDE = 18080, 3000


class House:
    """A gate that publishes one port of a namespace."""

    def __init__(self, gate: Serving, captive: Captive, families: tuple[int, ...]) -> None:
        self.gate = gate
        self.captive = captive
        self.listeners: list[PublishedListener] = []
        self._moulds = [captive.socket(family).detach() for family in families for _ in range(2)]

    def publish(self, text: str) -> None:
        """Publish it, on the gate's thread."""

        def act() -> None:
            inward = Inward(self._moulds)
            for fd, one in bind(self.gate.gate.marks, [parse_publish(text)]):
                self.listeners.append(PublishedListener(self.gate.gate, fd, self.gate.task, one, inward))

        self.gate.on_thread(act)


@pytest.fixture
def house(lab: Lab, serve: Callable[..., Serving]) -> Iterator[House]:
    """A gate and a namespace."""
    families = (socket.AF_INET, socket.AF_INET6) if lab.ipv6 else (socket.AF_INET,)
    with Captive(ipv6=lab.ipv6) as captive:
        yield House(serve("localhost:18080", "127.0.0.1:18080"), captive, families)


def outside(address: str = "127.0.0.1") -> socket.socket:
    """A client of this machine."""
    return socket.create_connection((address, PORT), timeout=10)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("server", ["127.0.0.1", "::1", "0.0.0.0"])
def test_both_loopbacks_lead_to_the_server_wherever_it_listens(
    house: House, lab: Lab, address: str, server: str
) -> None:
    """HLD-10, JRN-1: bytes go both ways whole; up is what flows away from the task; half-close is kept."""
    if not lab.ipv6 and ":" in address + server:
        pytest.skip("this kernel has no IPv6")
    house.publish(f"{PORT}:{INSIDE}")
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    listener = house.captive.socket(family, bind=(server, INSIDE))
    client = outside(address)
    inside, _ = listener.accept()
    client.sendall(b"a" * 300_000)
    client.shutdown(socket.SHUT_WR)
    assert len(read_exactly(inside, 400_000)) == 300_000
    inside.sendall(b"answer")
    inside.close()
    assert read_exactly(client, 99) == b"answer"
    client.close()
    event = house.gate.event()
    assert (event.host, event.port, event.how, event.verdict) == ("localhost", PORT, How.PUBLISHED, Verdict.ALLOW)
    assert (event.bytes_up, event.bytes_down, event.reason) == (6, 300_000, Reason.ALLOWED)
    assert (event.source, event.address) == (f"--publish {PORT}:{INSIDE}", "::1" if ":" in server else "127.0.0.1")
    house.gate.idle()
    listener.close()


def test_a_server_that_speaks_first_is_heard_at_once(house: House) -> None:
    """HLD-10: nobody waits for the client's first bytes."""
    house.publish(f"127.0.0.1:{PORT}:{INSIDE}")
    listener = house.captive.socket(bind=("127.0.0.1", INSIDE))
    client = outside()
    inside, _ = listener.accept()
    inside.sendall(b"SSH-2.0-x")
    assert client.recv(99) == b"SSH-2.0-x"
    for sock in (client, inside, listener):
        sock.close()
    assert house.gate.event().host == "127.0.0.1"


def test_where_nobody_listens_the_client_is_reset_at_once(house: House) -> None:
    """HLD-10: as a closed port; it is on record, and the next client finds the server that came meanwhile."""
    house.publish(f"{PORT}:{INSIDE}")
    with pytest.raises(ConnectionResetError), outside() as client:  # it may be quicker than our connect()
        client.recv(1)
    event = house.gate.event()
    assert (event.how, event.reason) == (How.PUBLISHED, Reason.UPSTREAM_REFUSED)
    listener = house.captive.socket(bind=("127.0.0.1", INSIDE))
    client = outside()
    inside, _ = listener.accept()
    for sock in (client, inside, listener):
        sock.close()
    house.gate.idle()


def test_a_reset_inside_is_a_reset_outside(house: House) -> None:
    """GAT-5: a server that breaks off is not an orderly end."""
    house.publish(f"{PORT}:{INSIDE}")
    listener = house.captive.socket(bind=("127.0.0.1", INSIDE))
    client = outside()
    inside, _ = listener.accept()
    inside.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    inside.close()
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    client.close()
    listener.close()
    house.gate.idle()


def test_a_server_whose_queue_is_full_keeps_its_visitors_waiting(house: House) -> None:
    """GAT-6: who cannot be taken yet is tried for as long as any connection, and got when there is room."""
    house.publish(f"{PORT}:{INSIDE}")
    listener = house.captive.socket(bind=("127.0.0.1", INSIDE))
    listener.listen(0)
    clients = [outside() for _ in range(4)]
    for number, client in enumerate(clients):
        client.sendall(b"%d" % number)
    taken = set()
    for _ in clients:
        inside, _ = listener.accept()
        inside.settimeout(10)
        taken.add(inside.recv(9))
        inside.close()
    assert taken == {b"0", b"1", b"2", b"3"}
    for client in clients:
        client.close()
    listener.close()
    house.gate.idle()


def test_visitors_are_bounded_apart_from_the_task(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """GAT-6: one visitor too many is dropped and recorded, and the task's own connections are untouched by it."""
    monkeypatch.setattr(published, "VISITORS", 2)
    house.publish(f"127.0.0.1:{PORT}:{INSIDE}")
    listener = house.captive.socket(bind=("127.0.0.1", INSIDE))
    clients = [outside(), outside()]
    insides = [listener.accept()[0] for _ in clients]
    with outside() as third:
        assert third.recv(1) == b""
    assert house.gate.event().reason is Reason.TOO_MANY_CONNECTIONS
    assert house.gate.task.connections == 0
    clients.pop().close()
    insides.pop().close()
    wait(lambda: house.gate.gate.connections == 1)
    clients.append(outside())
    insides.append(listener.accept()[0])
    for sock in (*clients, *insides, listener):
        sock.close()
    house.gate.idle()


def _ask(gate: Serving, target: str) -> bytes:
    return gate.raw(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())


@pytest.mark.parametrize("target", [f"localhost:{PORT}", f"127.0.0.1:{PORT}"])
def test_no_task_reaches_a_published_port_by_any_rule(house: House, target: str) -> None:
    """ADR-1: a rule names it exactly, and it is refused, by name and by literal; an hour ago it was this machine's."""
    server = socket.create_server(("127.0.0.1", PORT))
    tunnel = house.gate.tunnel(target)
    tunnel.close()
    server.close()
    house.gate.idle()
    house.publish(f"{PORT}:{INSIDE}")
    answer = _ask(house.gate, target)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"[protected-port" in answer
    assert house.gate.event(1).reason is Reason.PROTECTED_PORT


def test_another_gates_published_port_is_protected_too(house: House, serve: Callable[..., Serving]) -> None:
    """ADR-1: other tasks are served by other processes, and know all the same; the port beside it is reached."""
    house.publish(f"{PORT}:{INSIDE}")
    beside = socket.create_server(("127.0.0.1", PORT + 1))
    other = serve(f"127.0.0.1:{PORT}", f"127.0.0.1:{PORT + 1}")
    assert b"[protected-port" in _ask(other, f"127.0.0.1:{PORT}")
    other.tunnel(f"127.0.0.1:{PORT + 1}").close()
    beside.close()


@pytest.mark.parametrize("taken", ["127.0.0.1", "::1"])
def test_a_port_that_is_taken_is_one_line(lab: Lab, taken: str) -> None:
    """HLD-7: on either loopback; nothing stays open, so that afterwards it can be had."""
    if not lab.ipv6 and ":" in taken:
        pytest.skip("this kernel has no IPv6")
    family = socket.AF_INET6 if ":" in taken else socket.AF_INET
    server = socket.create_server((taken, PORT), family=family)
    marks = Marks()
    with pytest.raises(StartError, match=f"port {PORT} of this machine is taken"):
        bind(marks, [parse_publish(f"{PORT + 1}"), parse_publish(f"{PORT}")])
    marks.close()
    server.close()
    bound = bind(marks, [parse_publish(f"{PORT + 1}"), parse_publish(f"{PORT}")])
    assert len(bound) == (4 if lab.ipv6 else 2)
    for fd, _ in bound:
        socket.close(fd)
    marks.close()


def test_visitors_can_be_cut(house: House) -> None:
    """HLD-9: with the listener its visitors end, and are on record; nobody comes in any more."""
    house.publish(f"{PORT}:{INSIDE}")
    listener = house.captive.socket(bind=("127.0.0.1", INSIDE))
    client = outside()
    inside, _ = listener.accept()
    for one in house.listeners:
        house.gate.on_thread(lambda one=one: house.gate.gate.remove_listener(one, cut=True))
    assert client.recv(1) == b""
    assert house.gate.event().reason is Reason.STOPPING
    with pytest.raises(ConnectionRefusedError):
        outside()
    for sock in (client, inside, listener):
        sock.close()


def test_many_visitors_at_once(house: House) -> None:
    """HLD-10: a hundred clients of eight threads each get their own answer."""
    house.publish(f"127.0.0.1:{PORT}:{INSIDE}")
    listener = house.captive.socket(bind=("127.0.0.1", INSIDE))
    answers: list[Any] = []

    def serve() -> None:
        for _ in range(104):
            inside, _ = listener.accept()
            inside.settimeout(10)
            inside.sendall(b"to " + inside.recv(9))
            inside.close()

    def visit(thread: int) -> None:
        for number in range(13):
            with outside() as client:
                said = b"%d-%d" % (thread, number)
                client.sendall(said)
                answers.append((read_exactly(client, 99), said))

    threads = [threading.Thread(target=serve), *(threading.Thread(target=visit, args=(n,)) for n in range(8))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(answers) == 104
    assert all(answer == b"to " + said for answer, said in answers)
    listener.close()
    house.gate.idle()
