"""What a client's TLS may play before and between its requests: hellos of every kind, by OpenSSL too (GAT-9, INS-3)."""

from __future__ import annotations

import contextlib
import ssl
from typing import TYPE_CHECKING

import pytest

from tests.certificates import CLIENTS, Made
from tests.unit.gate.inside import Inside, get, inside, read_all
from tests.unit.gate.kit import Clock, client_hello, read_exactly, read_head, small
from tests.unit.gate.peer import Peer, calling, library
from tests.unit.gate.test_inspected import serving
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.lab.api import Lab

    Start = Callable[..., Inside]

__all__ = ["inside"]

TLS12, TLS13 = 0x303, 0x304
ECH = 0xFE0D
# An outer hello's extension (TLS Encrypted Client Hello, section 5): type, KDF and AEAD, configuration, key, payload.
OUTER = bytes((0, 0, 1, 0, 1, 7, 0, 32)) + bytes(range(32)) + bytes((0, 200)) + bytes(range(200))
INNER = b"\x01"


@pytest.fixture(autouse=True)
def _names(lab: Lab) -> None:
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.dns.set("b.test", A=["1.2.3.5"])


def hello(gate: Inside, name: str | None = "a.test") -> tuple[bytes, ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]:
    """A real hello, and what goes on from it."""
    context = gate.context()
    if name is None:
        context.check_hostname = False
    come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(come, go, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return go.read(), tls, come, go


def naming(raw: bytes, *names: bytes) -> bytes:
    """A hello with other names in it, lengths and all."""
    old = b"\x00\x00\x00\x0b\x00\x09\x00\x00\x06a.test"
    entries = b"".join(b"\x00" + len(name).to_bytes(2, "big") + name for name in names)
    listed = len(entries).to_bytes(2, "big") + entries
    new = b"\x00\x00" + len(listed).to_bytes(2, "big") + listed
    at = raw.index(old)
    more = len(new) - len(old)
    made = bytearray(raw[:at] + new + raw[at + len(old) :])
    session = 9 + 34 + 1 + made[9 + 34]
    suites = session + 2 + int.from_bytes(made[session : session + 2], "big")
    extensions = suites + 1 + made[suites]
    for place, size in ((3, 2), (6, 3), (extensions, 2)):
        length = int.from_bytes(made[place : place + size], "big") + more
        made[place : place + size] = length.to_bytes(size, "big")
    return bytes(made)


SSL2 = b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10" + bytes(21 + 16)
REFUSED: dict[str, Callable[[bytes], bytes]] = {
    "ssl-2-hello": lambda _: SSL2,
    "two-names": lambda raw: naming(raw, b"a.test", b"b.test"),
    "the-same-name-twice": lambda raw: naming(raw, b"a.test", b"a.test"),
    "another-name": lambda raw: naming(raw, b"b.test"),
    "a-name-below": lambda raw: naming(raw, b"x.a.test"),
    "an-address": lambda raw: naming(raw, b"1.2.3.4"),
    "an-address-in-brackets": lambda raw: naming(raw, b"[::1]"),
    "an-empty-name": lambda raw: naming(raw, b""),
    "no-name-at-all": naming,
    "a-nul-in-it": lambda raw: naming(raw, b"a.test\0.b.test"),
    "two-dots-behind-it": lambda raw: naming(raw, b"a.test.."),
    "a-warning-in-front": lambda raw: b"\x15\x03\x01\x00\x02\x01\x00" + raw,
    "an-empty-record-in-front": lambda raw: b"\x16\x03\x01\x00\x00" + raw,
    "data-in-front": lambda raw: b"\x17\x03\x03\x00\x01x" + raw,
    "a-cipher-change-in-front": lambda raw: b"\x14\x03\x03\x00\x01\x01" + raw,
    "another-hello-behind-it": lambda raw: b"\x16\x03\x01" + (2 * len(raw[5:])).to_bytes(2, "big") + 2 * raw[5:],
}


@pytest.mark.parametrize("kind", REFUSED)
def test_hellos_that_could_be_read_in_two_ways(lab: Lab, inside: Start, kind: str) -> None:
    """GAT-9, B115, issue 6: refused in TLS or in silence; the destination hears no byte."""
    origin = lab.origin("canary", "1.2.3.4", 443)
    gate = inside("a.test:443")
    raw = hello(gate)[0]
    assert naming(raw, b"a.test") == raw
    with gate.gate.tunnel("a.test:443") as sock:
        sock.sendall(REFUSED[kind](raw))
        got = read_all(sock)
    assert got[:2] in {b"", b"\x15\x03"}
    assert len(got) <= 7
    event = gate.gate.event()
    assert (event.how, event.reason is Reason.ALLOWED) == (How.REFUSED, False)
    assert origin.received == b""


def _records(raw: bytes, size: int) -> bytes:
    message = raw[5:]
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + len(one).to_bytes(2, "big") + one for one in pieces)


TAKEN: dict[str, Callable[[bytes], bytes]] = {
    "as-it-is": lambda raw: raw,
    "a-record-in-two": lambda raw: _records(raw, 100),
    "records-of-seven": lambda raw: _records(raw, 7),
    "a-byte-a-record": lambda raw: _records(raw, 1),
}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("kind", TAKEN)
def test_hellos_that_are_one(lab: Lab, inside: Start, kind: str, named: bool) -> None:
    """GAT-9, B29, RFC 8446 section 5.1: however it is cut into records, with a name or without."""
    lab.origin("http", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443")
    raw, tls, come, go = hello(gate, "a.test" if named else None)
    with gate.gate.tunnel("a.test:443") as sock:
        sock.sendall(TAKEN[kind](raw))
        while True:
            with contextlib.suppress(ssl.SSLWantReadError):
                tls.do_handshake()
                break
            data = sock.recv(65536)
            assert data, "it ended in the handshake"
            come.write(data)
        tls.write(get("a.test"))
        sock.sendall(go.read())
        assert sock.recv(100)
    assert gate.gate.event().detail == ("tls" if named else "tls-no-sni")


@pytest.fixture
def called(lab: Lab, inside: Start) -> Callable[..., tuple[Peer, Inside]]:
    """A client by OpenSSL after its handshake with the gate, behind which a server repeats what it hears."""
    lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443")

    def call(**how: object) -> tuple[Peer, Inside]:
        sock = gate.gate.tunnel("a.test:443")
        sock.settimeout(None)
        peer = Peer(library(), calling(**how), sock, calls="a.test")  # type: ignore[arg-type]
        assert peer.shake()
        return peer, gate

    return call


def _asks(peer: Peer) -> bytes:
    peer.write(get("a.test"))
    got = b""
    while b"GET /" not in got and (data := peer.read()):
        got += data
    return got


@pytest.mark.parametrize("extension", [OUTER, INNER], ids=["outer", "inner"])
def test_a_hidden_hello_is_not_looked_for(called: Callable[..., tuple[Peer, Inside]], extension: bytes) -> None:
    """B115, issue 6: with ECH, real or GREASE, the outer name counts; the gate has no key for an inner one."""
    peer, gate = called(versions=(TLS13, TLS13), extension=(ECH, extension))
    assert b"200 OK" in _asks(peer)
    peer.finish()
    peer.sock.close()
    assert gate.gate.event().how is How.INSPECTED


@pytest.mark.parametrize("between", [1, 3])
def test_key_updates_between_requests(called: Callable[..., tuple[Peer, Inside]], between: int) -> None:
    """RFC 8446 section 4.6.3: both sides change their keys, and go on."""
    peer, _ = called(versions=(TLS13, TLS13))
    for _ in range(3):
        assert b"200 OK" in _asks(peer)
        for _ in range(between):
            peer.update()
    peer.sock.close()


def test_another_handshake_is_refused(called: Callable[..., tuple[Peer, Inside]]) -> None:
    """B103, RFC 5746: what was judged is all that was said: TLS 1.2 is not negotiated anew."""
    peer, gate = called(versions=(TLS12, TLS12))
    assert b"200 OK" in _asks(peer)
    assert not peer.ask_again()
    peer.sock.close()
    gate.gate.idle()


def test_who_never_ends_its_handshake(lab: Lab, inside: Start) -> None:
    """GAT-6: after its hello nothing comes: it holds neither connection longer than a head may take."""
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test")
    clock = Clock()
    gate = inside("a.test:443", limits=small(total_seconds=20, header_seconds=10), clock=clock)
    with gate.gate.tunnel("a.test:443") as sock:
        sock.sendall(hello(gate)[0])
        assert read_exactly(sock, 1) == b"\x16"
        clock.goes_on(21, gate.gate)
        read_all(sock)
    assert gate.gate.event().reason is Reason.HEADER_TIMEOUT
    gate.gate.idle()
    assert origin.requests == 0


def test_the_hello_comes_behind_another_protocol(lab: Lab, inside: Start) -> None:
    """INS-1: an upgrade from clear text (STARTTLS, Upgrade: TLS) begins nothing."""
    origin = lab.origin("canary", "1.2.3.4", 443)
    gate = inside("a.test:443")
    for first in (b"EHLO a.test\r\nSTARTTLS\r\n", b"OPTIONS * HTTP/1.1\r\nHost: a.test\r\nUpgrade: TLS/1.0\r\n\r\n"):
        with gate.gate.tunnel("a.test:443") as sock:
            sock.sendall(first + client_hello("a.test"))
            got = read_all(sock)
        assert b"\x16\x03" not in got
    assert origin.received == b""


def test_a_name_of_the_hello_counts_and_not_who_was_asked(lab: Lab, inside: Start) -> None:
    """INS-4, B116: CONNECT to one host that is read with the name of another one that is: neither hears of it."""
    first = lab.origin("canary", "1.2.3.4", 443)
    second = lab.origin("canary", "1.2.3.5", 443)
    gate = inside("a.test:443", "b.test:443")
    with gate.gate.tunnel("a.test:443") as sock:
        sock.sendall(client_hello("b.test"))
        assert read_all(sock) == b"\x15\x03\x03\x00\x02\x02\x70"
    with gate.gate.connect() as sock:
        sock.sendall(b"CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n" + client_hello("a.test"))
        read_head(sock)
        assert read_all(sock) == b"\x15\x03\x03\x00\x02\x02\x70"
    assert (first.received, second.received) == (b"", b"")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_certificate_of_the_client_stays_with_it(
    lab: Lab, inside: Start, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    """B113: the gate asks for none, and shows none, where the destination would take one."""
    top = Made("root", ca=True)
    (tmp_path / "server.pem").write_text(top.issue("", names=["a.test"]).chain())
    (tmp_path / "client.pem").write_text(top.issue("me", usages=CLIENTS).chain())
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "server.pem")
    server.load_verify_locations(cadata=top.pem)
    server.verify_mode = ssl.CERT_OPTIONAL
    shown: list[object] = []
    gate = inside("a.test:443", roots=top.pem)
    mine = gate.context()
    mine.minimum_version = mine.maximum_version = version
    mine.load_cert_chain(tmp_path / "client.pem")
    with serving(lab, server, shown=shown), gate.tunnel("a.test:443", context=mine) as sock:
        sock.sendall(get("a.test"))
        assert read_all(sock).startswith(b"HTTP/1.1 200 ")
    assert shown == [None]
