"""Proves the SOCKS5 server side: no authentication, CONNECT only, hosts by the one normaliser (GAT-1, POL-3)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.feeding import bytewise, outcome, pieces_of
from tidegate.model.destination import Destination
from tidegate.model.host import Host, canonical_host
from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError
from tidegate.wire.socks5 import (
    NO_METHOD,
    SUCCEEDED,
    read_greeting,
    read_request,
    refusal_reply,
    reply,
    reply_code,
)


def by_name(name: bytes, port: int = 443) -> bytes:
    """Return a CONNECT request for a name."""
    return b"\x05\x01\x00\x03%c%b" % (len(name), name) + port.to_bytes(2, "big")


def asked(data: bytes) -> Any:
    """Return the destination of a whole request as text, or the reason of the error."""
    found = outcome(lambda: read_request(data))
    return str(found[1]) if isinstance(found, tuple) else found


def handshake(pieces: list[bytes]) -> Any:
    """Read greeting and request as the gate does; return (destination, bytes used), None, or the reason."""

    def read() -> Any:
        buf = bytearray()
        greeted = 0
        for piece in pieces:
            buf += piece
            greeted = greeted or read_greeting(buf)
            found = read_request(buf[greeted:]) if greeted else None
            if found is not None:
                return found[1], greeted + found[0]
        return None

    return outcome(read)


@pytest.mark.parametrize(
    ("data", "used"),
    [
        (b"", 0),
        (b"\x05", 0),
        (b"\x05\x01", 0),
        (b"\x05\x01\x00", 3),
        (b"\x05\x02\x02\x00more", 4),
        (b"\x05\x02\x00", 0),
    ],
)
def test_a_greeting_that_offers_no_authentication(data: bytes, used: int) -> None:
    """Also beside other methods, and it is waited for until it is whole."""
    assert read_greeting(data) == used


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"\x05\x01\x02", NO_METHOD),
        (b"\x05\x02\x01\x02", NO_METHOD),
        (b"\x05\x00", NO_METHOD),
        (b"\x04\x01", b""),
        (b"G", b""),
    ],
)
def test_other_greetings_are_refused(data: bytes, answer: bytes) -> None:
    """Authentication only is answered with 0xFF; what is no SOCKS5 gets no SOCKS5 answer."""
    with pytest.raises(WireError) as caught:
        read_greeting(data)
    assert (caught.value.reason, caught.value.reply) == (Reason.BAD_SOCKS, answer)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (by_name(b"a.test"), "a.test:443"),
        (by_name(b"A.TEST."), "a.test:443"),
        (by_name(b"a.test", 65535), "a.test:65535"),
        (by_name(b"1.2.3.4"), "1.2.3.4:443"),
        (by_name(b"[2600:BEEF::1]"), "[2600:beef::1]:443"),
        (by_name(b"2600:BEEF::1"), "[2600:beef::1]:443"),
        (b"\x05\x01\x00\x01\x01\x02\x03\x04\x00\x16", "1.2.3.4:22"),
        (b"\x05\x01\x00\x04" + bytes(15) + b"\x01\x00\x50", "[::1]:80"),
    ],
)
def test_hosts_by_name_and_by_address(data: bytes, expected: str) -> None:
    """A name that is the text of an address is that address, with the same value as from an address type."""
    assert asked(data) == expected
    assert read_request(data + b"early data")[0] == len(data)


def test_the_text_of_an_address_is_a_literal() -> None:
    """So it is judged as an address, whichever way it came."""
    four = read_request(b"\x05\x01\x00\x01\x01\x02\x03\x04\x00\x16")[1]
    assert four == read_request(by_name(b"1.2.3.4", 22))[1] == Destination(Host("1.2.3.4", b"\1\2\3\4"), 22)
    six = read_request(b"\x05\x01\x00\x04" + bytes(15) + b"\x01\x00\x16")[1]
    assert six == read_request(by_name(b"::1", 22))[1] == Destination(canonical_host("[::1]"), 22)


@pytest.mark.parametrize(
    "name",
    [
        b"127.0.0.1\x00.a.test",
        b"a\x00",
        b"a b",
        b"a\xe9.test",
        "127\u30020\u30020\u30021".encode(),
        b"evil.test%23.a.test",
        b"a..test",
        b"0x7f.1",
        b"127.1",
        b"2130706433",
        b"0177.0.0.1",
        b"a.test:443",
        b"[::1",
        b"[[::1]]",
        b"[::1]]",
        b"fe80::1%lo",
        b"::ffff:1.2.3.4.5",
        b"u@a.test",
        b".",
        b"x" * 255,
    ],
)
def test_a_malformed_name_is_refused(name: bytes) -> None:
    """NUL bytes, escapes, numbers in disguise and half brackets never reach a resolver (B04, B05, B10, B25, B26)."""
    with pytest.raises(WireError) as caught:
        read_request(by_name(name))
    assert (caught.value.reason, caught.value.reply) == (Reason.BAD_HOST, reply(1))
    assert caught.value.raw.isprintable()


@pytest.mark.parametrize(
    ("data", "reason", "code"),
    [
        (b"\x04", Reason.BAD_SOCKS, 1),
        (b"\x05\x02", Reason.BAD_SOCKS, 7),
        (b"\x05\x03", Reason.BAD_SOCKS, 7),
        (b"\x05\xf0", Reason.BAD_SOCKS, 7),
        (b"\x05\x01\x01", Reason.BAD_SOCKS, 1),
        (b"\x05\x01\x00\x02", Reason.BAD_SOCKS, 8),
        (b"\x05\x01\x00\x03\x00", Reason.BAD_HOST, 1),
        (by_name(b"a.test", 0), Reason.BAD_PORT, 1),
    ],
)
def test_a_request_for_something_else_is_refused_at_once(data: bytes, reason: Reason, code: int) -> None:
    """BIND, UDP ASSOCIATE, unknown address types and port 0 fail at the byte that says so, with SOCKS's own code."""
    with pytest.raises(WireError) as caught:
        read_request(data)
    assert (caught.value.reason, caught.value.reply) == (reason, reply(code))
    if len(data) < 5:
        assert read_request(data[:-1]) is None


@pytest.mark.parametrize("request_bytes", [by_name(b"a.test"), b"\x05\x01\x00\x04" + bytes(16) + b"\x00\x50"])
def test_greeting_and_request_in_one_segment_or_in_bytes(request_bytes: bytes) -> None:
    """Optimistic clients send both at once, slow ones a byte at a time; what follows is the tunnel's."""
    data = b"\x05\x02\x00\x02" + request_bytes
    expected = (read_request(request_bytes)[1], len(data))
    assert handshake([data + b"\x16\x03"]) == expected
    assert handshake(bytewise(data)) == expected
    assert handshake(bytewise(data)[:-1]) is None


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (Reason.NO_RULE, 2),
        (Reason.DENY_RULE, 2),
        (Reason.NEVER_ADDRESS, 2),
        (Reason.PRIVATE_ADDRESS, 2),
        (Reason.NO_APPROVER, 2),
        (Reason.UPSTREAM_UNREACHABLE, 3),
        (Reason.UPSTREAM_NXDOMAIN, 4),
        (Reason.NO_ADDRESS, 4),
        (Reason.UPSTREAM_DNS_TIMEOUT, 4),
        (Reason.UPSTREAM_REFUSED, 5),
        (Reason.UPSTREAM_TIMEOUT, 6),
        (Reason.BAD_HOST, 1),
        (Reason.INTERNAL, 1),
        (Reason.TOO_MANY_CONNECTIONS, 1),
    ],
)
def test_reply_codes(reason: Reason, code: int) -> None:
    """Refusals and the kinds of upstream failure are told apart (GAT-7, GAT-9)."""
    assert reply_code(reason) == code
    assert refusal_reply(reason) == b"\x05%c\x00\x01" % code + bytes(6)


def test_every_reason_has_a_code() -> None:
    """None of them is success, and the reply of success is a whole one."""
    assert all(1 <= reply_code(reason) <= 8 for reason in Reason)
    assert b"\x05\x00\x00\x01" + bytes(6) == SUCCEEDED


SOCKSY = st.lists(
    st.sampled_from([b"\x05", b"\x01", b"\x00", b"\x03", b"\x04", b"\x06a.test", b"\x01\xbb", b"\x05\x01\x00", b"::1"])
    | st.binary(max_size=4),
    max_size=10,
).map(b"".join)


@given(SOCKSY, st.data())
def test_whole_or_in_pieces_is_the_same(data: bytes, source: Any) -> None:
    """A destination, a wait or one error; nothing else, however the bytes come."""
    whole = handshake([data])
    assert handshake(bytewise(data)) == whole
    assert handshake(source.draw(pieces_of(data))) == whole
