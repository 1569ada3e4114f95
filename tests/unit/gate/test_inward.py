"""tidegate.gate.inward, against a real namespace."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.descriptors import descriptors
from tests.unit.gate.captive import Captive
from tidegate.gate.inward import Inward

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.api import Lab

FAMILIES = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]


@pytest.fixture
def captive(lab: Lab) -> Iterator[Captive]:
    """A namespace whose connections are captured."""
    with Captive(ipv6=lab.ipv6) as captive:
        yield captive


def moulds(captive: Captive, *families: int) -> Inward:
    """Two of each family, as a hold makes them."""
    return Inward([captive.socket(family).detach() for family in families for _ in range(2)])


@pytest.mark.parametrize(("family", "address"), FAMILIES)
def test_any_number_of_sockets_of_the_namespace(captive: Captive, lab: Lab, family: int, address: str) -> None:
    """HLD-10: each reaches a server inside and carries bytes both ways; none is left over, nothing listens on."""
    if family == socket.AF_INET6 and not lab.ipv6:
        pytest.skip("this kernel has no IPv6")
    server = captive.socket(family, bind=(address, 3000))
    inward = moulds(captive, family)
    before = descriptors()
    for _ in range(300):
        sock = inward.socket(family)
        sock.settimeout(5)
        sock.connect((address, 3000))
        inside, peer = server.accept()
        assert peer == sock.getsockname()
        sock.sendall(b"in")
        inside.sendall(b"out")
        assert (inside.recv(9), sock.recv(9)) == (b"in", b"out")
        sock.close()
        assert inside.recv(1) == b""
        inside.close()
    assert descriptors() <= before
    status, listening, _ = captive.run("cat", "/proc/net/tcp6" if family == socket.AF_INET6 else "/proc/net/tcp")
    assert status == 0
    assert sum(" 0A " in line for line in listening.splitlines()) == 1, "only the server listens"
    server.close()
    inward.close()


def test_it_leads_nowhere_but_inside(captive: Captive, lab: Lab) -> None:
    """HLD-1: what is made here belongs to the namespace: this machine's own server is not reached by it."""
    assert lab
    outside = socket.create_server(("127.0.0.1", 0))
    inward = moulds(captive, socket.AF_INET)
    sock = inward.socket(socket.AF_INET)
    sock.settimeout(5)
    with pytest.raises(ConnectionRefusedError):
        sock.connect(outside.getsockname())
    outside.setblocking(False)
    with pytest.raises(BlockingIOError):
        outside.accept()
    sock.close()
    inward.close()
    outside.close()


def test_a_family_that_is_not_there_is_an_error(captive: Captive) -> None:
    """A kernel without IPv6: only IPv4 can be had, and that still works."""
    inward = moulds(captive, socket.AF_INET)
    with pytest.raises(OSError, match="no such family"):
        inward.socket(socket.AF_INET6)
    inward.socket(socket.AF_INET).close()
    inward.close()


def test_strangers_in_the_queue_are_turned_away(captive: Captive, monkeypatch: pytest.MonkeyPatch) -> None:
    """GAT-2: whoever of the task connects in that instant gets a reset and never is what the gate takes for its own."""
    inward = moulds(captive, socket.AF_INET)
    strangers: list[socket.socket] = []
    real = Inward._cast

    def crowded(self: Inward, listener: socket.socket, wanted: object) -> socket.socket:
        # Between listen and accept: the task is quicker than we are.
        for _ in range(3):
            stranger = captive.socket(socket.AF_INET)
            stranger.connect(listener.getsockname())
            strangers.append(stranger)
        return real(self, listener, wanted)  # type: ignore[arg-type]

    monkeypatch.setattr(Inward, "_cast", crowded)
    server = captive.socket(bind=("127.0.0.1", 3000))
    for _ in range(3):
        sock = inward.socket(socket.AF_INET)
        sock.settimeout(5)
        sock.connect(("127.0.0.1", 3000))
        inside, _ = server.accept()
        sock.sendall(b"ours")
        assert inside.recv(9) == b"ours"
        inside.close()
        sock.close()
    for stranger in strangers:
        with pytest.raises(ConnectionResetError):
            stranger.recv(1)
        stranger.close()
    server.close()
    inward.close()
