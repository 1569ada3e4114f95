"""The probes of capture see what they are for, and pass where all is well; whole in tests/holds/test_capture.py."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from tidegate.holds import capture_proof, inside
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Callable


def serving(kind: int, answer: Callable[[bytes], bytes]) -> int:
    """The port of a server on loopback that answers one thing to each."""
    server = socket.socket(socket.AF_INET, kind)
    server.bind(("127.0.0.1", 0))

    def streams() -> None:
        server.listen()
        ready.set()
        with server, server.accept()[0] as wire:
            wire.sendall(answer(wire.recv(4096)))

    def datagrams() -> None:
        ready.set()
        with server:
            server.settimeout(5)
            for _ in range(2):
                try:
                    said, who = server.recvfrom(4096)
                except TimeoutError:
                    return
                server.sendto(answer(said), who)

    ready = threading.Event()
    threading.Thread(target=streams if kind == socket.SOCK_STREAM else datagrams, daemon=True).start()
    ready.wait(5)
    port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\n\r\n", False),
        (b"SSH-2.0-x\r\n", False),
        (b"", False),
    ],
)
def test_a_captured_connection_must_be_refused_in_words(answer: bytes, passes: bool) -> None:
    """HLD-11: 403 is the gate; another answer, or none, is somebody else or a policy that was not loaded."""
    port = serving(socket.SOCK_STREAM, lambda _said: answer)
    if passes:
        capture_proof.check_connection(socket.AF_INET, "127.0.0.1", port)
    else:
        with pytest.raises(StartError, match="self-test"):
            capture_proof.check_connection(socket.AF_INET, "127.0.0.1", port)


def test_a_connection_that_is_not_captured_stops_the_start() -> None:
    """HLD-7: nobody listens: the redirect is not there, and the start says so."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(StartError, match="is not captured"):
        capture_proof.check_connection(socket.AF_INET, "127.0.0.1", port)


@pytest.mark.parametrize(
    ("change", "passes"),
    [
        (lambda said: said[:2] + b"\x81\x83" + said[4:], True),  # NXDOMAIN
        (lambda said: said[:2] + b"\x81\x80" + said[4:], False),  # an answer
        (lambda said: said[:2] + b"\x81\x82" + said[4:], False),  # SERVFAIL
        (lambda said: b"\xff\xff\x81\x83" + said[4:], False),  # to another question
        (lambda _said: b"", False),
    ],
)
def test_a_denied_name_must_not_exist(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[bytes], bytes], passes: bool
) -> None:
    """HLD-11: NXDOMAIN passes, anything else of the resolver stops the start."""
    monkeypatch.setattr(inside, "DNS", serving(socket.SOCK_DGRAM, change))
    if passes:
        capture_proof.check_resolver("127.0.0.1")
    else:
        with pytest.raises(StartError, match="self-test"):
            capture_proof.check_resolver("127.0.0.1")


def test_a_datagram_must_fail() -> None:
    """HLD-11, B83: a closed port is a refusal; one that is answered, or swallowed, stops the start."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.bind(("127.0.0.1", 0))
        port = wire.getsockname()[1]
        with pytest.raises(StartError, match="swallowed"):
            capture_proof.check_datagram("127.0.0.1", port)
    capture_proof.check_datagram("127.0.0.1", port)
    with pytest.raises(StartError, match="answered"):
        capture_proof.check_datagram("127.0.0.1", serving(socket.SOCK_DGRAM, lambda said: said))
