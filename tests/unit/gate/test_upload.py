"""Bodies on their way up under rules with methods, in clear text and inside TLS, over both versions (INS-6, GAT-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.inside import Inside, answer, get, inside
from tests.unit.gate.kit import Serving
from tests.unit.gate.test_inner_streams import GET, site, talk
from tests.unit.gate.test_secrets_inside import STANDS, VALUE, secret
from tidegate.inspect.secrets import Place, Where
from tidegate.model.reason import Reason
from tidegate.model.rule import RuleLimits, only
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.h2_site import H2Site
    from tests.lab.api import Lab

    Start = Callable[..., Inside]

__all__ = ["inside", "site", "talk"]

POSTS = RuleLimits(requests=only(methods=("GET", "POST")))
WRITES = RuleLimits(requests=only(methods=("GET", "POST", "PUT", "PATCH", "DELETE")))
FORM = "Content-Type: application/x-www-form-urlencoded"
ASKS, ASKS_NOT = b"a=1&_method=DELETE&b=2", b"a=1&method=card&b=2"


@pytest.fixture(autouse=True)
def _name(lab: Lab) -> None:
    lab.dns.set("a.test", A=["1.2.3.4"])


def post(body: bytes, *lines: str, chunked: int = 0) -> bytes:
    """A form with a length, or in chunks of so many bytes."""
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
    if chunked:
        pieces = [body[at : at + chunked] for at in range(0, len(body), chunked)]
        body = b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in pieces) + b"0\r\n\r\n"
    return get("a.test", "/x", *(lines or (FORM,)), framing, method="POST") + body


@pytest.mark.parametrize("chunked", [0, 1, 3, 100])
def test_a_form_asks_for_no_other_method(lab: Lab, inside: Start, chunked: int) -> None:
    """INS-6: 403 that says why and a line of the journal; the server has no form; a form beside it comes as it is."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=POSTS)
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(post(ASKS_NOT, chunked=chunked))
        head, body = answer(sock)
        assert head.startswith(b"HTTP/1.1 200 ")
        assert b"Content-Length" in head or chunked
        sock.sendall(post(ASKS, chunked=chunked))
        head, said = answer(sock)
    assert head.startswith(b"HTTP/1.1 403 ")
    assert b"a field of its body asks for another method; the rule lets POST pass here, and not all of" in said
    passed, refused = gate.gate.events(2)
    assert (passed.how, refused.how, refused.reason) == (How.INSPECTED, How.REFUSED, Reason.METHOD_NOT_ALLOWED)
    assert ASKS_NOT in body
    assert b"_method" not in origin.received


def test_a_rule_that_lets_all_of_them_pass_lets_the_field(lab: Lab, inside: Start) -> None:
    """INS-6: what it asks for passes."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=WRITES)
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(post(ASKS))
        assert answer(sock)[0].startswith(b"HTTP/1.1 200 ")
    assert ASKS in origin.received


def test_a_large_form_passes_with_its_length(lab: Lab, inside: Start) -> None:
    """GAT-5: streamed, and framed as it came."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=POSTS)
    form = b"&".join(b"field%d=value" % number for number in range(50_000))
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(post(form))
        assert answer(sock)[0].startswith(b"HTTP/1.1 200 ")
    assert bytes(origin.received).endswith(form)


def test_a_compressed_form_is_not_sent(lab: Lab, inside: Start) -> None:
    """INS-6: nobody reads here what a server may unpack; the destination hears nothing."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    got = inside("a.test:443", limit=POSTS).ask("a.test:443", post(ASKS_NOT, FORM, "Content-Encoding: gzip"))
    assert got.startswith(b"HTTP/1.1 403 ")
    assert b"send it plain" in got
    assert origin.requests == 0


@pytest.mark.parametrize(("body", "status"), [(ASKS, b"403"), (ASKS_NOT, b"200")])
def test_in_clear_text_likewise(lab: Lab, serve: Callable[..., Serving], body: bytes, status: bytes) -> None:
    """INS-6: rules hold for plain HTTP through the proxy too."""
    origin = lab.origin("echo", "1.2.3.4", 80)
    gate = serve("a.test:80", limit=POSTS)
    request = post(body, FORM, "Connection: close").replace(b"POST /x", b"POST http://a.test/x")
    got = gate.raw(request)
    assert got.startswith(b"HTTP/1.1 %b " % status)
    assert (b"_method" in origin.received, body in origin.received) == (False, status == b"200")


def test_over_http2_likewise(talk: Any, site: tuple[H2Site, str]) -> None:
    """INS-3, INS-6: the stream is answered and the destination's reset before its end; others go on."""
    client, gate = talk(limit=POSTS)
    fields = [(":method", "POST"), *GET[1:], ("content-type", "application/x-www-form-urlencoded")]
    head, body, _, _ = client.answer(client.ask(fields, ASKS))
    assert (head[":status"], b"asks for another method" in body) == ("403", True)
    assert client.answer(client.ask(fields, ASKS_NOT))[0][":status"] == "200"
    assert site[0].bodies == [ASKS_NOT]
    head, body, _, _ = client.answer(client.ask([*fields, ("content-encoding", "br")], ASKS_NOT))
    assert (head[":status"], b"send it plain" in body) == ("403", True)
    assert client.answer(client.ask([*GET[:3], (":path", "/x?_method=DELETE")]))[0][":status"] == "403"
    assert client.answer(client.ask([*fields[:4], ("content-type", "text/plain")], ASKS))[0][":status"] == "200"
    assert site[0].bodies == [ASKS_NOT, ASKS]
    assert [event.how for event in gate.gate.events(5)].count(How.REFUSED) == 3


KEY = secret(Place(Where.BODY, b"key"))
HELD_ASKS = b'{"key": "' + STANDS + b'", "_method": "DELETE"}'
HELD = HELD_ASKS.replace(b"_method", b"method")


def test_a_body_that_was_held_is_looked_through_too(lab: Lab, inside: Start) -> None:
    """INS-5, INS-6: one with a secret's field in it; the destination hears nothing of the one that asks for more."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate = inside("a.test:443", limit=POSTS, secrets=KEY)
    with gate.tunnel("a.test:443") as sock:
        sock.sendall(post(HELD, "Content-Type: application/json"))
        assert answer(sock)[0].startswith(b"HTTP/1.1 200 ")
        sock.sendall(post(HELD_ASKS, "Content-Type: application/json"))
        assert answer(sock)[0].startswith(b"HTTP/1.1 403 ")
    assert origin.requests == 1
    assert HELD.replace(STANDS, VALUE) in origin.received


def test_a_stream_that_was_held_is_looked_through_too(talk: Any, site: tuple[H2Site, str]) -> None:
    """INS-5, INS-6: likewise over HTTP/2, and what was held for it is given back."""
    client, gate = talk(limit=POSTS, secrets=KEY)
    left = gate.gate.task.secrets.bodies.left
    fields = [(":method", "POST"), *GET[1:], ("content-type", "application/json")]
    head, body, _, _ = client.answer(client.ask(fields, HELD_ASKS))
    assert (head[":status"], b"asks for another method" in body) == ("403", True)
    assert client.answer(client.ask(fields, HELD))[0][":status"] == "200"
    assert site[0].bodies == [HELD.replace(STANDS, VALUE)]
    assert gate.gate.task.secrets.bodies.left == left
