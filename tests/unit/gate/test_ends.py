"""How exchanges end."""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.gate.kit import Clock, read_exactly, small, wait
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]

GET = b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"


def test_a_stop_in_the_middle_of_an_answer_is_recorded(lab: Lab, serve: Serve) -> None:
    """GAT-6: the client sees its connection end; the line says why."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("slow", "1.2.3.4", 80, size=100, interval=0.1)
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(GET)
        assert sock.recv(10) == b"HTTP/1.1 2"
        gate.on_thread(lambda: gate.gate.remove_listener(gate.listener, cut=True))
        read_exactly(sock, 10_000)
    event = gate.event()
    assert (event.reason, event.how, event.status) == (Reason.STOPPING, How.FORWARDED, 200)


def test_a_client_that_resets_while_the_origin_is_silent(lab: Lab, serve: Serve) -> None:
    """B56: the origin's connection goes at once, before it says anything."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("canary", "1.2.3.4", 80)
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(GET)
        origin.wait(lambda o: o.received_size > 0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    gate.idle()
    origin.wait(lambda o: o.open == 0)
    assert gate.event().reason is Reason.CLIENT_GONE


def test_a_plain_request_that_is_asked_about(lab: Lab, serve: Serve) -> None:
    """ASK-1, B67: held, withdrawn when the client goes."""
    open_now: list[Any] = []
    withdrawn: list[bool] = []

    class Asking:
        def ask(self, _task: str, _decision: Any, answer: Any) -> Any:
            open_now.append(answer)
            return lambda: withdrawn.append(True)

    gate = serve(ask=("a.test",), asker=Asking())
    with gate.connect() as sock:
        sock.sendall(GET)
        wait(lambda: bool(open_now))
        assert lab.dns.queries == []
    wait(lambda: withdrawn == [True])
    gate.idle()


def test_one_clock_watches_many_requests_and_no_pause_between_them(lab: Lab, serve: Serve) -> None:
    """B52: a pause longer than the limit ends nothing; the answer that stands still behind it is cut."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    steps = [["head"], ["send", whole], ["head"], ["send", whole], ["head"], ["send", whole[:-1]], ["drain"]]
    lab.origin("script", "1.2.3.4", 80, steps=steps)
    clock = Clock()
    gate = serve("a.test", limits=small(idle_seconds=30), clock=clock)
    with gate.connect() as sock:
        for _ in range(2):
            sock.sendall(GET)
            assert read_exactly(sock, len(whole)) == whole.encode()
            clock.goes_on(70, gate)  # more than twice as long
            assert not readable(sock, 0)
        sock.sendall(GET)
        assert read_exactly(sock, len(whole) - 1) == whole[:-1].encode()
        clock.goes_on(70, gate)
        assert sock.recv(1 << 10) == b""
    assert [event.reason for event in gate.events(3)] == [Reason.ALLOWED, Reason.ALLOWED, Reason.IDLE_TIMEOUT]


def readable(sock: socket.socket, seconds: float) -> bool:
    """Whether something comes in this time."""
    return bool(select.select([sock], [], [], seconds)[0])


def test_a_bug_ends_one_exchange_only(lab: Lab, serve: Serve) -> None:
    """The other connection goes on, and nothing of the error reaches a client."""

    class Broken:
        def ask(self, *_: Any) -> Any:
            raise KeyError("a bug")

    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    gate = serve("a.test", ask=("q.test",), asker=Broken())
    assert b"KeyError" not in gate.raw(b"GET http://q.test/ HTTP/1.1\r\nHost: q.test\r\n\r\n")
    assert gate.event().reason is Reason.INTERNAL
    assert gate.raw(GET, until=b"hello").startswith(b"HTTP/1.1 200 ")
    gate.faults.clear()


def test_a_client_that_ends_and_then_breaks_off_is_gone(lab: Lab, serve: Serve) -> None:
    """B56: a killed client shows as an end first and as a reset later; a silent origin does not keep it for ever."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("canary", "1.2.3.4", 80)
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(GET)
        origin.wait(lambda o: o.received_size > 0)
        sock.shutdown(socket.SHUT_WR)
        gate.on_thread(lambda: None)
        assert gate.gate.connections == 1
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    gate.idle()
    assert gate.event().reason is Reason.CLIENT_GONE


LARGE = "20000\r\n" + "h" * 0x20000 + "\r\n"  # more than one read takes: what is wrong behind it is found later


@pytest.mark.parametrize(
    "answer",
    [f"Transfer-Encoding: chunked\r\n\r\n{LARGE}x", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello", "\r\nhello"],
)
def test_half_a_body_that_lasts_until_the_end_does_not_look_whole(lab: Lab, serve: Serve, answer: str) -> None:
    """GAT-4: where the end of the connection is the end of the body, a broken answer ends in a reset."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    head = "HTTP/1.1 200 OK\r\n" + answer
    lab.origin("script", "1.2.3.4", 80, steps=[["head"], ["send", head], ["sleep", 0.2], ["reset"]])
    gate = serve("a.test")
    with gate.connect() as sock:
        sock.sendall(b"GET http://a.test/ HTTP/1.0\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            read_exactly(sock, 1 << 20)
    assert (gate.event().reason, gate.event().how) in {
        (Reason.UPSTREAM_CLOSED, How.FORWARDED),
        (Reason.UPSTREAM_RESPONSE, How.FORWARDED),
    }
