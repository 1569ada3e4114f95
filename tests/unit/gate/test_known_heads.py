"""Heads that come again: equal bytes are the same answer, where the request is an ordinary one."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.gate.kit import read_exactly, read_head
from tidegate.gate.known_heads import LESSONS, MOST, MOST_BYTES, SHAPE_BYTES, KnownHeads
from tidegate.wire.framing import response_framing
from tidegate.wire.headers import response_head_bytes
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
    assert not kept(heads, HEAD.replace(b"OK", b"Large").replace(b"one", b"x" * 2000))
    found = heads.find(HEAD)
    assert found is not None
    assert (found.status, found.framing.length) == (200, 4)
    for number in range(MOST):
        assert kept(heads, HEAD.replace(b"OK", str(number).encode()))
    assert heads.find(HEAD) is None  # they were forgotten, all at once


def marked(mark: bytes, *, status: bytes = b"200 OK", more: bytes = b"") -> bytes:
    """Return a head that differs from others in what nobody reads."""
    return b"HTTP/1.1 %b\r\nX-Mark: %b\r\n%bContent-Length: 4\r\n\r\n" % (status, mark, more)


def test_a_shape_is_learned_with_the_second_head_of_its_kind() -> None:
    """GAT-4, GAT-5: one answer pays for no shape; after two, a third with other values is known, and kept."""
    heads = KnownHeads()
    assert kept(heads, marked(b"one"))
    assert heads.find(marked(b"two")) is None
    assert kept(heads, marked(b"two"))
    found = heads.find(marked(b"three"))
    assert found is not None
    assert (found.status, found.framing.length, found.out) == (200, 4, marked(b"three"))
    assert heads.find(marked(b"three")) is found
    assert heads.find(marked(b"four", status=b"404 Not Found")) is None
    assert heads.find(marked(b"four", more=b"X-Other: 1\r\n")) is None


def test_no_shape_is_learned_of_what_is_not_kept() -> None:
    """INS-5: heads that set cookies leave nothing behind, nor do large ones."""
    for more in (b"Set-Cookie: a=%d\r\n", b"X-Large: %%0%dd\r\n" % SHAPE_BYTES % 0 + b"Y: %d\r\n"):
        heads = KnownHeads()
        for number in range(4):
            assert not kept(heads, marked(b"m", more=more % number))


def test_large_heads_have_a_shape_and_are_not_kept_whole() -> None:
    """GAT-5: a head above the bound of those kept whole is known by its shape alone."""
    heads = KnownHeads()
    more = b"X-Policy: " + b"p" * MOST_BYTES + b"\r\n"
    assert not kept(heads, marked(b"one", more=more))
    assert kept(heads, marked(b"two", more=more))
    first = heads.find(marked(b"three", more=more))
    assert first is not None
    assert first.out == marked(b"three", more=more)
    assert heads.find(marked(b"three", more=more)) is not first


def test_an_origin_that_never_does_the_same_again_teaches_only_so_much() -> None:
    """GAT-5: lessons on one connection are bounded."""
    heads = KnownHeads()
    for number in range(2 * LESSONS):
        kept(heads, marked(b"a", more=b"X-%d: 1\r\n" % number))
    for mark in (b"one", b"two", b"three"):
        assert heads.find(marked(mark, more=b"Z: 1\r\n")) is None
        kept(heads, marked(mark, more=b"Z: 1\r\n"))


FIELDS = ("Date: %d", "ETag: %d", "Content-Length: %d", "Set-Cookie: a=%d", "Connection: keep-alive", "Location: /%d")


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(("200 OK", "302 Found", "204 No Content")), st.permutations(FIELDS), st.integers(1, 4)
        ),
        max_size=12,
    )
)
def test_any_run_of_answers_is_told_as_if_each_were_read(answers: list[tuple[str, list[str], int]]) -> None:
    """GAT-4: whatever came before on the connection, what is known of a head is what reading it says."""
    heads = KnownHeads()
    for number, (status, fields, count) in enumerate(answers):
        texts = [field % number if "%" in field else field for field in fields[:count]]
        raw = "\r\n".join((f"HTTP/1.1 {status}", *texts, "", "")).encode()
        head = parse_response_head(raw)
        framing, out = response_framing(head, "GET"), response_head_bytes(head, close=False)
        known = heads.find(raw)
        if known is None:
            heads.keep(raw, head, framing, out)
        else:
            assert (known.status, known.framing, known.out) == (head.status, framing, out)


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
