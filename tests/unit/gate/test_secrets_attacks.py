"""Tries to get a secret's value out, or its stand-in somewhere, over real TLS (INS-4, INS-5, issue 6)."""

from __future__ import annotations

import base64
import random
import ssl
from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.inside import Inside, answer, get, inside, read_all
from tests.unit.gate.test_secrets_inside import BEARER, NONE, STANDS, TOKEN, VALUE, secret
from tidegate.gate.task import GateTask
from tidegate.inspect.placeholder import make_placeholder
from tidegate.inspect.secrets import Place, Secret, Vault, Where
from tidegate.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab

    Start = Callable[..., Inside]

__all__ = ["inside"]

HALF, REST = STANDS[:12].decode(), STANDS[12:].decode()
KEY = secret(Place(Where.HEADER, b"x-key"))
STOOD = STANDS.decode()


@pytest.fixture(autouse=True)
def _names(lab: Lab) -> None:
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.dns.set("b.test", A=["1.2.3.5"])


SMUGGLED = [
    b"POST / HTTP/1.1\r\nHost: a.test\r\n%b\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a.test\r\n%b\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
    b"POST / HTTP/1.1\r\nHost: a.test\r\n%b\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a.test\r\n%b\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n%b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: b.test\r\n%b\r\n\r\n",
    b"GET https://b.test/ HTTP/1.1\r\nHost: a.test\r\n%b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a.test\r\nX: y\r\n %b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: authorization\r\n%b\r\n\r\n",
    b"GET / HTTP/1.1\nHost: a.test\n%b\n\n",
    b"GET / HTTP/1.1\r\nHost: a.test\r\n%b\rX: y\r\n\r\n",
    b"GET /x HTTP/1.1 HTTP/1.1\r\nHost: a.test\r\n%b\r\n\r\n",
]


@pytest.mark.parametrize("data", SMUGGLED)
def test_what_two_could_read_differently_carries_no_value(lab: Lab, inside: Start, data: bytes) -> None:
    """GAT-4, INS-4, B116: both lengths, two hosts, folds, bare line ends: refused, and the origin hears nothing."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    got = gate.ask("a.test:443", data % BEARER.encode())
    assert got[:13] in {b"HTTP/1.1 400 ", b"HTTP/1.1 421 ", b"HTTP/1.1 403 "}, got
    assert VALUE not in got
    assert (origin.requests, VALUE in origin.received) == (0, False)


def test_what_stands_behind_a_refused_request_is_no_request(lab: Lab, inside: Start) -> None:
    """B37: a second one in its body or behind it, with the stand-in in its right place, is never sent."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    hidden = get("a.test", "/hidden", BEARER)
    got = gate.ask("a.test:443", get("a.test", "/", f"X: {STOOD}", f"Content-Length: {len(hidden)}") + hidden + hidden)
    assert got.startswith(b"HTTP/1.1 403 ")
    assert got.count(b"HTTP/1.1 ") == 1
    assert origin.requests == 0


@pytest.mark.parametrize(
    "lines",
    [
        (f"X-Key: {HALF}", f"X-Key: {REST}"),
        (f"X-Key: {HALF},{REST}",),
        (f"Cookie: a={HALF}", f"Cookie: b={REST}"),
        (f"X-Key: {STOOD[::-1]}",),
        (f"X-Key: {STOOD.swapcase()}",),
    ],
)
def test_a_stand_in_in_pieces_is_worth_nothing(lab: Lab, inside: Start, lines: tuple[str, ...]) -> None:
    """INS-5: whoever puts it together has the stand-in; no piece of the value is ever put in its place."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=KEY)
    got = gate.ask("a.test:443", get("a.test", "/", *lines, "Connection: close"))
    assert got.startswith(b"HTTP/1.1 200 ")
    assert all(line.encode() in origin.heads[0] for line in lines)
    for size in range(8, len(VALUE) - 4):
        assert VALUE[4 : 4 + size] not in origin.heads[0] + got


@pytest.mark.parametrize(
    "line",
    [
        f"X-Other: {base64.b64encode(b'me:' + STANDS).decode()}",
        f"X-Other: {base64.urlsafe_b64encode(b'x' + STANDS + b'y').decode()}",
        f"X-Other: {STANDS.hex()}",
        f"Cookie: t={STOOD.replace('_', '%5f')}",
        f"Referer: https://a.test/?t={STOOD}",
        f"Authorization: Basic {base64.b64encode(b'u:' + STANDS).decode()}",
        f"Proxy-Authorization: Bearer {STOOD}",
        f"{STOOD}: x",
    ],
)
def test_in_other_clothes_it_is_met_all_the_same(lab: Lab, inside: Start, line: str) -> None:
    """INS-5, B124: base64 at each place, hex, percent-encoding; refused and on record, and the origin hears nothing."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=KEY)
    assert gate.ask("a.test:443", get("a.test", "/", line)).startswith(b"HTTP/1.1 403 ")
    assert gate.gate.event().reason is Reason.SECRET_MISDIRECTED
    assert origin.requests == 0


def test_both_of_two_headers_are_swapped_and_nothing_beside_them(lab: Lab, inside: Start) -> None:
    """INS-5: the same header twice, each with the stand-in; the origin reads the same whichever it takes."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=KEY)
    got = gate.ask("a.test:443", get("a.test", "/", f"X-Key: {STOOD}", f"x-key: {STOOD}", "Connection: close"))
    assert origin.heads[0].count(VALUE) == 2
    assert VALUE not in got
    assert got.count(STANDS) == 2


ECHOES = {
    "header": "X-Back: {0}",
    "location": "Location: https://a.test/?t={0}",
    "cookie": "Set-Cookie: s={0}; Secure",
    "link": "Link: <https://a.test/{0}>; rel=next",
    "name": "{0}: x",
    "basic": "X-Back: Basic {1}",
    "hex": "X-Back: {2}",
}


@pytest.mark.parametrize("place", ECHOES)
@pytest.mark.parametrize("status", ["200 OK", "302 Found", "401 {0}", "304 Not Modified", "500 {0}"])
def test_no_part_of_a_head_tells_it(lab: Lab, inside: Start, place: str, status: str) -> None:
    """B118: of any status, in its phrase too, after an interim answer that repeats it."""
    forms = (VALUE.decode(), base64.b64encode(b"u:" + VALUE).decode(), VALUE.hex())
    line = ECHOES[place].format(*forms)
    head = f"HTTP/1.1 {status.format(forms[0])}\r\n{line}\r\nContent-Length: 0\r\n\r\n"
    steps = [["head"], ["send", f"HTTP/1.1 103 {forms[0]}\r\n{line}\r\n\r\n{head}"], ["drain"]]
    lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=steps)
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    got = gate.ask("a.test:443", get("a.test", "/", BEARER, "Connection: close"))
    assert got.count(b"HTTP/1.1 ") == 2
    assert not any(form.encode()[4:-4] in got for form in forms)


def test_a_trailer_of_chunks_tells_nothing(lab: Lab, inside: Start) -> None:
    """B118: it stays behind, and so does its announcement."""
    body = f"3\r\nabc\r\n0\r\nX-End: {VALUE.decode()}\r\n\r\n"
    head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n"
    lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=[["head"], ["send", head + body], ["drain"]])
    got = inside("a.test:443", limit=NONE, secrets=TOKEN).ask("a.test:443", get("a.test", "/", "Connection: close"))
    assert got.endswith(b"3\r\nabc\r\n0\r\n\r\n")
    assert b"X-End" not in got


@pytest.mark.parametrize("cut", [1, 5, 12, len(VALUE) - 1])
def test_a_value_in_two_records_is_found(lab: Lab, inside: Start, cut: int) -> None:
    """B118: the second half comes a second later, in a TLS record of its own; both are one to the client."""
    value = VALUE.decode()
    steps = [
        ["head"],
        ["send", f"HTTP/1.1 200 OK\r\nContent-Length: {len(value) + 2}\r\n\r\n<{value[:cut]}"],
        ["sleep", 1],
        ["send", f"{value[cut:]}>"],
        ["drain"],
    ]
    lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=steps)
    got = inside("a.test:443", limit=NONE, secrets=TOKEN).ask(
        "a.test:443", get("a.test", "/", BEARER, "Connection: close")
    )
    assert got.endswith(b"\r\n\r\n<" + STANDS + b">")


def test_a_stand_in_in_two_records_is_met(lab: Lab, inside: Start) -> None:
    """INS-5: byte by byte, each in a record of its own: it is swapped as if it had come at once."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    with gate.tunnel("a.test:443") as sock:
        for byte in get("a.test", "/", BEARER):
            sock.send(bytes((byte,)))
        head, body = answer(sock)
    assert head.startswith(b"HTTP/1.1 200 ")
    assert VALUE in origin.heads[0]
    assert VALUE not in body


def test_a_value_does_not_come_in_ranges(lab: Lab, inside: Start) -> None:
    """INS-5, B118: two halves are a value: a range is not asked for, and one that comes all the same is refused."""
    whole, half = f"x{VALUE.decode()}y", VALUE.decode()[:12]
    ranged = [f"Content-Range: bytes 0-11/{len(whole)}"]
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test", body=whole, headers=["Accept-Ranges: bytes"])
    lab.origin("http", "1.2.3.5", 443, tls="b.test", status="206 Partial Content", headers=ranged, body=half)
    both = (Secret("TOKEN", (("a.test", 443), ("b.test", 443)), Place(Where.BEARER), VALUE, STANDS),)
    gate = inside("a.test:443", "b.test:443", limit=NONE, secrets=both)
    lines = (BEARER, "Range: bytes=1-12", 'If-Range: "x"', "Accept-Encoding: gzip", "Connection: close")
    got = gate.ask("a.test:443", get("a.test", "/", *lines))
    assert got.startswith(b"HTTP/1.1 200 ")
    assert got.endswith(f"\r\n\r\nx{STOOD}y".encode())
    assert b"ranges" not in got.lower()
    assert b"range" not in origin.heads[0].lower()
    refused = gate.ask("b.test:443", get("b.test", "/", *lines))
    assert refused.startswith(b"HTTP/1.1 502 ")
    assert half.encode() not in refused


def test_a_host_without_a_secret_answers_ranges(lab: Lab, inside: Start) -> None:
    """RFC 9110 section 14: beside the secret's host nothing is taken out of a request, nor out of its answer."""
    origin = lab.origin(
        "http", "1.2.3.5", 443, tls="b.test", status="206 Partial Content", headers=["Content-Range: bytes 0-2/9"],
        body="abc",
    )  # fmt: skip
    gate = inside("a.test:443", "b.test:443", secrets=TOKEN)
    got = gate.ask("b.test:443", get("b.test", "/", "Range: bytes=0-2", "Connection: close"))
    assert got.startswith(b"HTTP/1.1 206 ")
    assert b"\r\nRange: bytes=0-2\r\n" in origin.heads[0]


def test_the_stand_in_of_another_task_is_nothing_here(lab: Lab, inside: Start) -> None:
    """INS-5: unique for each task: it passes as any text, unswapped; the task's own is swapped beside it."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    other = make_placeholder(VALUE, random.Random(7).randrange)
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    second = GateTask("t2", gate.gate.task.policy)
    second.secrets = Vault((Secret("TOKEN", (("a.test", 443),), Place(Where.BEARER), VALUE, other),))
    second.inspector = gate.contexts
    address, _ = gate.gate.on_thread(lambda: gate.gate.listen(second))
    for where, mine, theirs in ((gate.gate.address, STANDS, other), (address, other, STANDS)):
        for stands in (mine, theirs):
            gate.gate.address = where
            line = f"Authorization: Bearer {stands.decode()}"
            got = gate.ask("a.test:443", get("a.test", "/", line, "Connection: close"))
            assert got.startswith(b"HTTP/1.1 200 ")
            assert VALUE not in got
            assert (VALUE in origin.heads[-1]) == (stands is mine)
            assert stands in got


def test_no_error_tells_the_value(lab: Lab, inside: Start) -> None:
    """B119: an answer that is none, with the value in the words that are at fault."""
    for head in (f"HTTP/1.1 200 OK\r\n{VALUE.decode()}\r\n\r\n", f"HTTP/1.1 {VALUE.decode()} OK\r\n\r\n"):
        origin = lab.origin("script", "1.2.3.4", 443, tls="a.test", steps=[["head"], ["send", head], ["drain"]])
        gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
        got = gate.ask("a.test:443", get("a.test", "/", BEARER))
        assert got.startswith(b"HTTP/1.1 502 ")
        assert VALUE not in got
        assert VALUE.decode() not in repr(gate.gate.events(1))
        origin.close()


def test_a_client_that_ends_early_gets_what_there_is_and_no_value(lab: Lab, inside: Start) -> None:
    """B47: a half-closed client still reads a clean answer to its end."""
    lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=NONE, secrets=TOKEN)
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(get("a.test", "/", BEARER, "Connection: close"))
        assert isinstance(sock, ssl.SSLSocket)
        got = read_all(sock)
    assert STANDS in got
    assert VALUE not in got
