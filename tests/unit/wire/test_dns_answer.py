"""Proves that answers are what a resolver expects, with dnspython reading them (HLD-6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dns.edns
import dns.flags
import dns.message
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.wire import dns_answer
from tidegate.wire.dns import parse_query

if TYPE_CHECKING:
    from tidegate.wire.dns import Query

V4, V6 = bytes([198, 18, 1, 0]), bytes([0xFD, *range(15)])


def asked(name: str = "A.Test.", kind: str = "A", **options: Any) -> tuple[dns.message.Message, Query]:
    """Return a query for the oracle and for us."""
    message = dns.message.make_query(name, kind, **options)
    return message, parse_query(message.to_wire())


def read(message: dns.message.Message, answer: bytes) -> dns.message.Message:
    """Return the answer as the other side reads it; it must belong to the query."""
    found = dns.message.from_wire(answer)
    assert message.is_response(found)
    assert found.flags & dns.flags.RA
    assert not found.authority
    return found


def extended(message: dns.message.Message) -> list[tuple[int, str | None]]:
    """Return the extended errors of an answer."""
    return [(int(option.code), option.text) for option in message.options if isinstance(option, dns.edns.EDEOption)]


@pytest.mark.parametrize("edns", [False, 0])
@pytest.mark.parametrize(
    ("kind", "packed", "text"), [("A", V4, "198.18.1.0"), ("AAAA", V6, "fd00:102:304:506:708:90a:b0c:d0e")]
)
def test_an_address(kind: str, packed: bytes, text: str, edns: Any) -> None:
    """One record under the name as it was asked, with its TTL; the case of the question is kept."""
    message, query = asked(kind=kind, use_edns=edns)
    answer = dns_answer.addresses(query, (packed,), 60)
    found = read(message, answer)
    assert found.rcode() == dns.rcode.NOERROR
    (records,) = found.answer
    assert records.ttl == 60
    assert [record.to_text() for record in records] == [text]
    assert b"\x01A\x04Test\x00" in answer
    assert found.edns == (-1 if edns is False else 0)
    assert len(answer) < 512


def test_nothing_of_this_type() -> None:
    """NODATA: no error, no record, no SOA that would let it be kept."""
    message, query = asked(kind="HTTPS")
    found = read(message, dns_answer.no_data(query))
    assert (found.rcode(), found.answer, found.authority) == (dns.rcode.NOERROR, [], [])


def test_no_such_name_says_why_to_who_understands_it() -> None:
    """RFC 8914: NXDOMAIN with the extended error 15 (Blocked) where the query had EDNS, a bare one where not."""
    message, query = asked(use_edns=0)
    found = read(message, dns_answer.no_name(query, "no rule allows it"))
    assert found.rcode() == dns.rcode.NXDOMAIN
    assert extended(found) == [(15, "no rule allows it")]
    message, query = asked(use_edns=False)
    found = read(message, dns_answer.no_name(query, "no rule allows it"))
    assert found.rcode() == dns.rcode.NXDOMAIN
    assert found.edns == -1


@pytest.mark.parametrize("rcode", ["FORMERR", "SERVFAIL", "NOTIMP", "REFUSED"])
def test_response_codes(rcode: str) -> None:
    """Each failure as a code of its own."""
    message, query = asked(use_edns=0)
    found = read(message, dns_answer.failure(query, int(dns.rcode.from_text(rcode)), "why"))
    assert dns.rcode.to_text(found.rcode()) == rcode
    assert extended(found) == [(0, "why")]


def test_an_unknown_version_of_edns() -> None:
    """RFC 6891 section 6.1.3: BADVERS stands in the extended bits, and the version we speak beside it."""
    message, query = asked(use_edns=1)
    found = read(message, dns_answer.failure(query, 16))
    assert found.rcode() == dns.rcode.BADVERS
    assert found.edns == 0


def test_flags_that_come_back() -> None:
    """RFC 1035, RFC 4035 section 3.2.2, RFC 3225: RD, CD and DO as they came, AD never."""
    message, query = asked(use_edns=0, want_dnssec=True, flags=dns.flags.RD | dns.flags.CD | dns.flags.AD)
    found = read(message, dns_answer.addresses(query, (V4,), 1))
    assert found.flags & dns.flags.CD
    assert found.flags & dns.flags.RD
    assert not found.flags & dns.flags.AD
    assert found.ednsflags & dns.flags.DO
    message, query = asked(flags=0)
    assert not read(message, dns_answer.no_data(query)).flags & dns.flags.RD


def test_a_pointer() -> None:
    """The name of an address."""
    message, query = asked("0.1.18.198.in-addr.arpa.", "PTR")
    found = read(message, dns_answer.pointer(query, "a.test", 60))
    assert [record.to_text() for record in found.answer[0]] == ["a.test."]


LONG = ".".join(["x" * 49] * 5) + "."


def test_what_is_too_long_for_a_datagram_is_cut_and_says_so() -> None:
    """RFC 2181 section 9: TC with no record; over TCP the same answer is whole."""
    message, query = asked(LONG, "PTR", use_edns=False)
    name = "y" * 63 + "." + LONG[:180]
    answer = dns_answer.pointer(query, name, 60, dns_answer.datagram_limit(query))
    found = read(message, answer)
    assert len(answer) <= 512
    assert found.flags & dns.flags.TC
    assert not found.answer
    assert len(dns_answer.pointer(query, name, 60)) > 512
    assert read(message, dns_answer.pointer(query, name, 60)).answer


def test_the_text_of_an_extended_error_goes_first() -> None:
    """A long name leaves no room for it in 512 bytes; code and answer stay."""
    message, query = asked(LONG, use_edns=0, payload=512)
    answer = dns_answer.no_name(query, "w" * 300, dns_answer.datagram_limit(query))
    found = read(message, answer)
    assert len(answer) <= 512
    assert not found.flags & dns.flags.TC
    ((code, text),) = extended(found)
    assert (code, text or "") in [(15, ""), (15, "w" * 200)]


@pytest.mark.parametrize(
    ("size", "limit"), [(None, 512), (0, 512), (512, 512), (513, 513), (1232, 1232), (4096, 1232), (65535, 1232)]
)
def test_the_size_of_a_datagram(size: int | None, limit: int) -> None:
    """RFC 6891 section 6.2.3: what the sender takes, at least 512, never so much that it would be fragmented."""
    _, query = asked(use_edns=False)
    if size is not None:
        edns = dns.message.make_query("a.test.", "A", use_edns=0).to_wire()
        query = parse_query(edns[:-8] + size.to_bytes(2, "big") + edns[-6:])
    assert dns_answer.datagram_limit(query) == limit


@given(
    st.lists(st.binary(min_size=1, max_size=63), max_size=4).filter(lambda all_: sum(len(x) + 1 for x in all_) < 255),
    st.sampled_from([False, 0]),
    st.text(max_size=300),
    st.integers(512, 2000),
    st.sampled_from(["A", "AAAA"]),
)
def test_every_answer_is_whole_and_fits(labels: list[bytes], edns: Any, text: str, limit: int, kind: str) -> None:
    """Whatever was asked and however long the text: dnspython reads each answer, and none is over its limit."""
    message = dns.message.make_query(dns.name.Name([*labels, b""]), kind, use_edns=edns)
    query = parse_query(message.to_wire())
    for answer in (
        dns_answer.addresses(query, (V4 if kind == "A" else V6,), 60, limit),
        dns_answer.no_data(query, limit),
        dns_answer.no_name(query, text, limit),
        dns_answer.failure(query, 2, text, limit),
    ):
        assert len(answer) <= limit
        found = read(message, answer)
        assert all(" " <= char <= "~" for _, shown in extended(found) for char in shown or "")
