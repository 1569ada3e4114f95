"""Who falls silent in HTTP/2: in a body that is held to be looked at, and on either side of a stream (GAT-6, INS-3)."""

from __future__ import annotations

import contextlib
import ssl
from typing import TYPE_CHECKING

import pytest
from h2.events import DataReceived, InformationalResponseReceived, PingAckReceived
from h2.exceptions import StreamClosedError

from tests.unit.gate.inside import Inside, inside
from tests.unit.gate.kit import small
from tests.unit.gate.test_inner_streams import GET, Talk, site, talk
from tests.unit.gate.test_secret_bodies import KEY, SEEN, SENT
from tests.unit.gate.test_secrets_inside import NONE
from tidegate.gate import inner_guard, inner_streams
from tidegate.inspect.http2 import MOST_IDLE_FRAMES
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.h2_site import H2Site

    Start = Callable[..., Inside]

__all__ = ["inside", "site", "talk"]

POST = [(":method", "POST"), *GET[1:], ("content-type", "application/json")]


def begin(client: Talk, fields: list[tuple[str, str]], data: bytes = b"") -> int:
    """Begin a stream and do not end it."""
    number: int = client.conn.get_next_available_stream_id()
    client.conn.send_headers(number, fields)
    if data:
        client.conn.send_data(number, data)
    client.flush()
    return number


def wait_silently(client: Talk, seconds: float) -> None:
    """Read until nothing has come for so long."""
    client.sock.settimeout(seconds)
    with contextlib.suppress(TimeoutError):
        while client.sock.recv(65536):
            pass
        pytest.fail("it was ended")


def test_a_held_body_that_stops_coming_is_refused(
    talk: Any, site: tuple[H2Site, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """GAT-6, INS-5: 408 on its stream, its room is free again; a stream of the same connection passes after it."""
    monkeypatch.setattr(inner_guard, "SILENT", 0.4)
    client, gate = talk(secrets=KEY, limit=NONE)
    guard = gate.gate.task.secrets.bodies
    left = guard.left
    head, body, _, _ = client.answer(begin(client, POST, SENT[:9]))
    assert (head[":status"], b"its body stopped coming" in body) == ("408", True)
    assert guard.left == left
    assert client.answer(client.ask(POST, SENT))[0][":status"] == "200"
    assert site[0].bodies == [SEEN]
    first, second = gate.gate.events(2)
    assert (first.how, first.reason) == (How.REFUSED, Reason.HEADER_TIMEOUT)
    assert second.how is How.INSPECTED


def test_a_held_body_that_keeps_coming_is_waited_for(
    talk: Any, site: tuple[H2Site, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """GAT-5: a byte in time counts, however long all of it takes; the clock is the body's, not the connection's."""
    monkeypatch.setattr(inner_guard, "SILENT", 4.0)
    client, _ = talk(secrets=KEY, limit=NONE)
    number = begin(client, POST, SENT[:1])
    for at in range(1, 8):  # 5.6 s in all
        wait_silently(client, 0.8)
        client.conn.send_data(number, SENT[at : at + 1])
        client.flush()
    client.conn.send_data(number, SENT[8:], end_stream=True)
    client.flush()
    assert client.answer(number)[0][":status"] == "200"
    assert site[0].bodies == [SEEN]


def test_whoever_waits_for_100_before_a_held_body_gets_it(talk: Any, site: tuple[H2Site, str]) -> None:
    """B46, RFC 9110 section 10.1.1: from the gate, since the destination has heard nothing, and only once."""
    client, _ = talk(secrets=KEY, limit=NONE)
    number = begin(client, [*POST, ("expect", "100-continue")])
    events = client.until(lambda event: isinstance(event, InformationalResponseReceived))
    assert dict(events[-1].headers) == {":status": "100"}
    assert site[0].requests == []
    client.conn.send_data(number, SENT, end_stream=True)
    client.flush()
    assert client.answer(number)[0][":status"] == "200"
    assert site[0].bodies == [SEEN]
    assert "expect" not in dict(site[0].requests[0])


@pytest.mark.parametrize("silent", ["client", "site"])
def test_the_idle_clock_of_a_policy_ends_silent_streams(talk: Any, site: tuple[H2Site, str], silent: str) -> None:
    """B52, GAT-5: an upload that stops, and an answer that does; pings keep nothing open."""
    if silent == "site":
        site[0].silent = True
    client, gate = talk(limits=small(idle_seconds=0.6))
    begin(client, POST[:4], b"abc") if silent == "client" else client.ask(GET)
    client.sock.settimeout(0.2)
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while True:
            client.conn.ping(bytes(8))
            client.flush()
            with contextlib.suppress(TimeoutError):
                while data := client.sock.recv(4096):
                    client.conn.receive_data(data)
                break
    assert gate.gate.event().reason is Reason.IDLE_TIMEOUT
    gate.gate.idle()


def test_what_moves_outlives_the_idle_clock(talk: Any, site: tuple[H2Site, str]) -> None:
    """B52: bytes of one direction count for both."""
    del site
    client, gate = talk(limits=small(idle_seconds=3.0))
    number = begin(client, POST[:4])
    for _ in range(6):  # 4.8 s
        wait_silently(client, 0.8)
        client.conn.send_data(number, b"x")
        client.flush()
    client.conn.send_data(number, b"", end_stream=True)
    client.flush()
    assert client.answer(number)[0][":status"] == "200"
    assert gate.gate.event().how is How.INSPECTED


def test_a_long_download_is_no_flood(talk: Any, site: tuple[H2Site, str]) -> None:
    """GAT-5: thousands of window updates, as clients with small windows send, while the answer moves."""
    site[0].answers["/x"] = ([(":status", "200")], bytes(8 << 20), [])
    client, gate = talk()
    number, got, updates = client.ask(GET), 0, 0
    client.sock.settimeout(30)
    while got < 8 << 20 and (data := client.sock.recv(65536)):
        for event in client.conn.receive_data(data):
            if isinstance(event, DataReceived):
                got += len(event.data)
                with contextlib.suppress(StreamClosedError):  # behind its end nobody needs a window
                    for left in range(len(event.data), 0, -2048):
                        client.conn.increment_flow_control_window(min(left, 2048), number)
                        updates += 1
        client.flush()
    assert (got, updates > 2 * MOST_IDLE_FRAMES) == (8 << 20, True)
    assert gate.gate.event().how is How.INSPECTED


def test_pings_of_a_quiet_stream_are_no_flood(
    talk: Any, site: tuple[H2Site, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """GAT-5: gRPC's keepalive for hours, each spell of them fewer than a flood has; see the floods of inner streams."""
    monkeypatch.setattr(inner_streams, "BETWEEN", 3.0)
    site[0].silent = True
    client, gate = talk()
    client.ask(GET)
    for _ in range(3):
        for _ in range(MOST_IDLE_FRAMES // 2):
            client.conn.ping(bytes(8))
        client.flush()
        client.sock.settimeout(30)
        heard = 0
        while heard < MOST_IDLE_FRAMES // 2 and (data := client.sock.recv(65536)):
            heard += sum(isinstance(event, PingAckReceived) for event in client.conn.receive_data(data))
        assert heard == MOST_IDLE_FRAMES // 2
        wait_silently(client, 3.5)
    assert gate.gate.recording.events == []
