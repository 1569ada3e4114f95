"""What a destination's TLS may play, by OpenSSL itself: versions, certificates, floods, ends (INS-3, B113)."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived

from tests.certificates import Made
from tests.unit.gate.inside import Inside, answer, get, inside
from tests.unit.gate.peer import FAIL_IF_NO_CERT, NAME_FATAL, NAME_WARNING, VERIFY_PEER, Peer, playing
from tests.unit.gate.test_inner_streams import GET, Talk
from tidegate.gate import inner_streams
from tidegate.gate.origin import TURN
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.lab.api import Lab
    from tidegate.gate.record import Event

    Start = Callable[..., Inside]
    Script = Callable[[Peer], None]

__all__ = ["inside"]

TLS10, TLS11, TLS12, TLS13 = 0x301, 0x302, 0x303, 0x304
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
OPEN_ENDED = b"HTTP/1.1 200 OK\r\n\r\n"
_MADE: list[Made] = []


def root() -> Made:
    """Who signs for a.test; one for all tests."""
    if not _MADE:
        _MADE.append(Made("root", ca=True))
    return _MADE[0]


class Played:
    """What came of one request."""

    def __init__(self, lab: Lab, inside: Start, folder: Path, script: Script, *offers: str, **how: object) -> None:
        gate = inside("a.test:443", roots=root().pem)
        chain = root().issue("", names=["a.test"]).chain()
        self.said, self.whole = b"", False
        with playing(lab, folder, chain, script, **how) as met:  # type: ignore[arg-type]
            sock = gate.gate.tunnel("a.test:443")
            with gate.context(*offers).wrap_socket(sock, server_hostname="a.test", suppress_ragged_eofs=False) as tls:
                self.selected = tls.selected_alpn_protocol()
                tls.sendall(get("a.test", "/", "Connection: close"))
                with contextlib.suppress(OSError):
                    while data := tls.recv(65536):
                        self.said += data
                    self.whole = True  # by a close_notify
            self.met = met
        self.event: Event = gate.gate.event()

    def refused(self, reason: Reason) -> None:
        """It was told 502 and recorded, for this reason."""
        assert self.said.startswith(b"HTTP/1.1 502 "), self.said
        assert (self.event.how, self.event.reason) == (How.REFUSED, reason)


@pytest.fixture(autouse=True)
def _names(lab: Lab) -> None:
    lab.dns.set("a.test", A=["1.2.3.4"])


@pytest.fixture
def play(lab: Lab, inside: Start, tmp_path: Path) -> Callable[..., Played]:
    """Ask a destination that runs a script."""
    return lambda script, *offers, **how: Played(lab, inside, tmp_path, script, *offers, **how)


def says(data: bytes) -> Script:
    """Answer, and end as one should."""

    def script(peer: Peer) -> None:
        peer.read()
        peer.write(data)
        peer.finish()
        peer.read()

    return script


@pytest.mark.parametrize("versions", [(TLS10, TLS10), (TLS11, TLS11), (TLS10, TLS11)])
def test_old_versions_alone(play: Callable[..., Played], versions: tuple[int, int]) -> None:
    """INS-3, issue 6: who speaks nothing newer than TLS 1.1 hears no request."""
    played = play(says(GOOD), versions=versions)
    played.refused(Reason.UPSTREAM_TLS)
    assert b"protocol version" in played.said
    assert played.met == ["not shaken"]


@pytest.mark.parametrize("versions", [(TLS12, TLS12), (TLS13, TLS13), (TLS10, TLS13)])
def test_versions_that_are_spoken(play: Callable[..., Played], versions: tuple[int, int]) -> None:
    """INS-3: the neighbours."""
    assert play(says(GOOD), versions=versions).said.endswith(b"hi")


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_a_certificate_that_is_asked_for_and_not_wanted(play: Callable[..., Played], version: int) -> None:
    """B113: a request for one alone is no obstacle: none is sent."""
    assert play(says(GOOD), versions=(version, version), certificate=VERIFY_PEER).said.endswith(b"hi")


def test_a_certificate_that_is_asked_for_later(play: Callable[..., Played]) -> None:
    """B113: after a handshake of TLS 1.3 nobody may ask, since we do not offer it: the server says so itself."""
    asked: list[bool] = []

    def script(peer: Peer) -> None:
        peer.read()
        asked.append(peer.ask_for_certificate())
        peer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
        peer.finish()
        peer.read()

    assert play(script, versions=(TLS13, TLS13)).said.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert asked == [False]


def test_another_handshake_that_is_asked_for(play: Callable[..., Played]) -> None:
    """B113, B103: in TLS 1.2 some ask for a certificate so, once they know the path: refused, with advice."""
    again: list[bool] = []

    def script(peer: Peer) -> None:
        peer.read()
        peer.lib.SSL_set_verify(peer.tls, VERIFY_PEER | FAIL_IF_NO_CERT, None)
        again.append(peer.ask_again())
        peer.cut()

    played = play(script, versions=(TLS12, TLS12))
    played.refused(Reason.UPSTREAM_TLS)
    assert b"it may want a client certificate, see 'inspect: never'" in played.said
    assert again == [False]


@pytest.mark.parametrize("waits", [0.0, 0.1])
def test_who_just_leaves_when_it_gets_no_other_handshake(play: Callable[..., Played], waits: float) -> None:
    """B113: some servers (IIS) close in place of an alert: the same advice."""

    def script(peer: Peer) -> None:
        peer.read()
        peer.lib.SSL_renegotiate(peer.tls)
        peer.lib.SSL_do_handshake(peer.tls)
        peer.sock.recv(1000)  # that it is refused
        time.sleep(waits)

    played = play(script, versions=(TLS12, TLS12))
    played.refused(Reason.UPSTREAM_TLS)
    assert b"it may want a client certificate, see 'inspect: never'" in played.said


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_a_server_that_does_not_know_the_name(play: Callable[..., Played], version: int) -> None:
    """RFC 6066 section 3, issue 6: who only warns of it goes on, with a certificate that counts."""
    assert play(says(GOOD), versions=(version, version), knows=NAME_WARNING).said.endswith(b"hi")


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_a_server_that_ends_it_over_the_name(play: Callable[..., Played], version: int) -> None:
    """RFC 6066 section 3: 502, with its own alert."""
    played = play(says(GOOD), versions=(version, version), knows=NAME_FATAL)
    played.refused(Reason.UPSTREAM_TLS)
    assert b"unrecognized name" in played.said


@pytest.mark.parametrize("selects", [b"spdy/1", b"h2", b"\xff\xfe", b"x" * 255, b"http/1.1"])
@pytest.mark.parametrize("offers", [("http/1.1",), ("h2", "http/1.1"), ("h2",), ()])
def test_a_protocol_that_nobody_offered(play: Callable[..., Played], selects: bytes, offers: tuple[str, ...]) -> None:
    """INS-3, issue 6: what was offered is spoken on both sides; for another one the destination hears no request."""
    played = play(says(GOOD), *offers, selects=selects)
    if not offers or selects.decode("latin-1") in offers:
        assert played.selected == (selects.decode() if offers else None)
        assert (played.event.how, played.met) == (How.INSPECTED, ["shaken"])
        assert selects == b"h2" or played.said.endswith(b"hi")
    else:
        assert played.selected == ("http/1.1" if "http/1.1" in offers else "h2")  # in which the refusal is told
        assert (played.event.reason, played.met) == (Reason.UPSTREAM_TLS, ["not shaken"])


SIZES = [0, 10, 5000, 16_000, 40_000, 70_000]


@pytest.mark.parametrize("version", [TLS12, TLS13])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ends", ["said", "cut", "forged"])
def test_a_body_that_lasts_until_the_end(play: Callable[..., Played], version: int, size: int, ends: str) -> None:
    """GAT-4, issue 6: cut without close_notify, or with one that was not encrypted: never an end that looks whole."""

    def script(peer: Peer) -> None:
        peer.read()
        data = peer.gathered(OPEN_ENDED + bytes(size), then=peer.finish if ends == "said" else None)
        peer.sock.sendall(data + (b"\x15\x03\x03\x00\x02\x01\x00" if ends == "forged" else b""))
        peer.cut()
        peer.sock.recv(1)

    played = play(script, versions=(version, version))
    assert played.said.startswith(b"HTTP/1.1 200 OK\r\n")
    assert len(played.said.partition(b"\r\n\r\n")[2]) == size or ends != "said"
    assert played.whole == (ends == "said")
    assert played.event.reason is (Reason.ALLOWED if ends == "said" else Reason.UPSTREAM_CLOSED)


@pytest.mark.parametrize("body", [GOOD, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"])
def test_a_body_that_says_its_length_needs_no_announced_end(play: Callable[..., Played], body: bytes) -> None:
    """GAT-5: many servers just close."""

    def script(peer: Peer) -> None:
        peer.read()
        peer.sock.sendall(peer.gathered(body))
        peer.cut()
        peer.sock.recv(1)

    played = play(script)
    assert (played.said[:13], played.whole) == (b"HTTP/1.1 200 ", True)
    assert b"hi" in played.said


FLOODS: dict[str, Callable[[Peer], None]] = {
    "updates-that-ask": lambda peer: peer.update(),
    "updates": lambda peer: peer.update(asks=False),
    "tickets": lambda peer: peer.ticket(),
}


@pytest.mark.parametrize("kind", FLOODS)
def test_floods_of_what_says_nothing(play: Callable[..., Played], kind: str) -> None:
    """GAT-5, GAT-11, issue 6: megabytes of it, in place of an answer, end the connection; the client hears so."""

    def script(peer: Peer) -> None:
        peer.read()

        def many() -> None:
            for _ in range(2000):
                FLOODS[kind](peer)

        data = peer.gathered(then=many)
        with contextlib.suppress(OSError):
            while True:
                peer.sock.sendall(data)

    play(script, versions=(TLS13, TLS13)).refused(Reason.UPSTREAM_CLOSED)


@pytest.mark.parametrize("kind", ["updates-that-ask", "updates", "tickets"])
def test_a_few_of_them_are_usual(lab: Lab, inside: Start, tmp_path: Path, kind: str) -> None:
    """GAT-5: before and behind an answer, and the connection goes on."""

    def script(peer: Peer) -> None:
        for _ in range(3):
            peer.read()
            for _ in range(4):
                FLOODS[kind](peer)
            peer.write(GOOD)
            for _ in range(4):
                FLOODS[kind](peer)
        peer.read()

    gate = inside("a.test:443", roots=root().pem)
    chain = root().issue("", names=["a.test"]).chain()
    with playing(lab, tmp_path, chain, script, versions=(TLS13, TLS13)) as met:
        with gate.tunnel("a.test:443") as sock:
            for _ in range(3):
                sock.sendall(get("a.test"))
                assert answer(sock)[1] == b"hi"
                time.sleep(0.05)  # what comes behind an answer comes while none is awaited
        assert met == ["shaken"]


@pytest.mark.parametrize(
    "raw",
    [
        b"\x17\x03\x03\x50\x00" + bytes(0x5000),
        b"\x17\x03\x03\x00\x10" + bytes(16),
        b"\x16\x03\x03\x00\x04\x00\x00\x00\x00",
        b"\x15\x03\x03\x00\x02\x02\x28",
        b"\x18\x03\x03\x00\x03\x01\x40\x00",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    ],
    ids=["larger-than-a-record", "not-its-key", "clear-handshake", "clear-alert", "heartbeat", "clear-answer"],
)
@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_what_is_none_of_its_records_is_no_answer(play: Callable[..., Played], raw: bytes, version: int) -> None:
    """INS-3: whoever stands between can end a connection, and say nothing."""

    def script(peer: Peer) -> None:
        peer.read()
        peer.sock.sendall(raw)
        peer.cut()
        peer.sock.recv(1)

    played = play(script, versions=(version, version))
    assert played.said.startswith(b"HTTP/1.1 502 "), played.said
    assert played.event.how is How.REFUSED
    assert b"hi" not in played.said


@pytest.mark.parametrize("size", [1, 100, 16384])
def test_records_of_any_size_are_one_answer(play: Callable[..., Played], size: int) -> None:
    """INS-3: a byte a record, and as large as they may be."""
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n" + b"y" * 40_000
    pieces = [data[at : at + size] for at in range(0, len(data) if size > 1 else 2000, size)]
    rest = data[sum(map(len, pieces)) :]

    def script(peer: Peer) -> None:
        peer.read()
        peer.sock.sendall(peer.gathered(*pieces, *([rest] if rest else []), then=peer.finish))
        peer.sock.recv(1)

    played = play(script)
    assert played.said.endswith(b"\r\n\r\n" + b"y" * 40_000)
    assert played.whole


@pytest.mark.parametrize("turn", [TURN, -1.0])  # the second: each piece of a read is sent before the next is heard
@pytest.mark.parametrize("ends", ["said", "cut", "forged"])
def test_a_stream_whose_destination_ends_has_no_end(
    lab: Lab, inside: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str, turn: float
) -> None:
    """GAT-4, RFC 9113 section 5.4: over HTTP/2 it is reset behind all that came, however the connection ended."""
    monkeypatch.setattr(inner_streams, "TURN", turn)

    def script(peer: Peer) -> None:
        conn = H2Connection(H2Configuration(client_side=False))
        conn.initiate_connection()
        while data := peer.read():
            if any(isinstance(event, RequestReceived) for event in conn.receive_data(data)):
                conn.send_headers(1, [(":status", "200"), ("content-length", "9")])
                conn.send_data(1, b"half")
                peer.sock.sendall(peer.gathered(conn.data_to_send(), then=peer.finish if ends == "said" else None))
                if ends == "forged":
                    peer.sock.sendall(b"\x15\x03\x03\x00\x02\x01\x00")
                peer.cut()
                peer.sock.recv(1)
                return
            peer.write(conn.data_to_send())

    gate = inside("a.test:443", roots=root().pem)
    chain = root().issue("", names=["a.test"]).chain()
    with playing(lab, tmp_path, chain, script, selects=b"h2"):
        talk = Talk(gate)
        _, body, _, reset = talk.answer(talk.ask(GET))
        talk.sock.close()
    assert (body, reset) == (b"half", True)
    assert gate.gate.event().reason is Reason.UPSTREAM_CLOSED


@pytest.mark.parametrize("size", [0, 3_000_000])
def test_an_early_answer_of_a_stream_is_read_though_its_destination_left(
    lab: Lab, inside: Start, tmp_path: Path, size: int
) -> None:
    """B47: over HTTP/2 as over HTTP/1: it answers an upload that it does not read, and resets the connection."""

    def script(peer: Peer) -> None:
        conn = H2Connection(H2Configuration(client_side=False))
        conn.initiate_connection()
        while data := peer.read():
            if any(isinstance(event, RequestReceived) for event in conn.receive_data(data)):
                conn.send_headers(1, [(":status", "413"), ("content-length", "4")])
                conn.send_data(1, b"much", end_stream=True)
                time.sleep(0.2)  # until some of the upload waits unread: to close makes a reset then
                peer.write(conn.data_to_send())
                peer.sock.close()
                return
            peer.write(conn.data_to_send())

    gate = inside("a.test:443", roots=root().pem)
    chain = root().issue("", names=["a.test"]).chain()
    with playing(lab, tmp_path, chain, script, selects=b"h2"):
        talk = Talk(gate)
        number = talk.conn.get_next_available_stream_id()
        talk.conn.send_headers(number, [(":method", "POST"), *GET[1:]])
        while (room := min(talk.conn.local_flow_control_window(number), 16_384)) and size > 0:
            talk.conn.send_data(number, bytes(room))
            size -= room
        talk.flush()
        head, body, _, _ = talk.answer(number)
        talk.sock.close()
    assert (head[":status"], body) == ("413", b"much")


@pytest.mark.parametrize("size", [0, 100, 200_000])
def test_an_early_answer_is_read_though_its_destination_left(
    lab: Lab, inside: Start, tmp_path: Path, size: int
) -> None:
    """B47: it answers, says no end of TLS, and closes with some of the upload unread, which makes a reset of it."""

    def script(peer: Peer) -> None:
        peer.read(50)
        time.sleep(0.2)
        peer.sock.sendall(peer.gathered(b"HTTP/1.1 413 Too Much\r\nContent-Length: 4\r\n\r\nmuch"))
        peer.sock.close()

    gate = inside("a.test:443", roots=root().pem)
    chain = root().issue("", names=["a.test"]).chain()
    with playing(lab, tmp_path, chain, script), gate.tunnel("a.test:443") as sock:
        with contextlib.suppress(OSError):
            sock.sendall(get("a.test", "/", f"Content-Length: {size}", method="POST") + bytes(size))
        head, body = answer(sock)
    assert head.startswith(b"HTTP/1.1 413 ")
    assert body == b"much"
