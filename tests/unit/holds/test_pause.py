"""tidegate.holds.pause: in a network of its own, with a gate that does not answer."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.product import REPOSITORY
from tidegate.holds import pause
from tidegate.holds.namespaces import close_namespaces, open_network

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can enter a network that an engine of root's made")

# A gate that takes connections and answers none; a server of the task's own; and who asks both.
INSIDE = """\
import socket, sys
sys.path.insert(0, sys.argv[1])
from tidegate.holds import capture, network
network.raise_loopback()
gate = socket.socket(fileno=network.listen(3128))
made = capture.capture('on', 3128)
own = socket.create_server(('127.0.0.1', 4000))
idle = [socket.create_connection(at, 5) for at in (('127.0.0.1', 3128), ('203.0.113.9', 80), ('127.0.0.1', 4000))]
def reach(address, port):
    try:
        with socket.create_connection((address, port), 5):
            return 'reached'
    except OSError as error:
        return type(error).__name__
def waits(wire):
    wire.settimeout(0.2)
    try:
        wire.recv(1)
    except TimeoutError:
        return 'open'
    except OSError as error:
        return 'ended'
print('up', flush=True)
for line in sys.stdin:
    print(*(reach(*at) for at in (('127.0.0.1', 3128), ('203.0.113.9', 80), ('127.0.0.1', 4000))),
          *map(waits, idle), flush=True)
"""


@pytest.fixture
def inside() -> Iterator[subprocess.Popen[str]]:
    """That network."""
    argv = ["unshare", "--net", sys.executable, "-I", "-c", INSIDE, f"{REPOSITORY}/src"]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == "up\n"
    yield child
    child.kill()
    child.wait()
    child.stdin.close()
    child.stdout.close()


def ask(inside: subprocess.Popen[str]) -> list[str]:
    """What is reached in there now, and what is still open."""
    assert inside.stdin is not None
    assert inside.stdout is not None
    inside.stdin.write("?\n")
    inside.stdin.flush()
    return inside.stdout.readline().split()


def test_what_leads_to_the_gate_is_reset_and_what_is_the_tasks_own_stays(inside: subprocess.Popen[str]) -> None:
    """HLD-7: the proxy and what is captured, new and open; own servers are left alone; afterwards all is as before."""
    namespaces = open_network(inside.pid, through_user=False)
    try:
        assert ask(inside) == ["reached", "reached", "reached", "open", "open", "open"]
        assert pause.refuse(namespaces, (3128,))
        assert pause.refuse(namespaces, (3128,))  # it is there already
        refused = "ConnectionRefusedError"
        assert ask(inside) == [refused, refused, "reached", "ended", "ended", "open"]
        assert pause.admit(namespaces)
        assert pause.admit(namespaces)
        assert ask(inside)[:3] == ["reached", "reached", "reached"]
    finally:
        close_namespaces(namespaces)


def test_a_service_that_the_gate_stands_for_is_reset_too(inside: subprocess.Popen[str]) -> None:
    """HLD-10 by HLD-7: a place of loopback where the gate listens for a service of this machine."""
    namespaces = open_network(inside.pid, through_user=False)
    try:
        assert pause.refuse(namespaces, (3128, 4000))
        assert ask(inside) == ["ConnectionRefusedError"] * 3 + ["ended"] * 3
    finally:
        close_namespaces(namespaces)


def test_what_cannot_be_done_is_said() -> None:
    """HLD-7: a network that cannot be entered; whoever asked ends the task then."""
    reading, writing = os.pipe()
    os.close(writing)
    try:
        assert not pause.refuse([(reading, 0x40000000)], (3128,))
    finally:
        os.close(reading)
