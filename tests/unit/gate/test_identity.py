"""Whose a connection is, asked of the kernel with real sockets of real users (GAT-2)."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.owners import connect_as, owning, reset, spare_port
from tests.unit.gate.kit import policy_of, read_exactly, wait
from tidegate.gate.gate import GateTask
from tidegate.gate.identity import IMPOSSIBLE, Peers, Stranger, UnknownPeerError, client_ends, owned_by
from tidegate.model.reason import Reason
from tidegate.wire import sock_diag
from tidegate.wire.sock_diag import NETLINK_SOCK_DIAG, Ends, Owner, question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]

pytestmark = pytest.mark.usefixtures("isolated")

ALICE, BOB = 41001, 41002  # not of the hold uid: a table of it may stand in the network that tests share
SO_COOKIE = 57  # asm-generic/socket.h
CONNECT = b"CONNECT 1.2.3.4:443 HTTP/1.1\r\nHost: 1.2.3.4:443\r\n\r\n"


@pytest.fixture
def peers() -> Iterator[Peers]:
    """The question to the kernel."""
    made = Peers()
    yield made
    made.close()


@pytest.fixture
def gate() -> Iterator[socket.socket]:
    """A listening socket of root's."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


def whose(peers: Peers, gate: socket.socket) -> Owner:
    """Accept one connection and find out whose it is."""
    sock, peer = gate.accept()
    with sock:
        return peers.owner(sock, peer)


def test_the_kernel_says_whose_a_connection_is(peers: Peers, gate: socket.socket) -> None:
    """GAT-2: two users at one listener are told apart; it is the very socket, by inode and cookie."""
    for uid in (ALICE, BOB, ALICE):
        with connect_as(uid, gate.getsockname()) as client:
            (cookie,) = struct.unpack("=Q", client.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8))
            assert whose(peers, gate) == Owner(uid, os.fstat(client.fileno()).st_ino, cookie)


def test_a_client_with_an_ipv6_socket_is_known(peers: Peers, gate: socket.socket) -> None:
    """A JVM connects to 127.0.0.1 through IPv6, and is known all the same."""
    with connect_as(ALICE, ("::ffff:127.0.0.1", gate.getsockname()[1]), family=socket.AF_INET6):
        assert whose(peers, gate).uid == ALICE


def test_ipv6_is_asked_about_as_ipv6(lab: Lab, peers: Peers) -> None:
    """A listener on ::1."""
    if not lab.ipv6:
        pytest.skip("no IPv6 here")
    server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    with server as gate, connect_as(BOB, gate.getsockname()[:2], family=socket.AF_INET6):
        assert whose(peers, gate).uid == BOB


def test_an_ipv4_address_in_ipv6_is_nobodys(lab: Lab, peers: Peers) -> None:
    """GAT-2: a peer of a listener of both families that came by IPv4 is refused, the same by IPv6 is not."""
    if not lab.ipv6:
        pytest.skip("no IPv6 here")
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as gate:
        port = gate.getsockname()[1]
        with connect_as(ALICE, ("127.0.0.1", port)), pytest.raises(UnknownPeerError, match="IPv4"):
            whose(peers, gate)
        with connect_as(ALICE, ("::1", port), family=socket.AF_INET6):
            assert whose(peers, gate).uid == ALICE


def test_who_has_closed_is_nobody_and_who_has_said_all_is_still_there(peers: Peers, gate: socket.socket) -> None:
    """GAT-2: a closed socket reads as root's in the kernel; one whose process only ended its direction is its own."""
    connect_as(ALICE, gate.getsockname()).close()
    with pytest.raises(UnknownPeerError, match="no owner"):
        whose(peers, gate)
    with connect_as(ALICE, gate.getsockname()) as client:
        client.shutdown(socket.SHUT_WR)
        assert whose(peers, gate).uid == ALICE


def test_a_port_that_passed_to_somebody_else_is_not_taken_for_the_first(peers: Peers, gate: socket.socket) -> None:
    """GAT-2: a request that was reset before it was accepted is not the next user's of that port."""
    port = spare_port()
    first = connect_as(ALICE, gate.getsockname(), port=port)
    first.sendall(CONNECT)
    reset(first)
    with connect_as(BOB, gate.getsockname(), port=port):
        sock, peer = gate.accept()
        with sock:
            assert peer[1] == port
            assert sock.recv(100) == CONNECT, "what was sent can still be read, so it matters whose it was"
            his = peers.sockets.ask(sock_diag.question, client_ends(sock, peer), sock_diag.answer)
            assert his is not None, "the kernel has an answer: the other one's"
            with pytest.raises(UnknownPeerError, match="reset"):
                peers.owner(sock, peer)
        assert whose(peers, gate).uid == BOB


def test_who_listens_on_the_clients_port_is_not_the_client(peers: Peers, gate: socket.socket) -> None:
    """GAT-2: where the connection is gone the kernel's look-up finds a listener; that is no answer."""
    port = spare_port()
    first = connect_as(ALICE, gate.getsockname(), port=port)
    reset(first)
    with owning(BOB):
        other = socket.socket()
    with other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(UnknownPeerError, match="no owner"):
            whose(peers, gate)


def test_answers_to_older_questions_are_thrown_away(peers: Peers, gate: socket.socket) -> None:
    """One that was never fetched is not taken for the next one's; too many of them are an error, once."""
    with connect_as(ALICE, gate.getsockname()) as client, connect_as(BOB, gate.getsockname()) as other:
        here, there = other.getsockname(), gate.getsockname()
        ends = Ends(socket.inet_aton(here[0]), here[1], socket.inet_aton(there[0]), there[1])
        assert peers.sockets.wire is not None
        for _ in range(2):
            peers.sockets.wire.send(question(ends, 0))
        assert client.fileno() >= 0
        assert whose(peers, gate).uid == ALICE
        for _ in range(4):
            peers.sockets.wire.send(question(ends, 0))
        with pytest.raises(UnknownPeerError, match="not understood"):
            whose(peers, gate)


def test_a_broken_question_is_nobodys_and_the_next_is_answered(peers: Peers, gate: socket.socket) -> None:
    """HLD-7: where the kernel cannot be asked the connection is refused; later ones are not."""
    assert peers.sockets.wire is not None
    os.close(peers.sockets.wire.detach())
    with connect_as(ALICE, gate.getsockname()), pytest.raises(UnknownPeerError, match="cannot be asked"):
        whose(peers, gate)
    with connect_as(ALICE, gate.getsockname()):
        assert whose(peers, gate).uid == ALICE


def test_nothing_but_the_kernel_is_heard(peers: Peers, gate: socket.socket) -> None:
    """A message from another socket of this kind, where one may send it, is no answer."""
    assert peers.sockets.wire is not None
    with socket.socket(16, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as forger, connect_as(ALICE, gate.getsockname()):
        peers.sockets.wire.bind((0, 0))
        try:
            forger.sendto(b"x" * 100, (peers.sockets.wire.getsockname()[0], 0))
        except OSError:
            pytest.skip("the kernel lets nobody else send")
        assert whose(peers, gate).uid == ALICE


@pytest.mark.parametrize("uid", sorted(IMPOSSIBLE))
def test_root_and_nobody_are_no_tasks(uid: int) -> None:
    """GAT-2: a listener cannot be said to be theirs."""
    with pytest.raises(ValueError, match=str(uid)):
        owned_by(uid)


REDIRECTING = """table ip t {
 chain c { type nat hook output priority -100;
  meta skuid {41001, 41002} tcp dport {443, 3128} redirect to :%d
 }
}
"""


@pytest.fixture
def redirected(gate: socket.socket) -> Iterator[tuple[str, int]]:
    """Both users' connections to ports 443 and 3128 lead to the gate; what they are told to connect to."""
    if shutil.which("nft") is None:
        pytest.skip("nft is not here")
    if os.geteuid() != 0:
        pytest.skip("only root has other users' connections redirected")
    subprocess.run(["nft", "-f", "-"], input=REDIRECTING % gate.getsockname()[1], text=True, check=True)
    yield "127.0.0.1", 3128
    subprocess.run(["nft", "delete", "table", "ip", "t"], check=True)


def test_a_redirected_connection_is_its_users(
    peers: Peers, gate: socket.socket, redirected: tuple[str, int], lab: Lab
) -> None:
    """GAT-2, HLD-6: its socket has another destination than the one that arrived, on loopback and off it."""
    lab.origin("raw", "1.2.3.4", 443)
    for uid, where in ((ALICE, redirected), (BOB, redirected), (ALICE, ("1.2.3.4", 443)), (BOB, ("1.2.3.4", 443))):
        with connect_as(uid, where):
            assert whose(peers, gate).uid == uid


def test_a_redirected_connection_by_ipv6_is_its_users(lab: Lab, peers: Peers) -> None:
    """GAT-2, HLD-6: the same in the other family, where tracking writes addresses of sixteen bytes."""
    if not lab.ipv6:
        pytest.skip("no IPv6 here")
    if shutil.which("nft") is None or os.geteuid() != 0:
        pytest.skip("only root, with nft, has other users' connections redirected")
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as gate:
        text = REDIRECTING.replace("table ip t", "table ip6 t") % gate.getsockname()[1]
        subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)
        try:
            for uid, port in ((ALICE, 3128), (BOB, 443)):
                with connect_as(uid, ("::1", port), family=socket.AF_INET6):
                    assert whose(peers, gate).uid == uid
        finally:
            subprocess.run(["nft", "delete", "table", "ip6", "t"], check=True)


def test_two_clients_with_the_same_port_are_told_apart(
    peers: Peers, gate: socket.socket, redirected: tuple[str, int]
) -> None:
    """GAT-2: netfilter gives one of them another port here, which may be a third one's; tracking knows whose it was."""
    port = spare_port()
    hers = connect_as(ALICE, redirected, port=port)
    sock, peer = gate.accept()
    assert peer[1] == port
    his = connect_as(BOB, ("127.0.0.1", 443), port=port)
    other, shifted = gate.accept()
    assert shifted[1] != port
    # A third socket, Alice's, with exactly the ends that Bob's connection seems to have.
    decoy = connect_as(ALICE, gate.getsockname(), port=shifted[1])
    with sock, other, hers, his, decoy:
        plain = peers.sockets.ask(sock_diag.question, client_ends(other, shifted), sock_diag.answer)
        assert plain is not None
        assert plain.uid == ALICE, "what it seems to be is Alice's"
        assert peers.owner(other, shifted).uid == BOB
        assert peers.owner(sock, peer).uid == ALICE
        assert whose(peers, gate).uid == ALICE  # the decoy's own


def test_without_tracking_a_redirected_connection_is_nobodys(
    peers: Peers, gate: socket.socket, redirected: tuple[str, int]
) -> None:
    """HLD-7: who may not ask tracking knows no owner; a direct connection is known all the same."""
    assert peers.tracking is not None
    peers.tracking.close()
    peers.tracking = None
    with connect_as(ALICE, redirected), pytest.raises(UnknownPeerError, match="no owner"):
        whose(peers, gate)
    with connect_as(ALICE, gate.getsockname()):
        assert whose(peers, gate).uid == ALICE


def test_a_tasks_own_listener_serves_its_user_only(lab: Lab, serve: Serve) -> None:
    """GAT-2, HLD-2, HLD-3: another user, root, and who has closed are dropped, told of, and not the task's doing."""
    lab.origin("raw", "1.2.3.4", 443)
    told: list[tuple[Stranger, int]] = []
    gate = serve("1.2.3.4:443", stranger=lambda who, count: told.append((who, count)))
    task = GateTask("t2", policy_of("1.2.3.4:443"))
    sock = socket.create_server(("127.0.0.1", 0))
    address = sock.getsockname()
    gate.on_thread(lambda: gate.gate.add_listener(sock.detach(), task, owned_by(ALICE)))
    for uid in (BOB, 0, 65534):
        with connect_as(uid, address) as client:
            client.sendall(CONNECT)
            assert dropped(client), uid
    with connect_as(ALICE, address) as client:
        client.sendall(CONNECT)
        assert read_exactly(client, 12) == b"HTTP/1.1 200"
    assert gate.event().task == "t2"
    assert [(who.reason, who.uid, who.task) for who, _ in told] == [
        (Reason.FOREIGN_PEER, BOB, "t2"),
        (Reason.UNKNOWN_PEER, 0, "t2"),
        (Reason.UNKNOWN_PEER, 65534, "t2"),
    ]
    assert len(gate.recording.events) == 1, "who comes from elsewhere is not in the task's journal"


def test_strangers_are_counted_and_told_of_once_in_a_while(serve: Serve) -> None:
    """GAT-2, B40: a flood of them is one line and a count."""
    told: list[tuple[Stranger, int]] = []
    gate = serve(stranger=lambda who, count: told.append((who, count)))
    sock = socket.create_server(("127.0.0.1", 0), backlog=64)
    address = sock.getsockname()
    gate.on_thread(lambda: gate.gate.add_listener(sock.detach(), gate.task, owned_by(ALICE)))
    for _ in range(40):
        with connect_as(BOB, address) as client:
            client.sendall(CONNECT)
            assert dropped(client)
    wait(lambda: gate.gate.strangers.count == 40)
    assert len(told) == 1
    gate.on_thread(gate.gate.strangers.close)
    assert [count for _, count in told] == [1, 39]
    assert gate.gate.connections == 0


def dropped(client: socket.socket) -> bool:
    """Whether a connection was ended without a byte."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
