"""Heads that come again: equal bytes are the same answer, where the request is an ordinary one."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.kit import read_exactly, read_head
from tidegate.gate.known_heads import MOST, KnownHeads
from tidegate.wire.framing import response_framing
from tidegate.wire.http1 import parse_response_head

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]

HEAD = b"HTTP/1.1 200 OK\r\nX-Mark: one\r\nContent-Length: 4\r\n\r\n"


def kept(heads: KnownHeads, raw: bytes) -> bool:
    """Offer a head, and return whether it was kept."""
    head = parse_response_head(raw)
    heads.keep(raw, head, response_framing(head, "GET"), raw)
    return heads.find(raw) is not None


def test_few_and_small_ones_are_kept_and_no_secret() -> None:
    """GAT-5: a bound of heads and bytes; one that sets a cookie is not kept."""
    heads = KnownHeads()
    assert kept(heads, HEAD)
    assert not kept(heads, HEAD.replace(b"X-Mark: one", b"Set-Cookie: a=b"))
    assert not kept(heads, HEAD.replace(b"one", b"x" * 2000))
    found = heads.find(HEAD)
    assert found is not None
    assert (found.status, found.framing.length) == (200, 4)
    for number in range(MOST):
        assert kept(heads, HEAD.replace(b"one", str(number).encode()))
    assert heads.find(HEAD) is None  # they were forgotten, all at once


def ask(sock: socket.socket, line: str = "GET http://a.test/ HTTP/1.1", *fields: str) -> bytes:
    """Make a request and return the head of its answer."""
    sock.sendall("\r\n".join((line, "Host: a.test", *fields, "", "")).encode())
    return read_head(sock)


def test_equal_heads_have_bodies_of_their_own(lab: Lab, serve: Serve) -> None:
    """GAT-3, GAT-4: three answers with one head: each body is its own, whole or in parts, and each is on record."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    head = HEAD.decode()
    steps = [["head"], ["send", head + "abcd"], ["head"], ["send", head + "ef"], ["sleep", 0.1], ["send", "gh"]]
    lab.origin("script", "1.2.3.4", 80, steps=[*steps, ["head"], ["send", head], ["send", "ijkl"], ["drain"]])
    gate = serve("a.test")
    with gate.connect() as sock:
        for body in (b"abcd", b"efgh", b"ijkl"):
            assert b"X-Mark: one" in ask(sock)
            assert read_exactly(sock, 4) == body
    assert [event.status for event in gate.events(3)] == [200, 200, 200]


@pytest.mark.parametrize(
    ("second", "field"),
    [("HEAD http://a.test/ HTTP/1.1", "X: y"), ("GET http://a.test/ HTTP/1.1", "Connection: close")],
)
def test_another_kind_of_request_is_answered_on_its_own_terms(lab: Lab, serve: Serve, second: str, field: str) -> None:
    """GAT-4: the same head is no body to a HEAD, and an end to who asked for one."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    head = HEAD.decode()
    rest = "" if second.startswith("HEAD") else "abcd"
    steps = [["head"], ["send", head + "abcd"], ["head"], ["send", head + rest], ["head"], ["send", head + "last"]]
    lab.origin("script", "1.2.3.4", 80, steps=[*steps, ["drain"]])
    gate = serve("a.test")
    with gate.connect() as sock:
        ask(sock)
        assert read_exactly(sock, 4) == b"abcd"
        got = ask(sock, second, field)
        if rest:
            assert b"Connection: close" in got
            assert sock.recv(100) == b"abcd"
            assert sock.recv(100) == b""
        else:
            ask(sock)
            assert read_exactly(sock, 4) == b"last"


def test_what_stands_behind_an_answer_is_not_the_next_one(lab: Lab, serve: Serve) -> None:
    """GAT-4: a head that is known, with more behind its body: the connection to the origin is not used again."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    head = HEAD.decode()
    steps = [["head"], ["send", head + "abcd"], ["head"], ["send", head + "abcdHTTP/1.1 200 evil\r\n\r\n"], ["drain"]]
    origin = lab.origin("script", "1.2.3.4", 80, steps=steps)
    gate = serve("a.test")
    with gate.connect() as sock:
        for _ in range(3):
            assert b"evil" not in ask(sock)
            assert read_exactly(sock, 4) == b"abcd"
    assert origin.connections == 2
