"""Doors: deadlines, bounds, the peer's credentials, and a stop that is quick."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import socket
import time
from typing import TYPE_CHECKING

import pytest

from tests.unit.server.api.running import Running
from tidegate.server.api import listener
from tidegate.server.api.auth import Role
from tidegate.server.api.listener import UNIX_DOOR, Listener, bind_tcp, tcp_door

if TYPE_CHECKING:
    from pathlib import Path


def is_cut(sock: socket.socket) -> bool:
    """Whether the other end closes or resets the connection."""
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def keep_idle(sock: socket.socket, port: int) -> None:
    """Ask something, read the answer whole, and leave the connection open."""
    sock.sendall(b"GET /api/openapi.json HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % port)
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    assert answer.read().endswith(b"}")  # as long as it says: a part of it may end so too


def test_a_door_answers_for_its_names_and_port() -> None:
    """SRV-1: hosts and origins of a door are its names with its port, and its scheme says where it leads."""
    door = tcp_door("https", ("[2001:db8::1]",), 7332)
    assert (door.kind, door.is_unix) == ("outside", False)
    assert door.hosts == {"[2001:db8::1]:7332"}
    assert door.origins == {"https://[2001:db8::1]:7332"}
    assert tcp_door("http", ("localhost",), 1).kind == "loopback"
    assert (UNIX_DOOR.is_unix, UNIX_DOOR.origins) == (True, frozenset())


def test_a_slow_head_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-1: who sends no head in time is cut, on a new connection and on one that was used before."""
    with Running(tmp_path) as running:
        for used in (True, False):
            with socket.create_connection(("127.0.0.1", running.port), timeout=60) as sock:
                if used:
                    keep_idle(sock, running.port)
                    monkeypatch.setattr(listener, "HEAD_SECONDS", 0.2)
                with contextlib.suppress(ConnectionError):  # cut before it said anything
                    sock.sendall(b"GET / HT")
                assert is_cut(sock)


def test_requests_on_one_connection_are_each_answered(tmp_path: Path) -> None:
    """SRV-1: a connection stays open between requests, pipelined ones included."""
    with Running(tmp_path) as running:
        one = b"GET /api/open HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % running.port
        last = one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        assert running.raw(one * 3 + last).count(b"HTTP/1.1 200") == 4


def test_connections_are_bounded_for_each_door_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-1: too many on loopback are 503 there, and the unix socket answers as ever."""
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 3)
    with Running(tmp_path) as running:
        owner = running.token(Role.OWNER)
        assert running.ask("GET", "/api/things", token=owner).status == 200
        held = [socket.create_connection(("127.0.0.1", running.port), timeout=60) for _ in range(3)]
        until = time.monotonic() + 60
        while running.ask("GET", "/api/things", token=owner).status != 503 and time.monotonic() < until:
            time.sleep(0.01)
        assert running.ask("GET", "/api/things", token=owner).status == 503
        assert running.ask("GET", "/api/things", unix=True).status == 200
        for sock in held:
            sock.close()  # before the server ends, so that its stop has nothing to wait for


def test_a_flood_of_connections_takes_no_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-1, GAT-6: whoever is on this machine can keep a door busy, and not the gate's descriptors."""
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 3)
    with Running(tmp_path) as running:
        before = len(os.listdir("/proc/self/fd"))
        held = [socket.create_connection(("127.0.0.1", running.port), timeout=60) for _ in range(200)]
        assert running.ask("GET", "/api/things", unix=True).status == 200
        until = time.monotonic() + 60
        bound = before + 3 + listener.REFUSED_CONNECTIONS + 2
        while len(os.listdir("/proc/self/fd")) - len(held) > bound and time.monotonic() < until:
            time.sleep(0.01)
        assert len(os.listdir("/proc/self/fd")) - len(held) <= bound
        for sock in held:
            sock.close()


def test_two_requests_in_one_are_one(tmp_path: Path) -> None:
    """SRV-1: what stands behind a body with two lengths is not read as a request."""
    with Running(tmp_path) as running:
        head = b"POST /api/things HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: 4\r\n" % running.port
        hidden = b"GET /api/open HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % running.port
        answer = running.raw(head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1") == 1


def test_a_target_that_is_no_path_has_the_form_of_an_error(tmp_path: Path) -> None:
    """SRV-1: a proxy's way of asking, and `*`, are answered as what is not there."""
    with Running(tmp_path) as running:
        for line in (b"GET http://a.test/", b"OPTIONS *", b"CONNECT a.test:443"):
            answer = running.raw(line + b" HTTP/1.1\r\nHost: localhost:%d\r\nConnection: close\r\n\r\n" % running.port)
            assert answer.startswith(b"HTTP/1.1 404 ")
            assert b'{"error":{"code":"not-found"' in answer


def test_a_sender_cannot_say_who_it_is(tmp_path: Path) -> None:
    """SRV-1: headers of proxies change nothing of who or where a caller is."""
    with Running(tmp_path) as running:
        headers = {"X_Forwarded_For": "127.0.0.1", "X_Forwarded_Host": "localhost", "X_Forwarded_Proto": "https"}
        assert running.ask("GET", "/api/things", **headers).status == 401


def test_an_upgrade_is_not_taken(tmp_path: Path) -> None:
    """SRV-1: a WebSocket is not offered: the request is answered as what it is."""
    with Running(tmp_path) as running:
        headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
        assert running.ask("GET", "/api/open", Sec_WebSocket_Key="AAAAAAAAAAAAAAAAAAAAAA==", **headers).status == 200


def test_a_stop_closes_what_is_idle_at_once(tmp_path: Path) -> None:
    """SRV-1: connections that wait for nothing are closed, and no new one is taken."""
    with Running(tmp_path) as running:
        port = running.port
        idle = socket.create_connection(("127.0.0.1", port), timeout=60)
        keep_idle(idle, port)
    with idle:
        assert is_cut(idle)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=60)


def test_an_address_is_bound_or_the_reason_said() -> None:
    """SRV-2: a socket on a literal of this machine; a taken port is an error of the system."""
    with bind_tcp("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            bind_tcp("127.0.0.1", port)


@pytest.mark.parametrize("turns", range(6))
def test_a_stop_closes_what_was_accepted_in_the_last_moment(turns: int) -> None:
    """SRV-1: however far a connection had come, nothing of it is left open when the stop is done."""

    async def stop_after() -> list[bool]:
        sock = bind_tcp("127.0.0.1", 0)
        door = Listener(_nothing, tcp_door("http", ("127.0.0.1",), 1), [sock])
        await door.start()
        clients = [socket.create_connection(sock.getsockname(), timeout=1) for _ in range(5)]
        for _ in range(turns):
            await asyncio.sleep(0)
        await door.stop()
        # The loop turns no more: what was not closed stays so, and a client would wait.
        cut = [is_cut(client) for client in clients]
        for client in clients:
            client.close()
        return cut

    assert asyncio.run(stop_after()) == [True] * 5


async def _nothing(_scope: object, _receive: object, _send: object) -> None:
    """An application that is never asked."""
