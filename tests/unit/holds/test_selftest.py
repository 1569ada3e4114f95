"""The probes see what they are for, and pass where all is well."""

from __future__ import annotations

import socket
import threading

import pytest

from tests.unit.holds.apart import apart
from tidegate.holds import selftest
from tidegate.model.errors import StartError

GOOD = "Name:\tx\n" + "".join(f"Cap{name}:\t0000000000000000\n" for name in ("Inh", "Prm", "Eff", "Bnd", "Amb"))
GOOD += "NoNewPrivs:\t1\nSeccomp:\t2\n"


def test_a_confined_process_passes() -> None:
    """Nothing left: no objection."""
    selftest.check_confinement(GOOD)


@pytest.mark.parametrize(
    ("was", "is_"),
    [
        ("CapInh:\t0000000000000000", "CapInh:\t0000000000000001"),
        ("CapPrm:\t0000000000000000", "CapPrm:\t0000000000200000"),
        ("CapEff:\t0000000000000000", "CapEff:\t000001ffffffffff"),
        ("CapBnd:\t0000000000000000", "CapBnd:\t0000000000000400"),
        ("CapAmb:\t0000000000000000", "CapAmb:\t0000000000000400"),
        ("NoNewPrivs:\t1", "NoNewPrivs:\t0"),
        ("Seccomp:\t2", "Seccomp:\t0"),
    ],
)
def test_anything_left_stops_the_start(was: str, is_: str) -> None:
    """One capability in one set, or a missing lock, is enough (HLD-11)."""
    with pytest.raises(StartError, match="self-test"):
        selftest.check_confinement(GOOD.replace(was, is_))


def answering(answer: bytes) -> int:
    """The port of a gate that answers this to one connection."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with server, server.accept()[0] as connection:
            connection.recv(4096)
            connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 403 Forbidden\r\n\r\n", b"HTTP/1.0 403 X\r\nA: b\r\n\r\nno", b"HTTP/1.1 403 \r\n\r\n"]
)
def test_a_refusal_is_what_is_wanted(answer: bytes) -> None:
    """403 from the gate passes (HLD-11, B73)."""
    selftest.ask_gate(answering(answer))


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 Connection established\r\n\r\n",
        b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
        b"HTTP/1.1 200 403\r\n\r\n",
        b"SSH-2.0-x\r\n",
        b"",
        b"x" * 9000,
        b"403 403 403\r\n",
    ],
)
def test_anything_else_from_the_gate_stops_the_start(answer: bytes) -> None:
    """Above all a 200: a policy that was not loaded (HLD-11, B73)."""
    with pytest.raises(StartError, match=r"did not refuse|does not answer"):
        selftest.ask_gate(answering(answer))


def test_no_gate_stops_the_start() -> None:
    """A port where nobody listens is a gate that does not answer (HLD-7, B94)."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(StartError, match="does not answer"):
        selftest.ask_gate(port)


def test_sockets_that_could_lead_around_are_tried() -> None:
    """Without a filter some of them can be made, and that is seen; behind it none can (HLD-11)."""
    code = """
    from tidegate.holds import capabilities, seccomp, selftest
    inside(linux.CLONE_NEWNET)
    def check(kind):
        try:
            selftest.check_sockets(kind)
        except Exception as error:
            return str(error)[34:43]
        return 'fine'
    print(check('netns'), '/', check('open'))
    capabilities.no_new_privileges()
    seccomp.install(seccomp.program('netns'))
    print(check('netns'), '/', check('offline'))
    seccomp.install(seccomp.program('offline'))
    print(check('offline'))
    """
    lines = apart(code).splitlines()
    assert lines[0].endswith(" / fine")
    assert lines[0] != "fine / fine"
    assert lines[1:] == ["fine / an IPv4 s", "fine"] or lines[1:] == ["fine / an IPv4 ", "fine"]


def test_a_canary_that_is_reached_stops_the_start() -> None:
    """A connection that is made is seen inside, too; a refused one is what is wanted (HLD-11)."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = (2, 1, server.getsockname())
        with pytest.raises(StartError, match="reached"):
            selftest.check_canaries([target], b"word")
    selftest.check_canaries([target], b"word")
