"""Who makes the rules, the relay that takes the sockets, and a client, each in one network namespace of their own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.unit.holds.apart import apart
from tests.unit.holds.container.relay.running import program

if TYPE_CHECKING:
    from pathlib import Path

AROUND = """
    import socket, subprocess, time
    from tidegate.holds import network
    from tidegate.model.caught import place_of
    python, program, folder, *more = sys.argv[1:]
    inside(linux.CLONE_NEWNET, root=True)
    network.raise_loopback()
    def run(*words):
        argv = [python, "-I", "-S", "-B", program, *words]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    def listen(name):
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(folder + "/" + name)
        sock.listen(8)
        sock.settimeout(30)
        return sock
"""


def in_a_network(tmp_path: Path, code: str, *more: str) -> list[str]:
    """The lines that this code prints in a namespace with the relay's program at hand."""
    return apart(AROUND + code, sys.executable, program(), str(tmp_path), *more).splitlines()


def test_what_is_captured_arrives_with_where_it_was_going(tmp_path: Path) -> None:
    """HLD-4, HLD-6: over IPv4 and IPv6, a look-up by datagram, and UDP turned away; who made the rules is gone with 0.

    Before the sockets were handed over the relay lets nobody know that it is there (HLD-7).
    """
    code = """
    caught, lookup, told, life = (listen(name + ".sock") for name in ("caught", "lookup", "told", "life"))
    relay = run("worker", folder, "3128", "20", "captured")
    life.settimeout(0.5)
    try: life.accept(); print("too soon")
    except TimeoutError: print("waits")
    life.settimeout(30)
    rules = run("rules", "3128")
    print("rules", rules.wait(30))
    owner = life.accept()[0]
    owner.send(b"+")
    owner.recv(1)
    print(relay.stdout.readline().strip())
    for family, address, port in ((socket.AF_INET, "203.0.113.9", 4444), (socket.AF_INET6, "2001:db8::9", 4445)):
        wire = socket.socket(family)
        wire.settimeout(30)
        wire.connect((address, port))
        sock, name = caught.accept()
        packed, number = place_of(name)
        wire.send(b"ask")
        said = sock.recv(10)
        sock.send(b"answer")
        print(socket.inet_ntop(family, packed), number, said, wire.recv(10))
        sock.close()
        print(wire.recv(10))
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    wire.settimeout(30)
    wire.connect(("9.9.9.9", 53))
    wire.send(b"id" + bytes(10) + b"question")
    gate = lookup.accept()[0]
    asked = gate.recv(100)
    gate.send(asked)
    print(wire.recv(100))
    print(attempt(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto, b"quic", ("203.0.113.9", 443)))
    heard = told.accept()[0].recv(4096)
    print(len(heard) >= 2 + (heard[0] << 8 | heard[1]), socket.inet_aton("203.0.113.9") in heard)
    relay.kill(); relay.wait()
    """
    assert in_a_network(tmp_path, code) == [
        "waits",
        "rules 0",
        "tidegate-relay 1 ready",
        "203.0.113.9 4444 b'ask' b'answer'",
        "b''",
        "2001:db8::9 4445 b'ask' b'answer'",
        "b''",
        "b'id\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00question'",
        "EPERM",
        "True True",
    ]


def test_rules_that_cannot_be_made_are_said(tmp_path: Path) -> None:
    """HLD-7: without the right it ends with 1 and says what failed."""
    code = """
    child = os.fork()
    if child == 0:
        linux.unshare(linux.CLONE_NEWUSER)
        os.execv(python, [python, "-I", "-S", "-B", program, "rules", "3128"])
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    lines = in_a_network(tmp_path, code)
    assert lines[-1] == "1"
    assert lines[0].startswith("tidegate-relay 1 "), lines
    assert "not permitted" in lines[0]


def test_what_is_proven_is_said_and_what_is_not_too(tmp_path: Path) -> None:
    """HLD-11: in a network where nothing is captured the proof says what it met."""
    code = """
    prove = run("prove", "word", "[]")
    print(prove.communicate(timeout=60)[0].strip(), prove.returncode)
    """
    (line,) = in_a_network(tmp_path, code)
    assert line.startswith("tidegate-relay 1 ")
    assert "proven" not in line
    assert line.endswith(" 0")
