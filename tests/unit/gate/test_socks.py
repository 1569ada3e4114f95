"""SOCKS5 clients."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.kit import client_hello, read_exactly
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]

HELLO = b"\x05\x01\x00"


def request(host: str | bytes, port: int, command: int = 1) -> bytes:
    """Return a request by name, or by packed address."""
    if isinstance(host, str):
        address = b"\x03" + bytes([len(host)]) + host.encode()
    else:
        address = (b"\x01" if len(host) == 4 else b"\x04") + host
    return b"\x05" + bytes([command]) + b"\x00" + address + struct.pack(">H", port)


@pytest.mark.parametrize("by_byte", [False, True])
@pytest.mark.parametrize("host", ["a.test", "A.Test.", b"\x01\x02\x03\x04"])
def test_names_and_addresses(lab: Lab, serve: Serve, by_byte: bool, host: str | bytes) -> None:
    """GAT-1: 5 and 5h, at any pace, also all in one write; recorded like a CONNECT."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 22, text="hi")
    gate = serve("a.test:22", "1.2.3.4:22")
    got = gate.raw(HELLO + request(host, 22), by_byte=by_byte, until=b"hi")
    assert got[:4] == b"\x05\x00\x05\x00"
    assert got.endswith(b"hi")
    event = gate.event()
    assert (event.how, event.method, event.status) == (How.TUNNELED, "SOCKS5", 0)


def test_bytes_sent_ahead_arrive(lab: Lab, serve: Serve) -> None:
    """GAT-1: a client that does not wait for the reply loses nothing."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("raw", "1.2.3.4", 22)
    gate = serve("a.test:22")
    assert gate.raw(HELLO + request("a.test", 22) + b"\x00ahead", until=b"ahead").endswith(b"\x00ahead")


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (request("denied.test", 22), 2, Reason.NO_RULE),
        (request("refused.test", 22), 5, Reason.UPSTREAM_REFUSED),
        (request("nowhere.test", 22), 4, Reason.UPSTREAM_NXDOMAIN),
        (request(b"\xa9\xfe\xa9\xfe", 80), 2, Reason.NEVER_ADDRESS),
        (request("a.test", 22, 2), 7, Reason.BAD_SOCKS),
        (request("a.test", 22, 3), 7, Reason.BAD_SOCKS),
    ],
)
def test_refusals_have_their_code(lab: Lab, serve: Serve, data: bytes, code: int, reason: Reason) -> None:
    """GAT-9, GAT-1: no UDP, no BIND; the client is told in its own protocol, and nothing else."""
    lab.dns.set("refused.test", A=["1.2.3.9"])
    gate = serve("refused.test", "nowhere.test", "a.test")
    got = gate.raw(HELLO + data)
    assert got[:3] == b"\x05\x00\x05"
    assert got[3] == code
    assert b"HTTP" not in got
    assert gate.event().reason is reason
    gate.idle()


@pytest.mark.parametrize(
    "data", [b"\x05\x01\x02", b"\x05\x00", b"\x04\x01\x00\x16\x01\x02\x03\x04\x00", HELLO + b"\x04\x01\x00\x01"]
)
def test_what_is_no_socks5_is_closed(serve: Serve, data: bytes) -> None:
    """GAT-1: other versions and methods are refused, and recorded."""
    gate = serve("a.test")
    gate.raw(data)
    assert gate.event().how is How.REFUSED
    gate.idle()


def test_the_first_bytes_are_judged_here_too(lab: Lab, serve: Serve) -> None:
    """GAT-9: another name in the TLS is refused as after a CONNECT."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("canary", "1.2.3.4", 443)
    gate = serve("a.test:443")
    with gate.connect() as sock:
        sock.sendall(HELLO + request("a.test", 443) + client_hello("b.test"))
        assert read_exactly(sock, 1000)[-7:-6] == b"\x15"
    assert gate.event().reason is Reason.SNI_MISMATCH
    assert origin.received_size == 0


def test_a_client_that_breaks_off_at_its_greeting_is_no_bug(serve: Serve) -> None:
    """JRN-1: it is recorded as gone, as an unfinished HTTP request is."""
    gate = serve("a.test:80")
    sock = gate.connect()

    def attack() -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.sendall(HELLO)
        sock.close()

    gate.on_thread(attack)
    assert gate.event().reason is Reason.CLIENT_GONE
    gate.idle()
    assert not gate.faults
