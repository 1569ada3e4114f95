"""Proves that DNS queries are read strictly and whole (HLD-6, POL-3), with dnspython as the oracle."""

from __future__ import annotations

from typing import Any

import dns.edns
import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rdatatype
import dns.reversename
import dns.tsigkeyring
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.feeding import bytewise, outcome
from tidegate.model.host import Host
from tidegate.model.reason import Reason
from tidegate.wire.dns import AAAA, MAX_QUERY, A, Edns, Query, address_of, framed, host_of, parse_query, read_frame
from tidegate.wire.errors import WireError

LABELS = st.lists(st.binary(min_size=1, max_size=63), max_size=8).filter(
    lambda all_: sum(len(x) + 1 for x in all_) < 255
)


def query(name: str = "a.test.", kind: str = "A", **options: Any) -> bytes:
    """Return a query as dnspython writes it."""
    return dns.message.make_query(name, kind, **options).to_wire(max_size=65535)


def refusal(data: bytes) -> WireError:
    """Return the error of a query that must not be accepted."""
    with pytest.raises(WireError) as caught:
        parse_query(data)
    assert caught.value.reason is Reason.BAD_DNS
    return caught.value


def test_a_plain_query_is_read() -> None:
    """RFC 1035: number, flags, labels, type, class and the question as it came."""
    data = query("WwW.a.test.", "AAAA", use_edns=False, id=4711)
    found = parse_query(data)
    assert found == Query(4711, 0x0100, (b"WwW", b"a", b"test"), AAAA, 1, data[12:], None)
    assert found.host == Host("www.a.test")


def test_edns_is_read_and_its_options_are_passed_over() -> None:
    """RFC 6891: size, version, DO; cookies, padding and what nobody knows do not matter."""
    options = [
        dns.edns.GenericOption(10, b"12345678"),
        dns.edns.GenericOption(12, bytes(300)),
        dns.edns.ECSOption("1.2.3.0"),
    ]
    found = parse_query(query(use_edns=0, payload=4096, want_dnssec=True, options=options))
    assert found.edns == Edns(4096, 0, True)
    assert parse_query(query(use_edns=1)).edns == Edns(1232, 1, False)
    assert parse_query(query(use_edns=False)).edns is None


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ((b"a", b"test"), "a.test"),
        ((b"A", b"TEST"), "a.test"),
        ((b"_443", b"_tcp", b"a", b"test"), "_443._tcp.a.test"),
        ((b"localhost",), "localhost"),
        ((b"x" * 63, b"test"), "x" * 63 + ".test"),
        ((), None),
        ((b"a.test",), None),
        ((b"a", b"te.st"), None),
        ((b"a\x00", b"test"), None),
        ((b"a b", b"test"), None),
        ((b"h\xc3\xb6st", b"test"), None),
        ((b"[::1]",), None),
        ((b"[", b"]"), None),
        ((b"127", b"0", b"0", b"1"), None),
        ((b"127", b"1"), None),
        ((b"0x7f",), None),
        ((b"*", b"a", b"test"), None),
        ((b"a", b"test:443"), None),
    ],
)
def test_only_canonical_names_are_hosts(labels: tuple[bytes, ...], name: str | None) -> None:
    """POL-3: the one normaliser; dots inside labels, brackets, addresses and bytes that no host has spell no name."""
    assert host_of(labels) == (None if name is None else Host(name))


def _changed(data: bytes, at: int, *values: int) -> bytes:
    return data[:at] + bytes(values) + data[at + len(values) :]


PLAIN = query("a.test.", use_edns=False, id=1)
WITH_EDNS = query("a.test.", use_edns=0, id=1)


@pytest.mark.parametrize(
    "data",
    [
        PLAIN + b"\0",
        PLAIN[:-1],
        PLAIN[:12],
        PLAIN[:13],
        _changed(PLAIN, 5, 0),  # no question
        _changed(PLAIN, 5, 2),  # two
        _changed(PLAIN, 7, 1),  # an answer
        _changed(PLAIN, 9, 1),  # an authority
        _changed(PLAIN, 11, 1),  # an OPT that is not there
        _changed(PLAIN, 2, 0x03),  # TC
        _changed(PLAIN, 12, 0xC0, 0x0C),  # compressed, to itself
        _changed(PLAIN, 12, 0x41),  # an extended label
        _changed(PLAIN, 12, 0x80),
        WITH_EDNS[:-1],
        WITH_EDNS + b"\0",
        _changed(WITH_EDNS, 11, 2),
        _changed(WITH_EDNS, len(PLAIN), 1),  # an OPT with a name
        _changed(WITH_EDNS, len(PLAIN) + 2, 1),  # an A record in its place
        _changed(WITH_EDNS, len(WITH_EDNS) - 1, 3) + b"\0\0\0",  # an option of three bytes
        _changed(WITH_EDNS, len(WITH_EDNS) - 1, 4) + b"\0\1\0\1",  # an option longer than its record
        PLAIN[:12] + (b"\x3f" + b"x" * 63) * 4 + PLAIN[19:],  # 256 bytes of name
        query(use_edns=0, options=[dns.edns.GenericOption(12, bytes(MAX_QUERY))]),
    ],
    ids=map(str, range(22)),
)
def test_what_is_no_query_is_answered_with_formerr(data: bytes) -> None:
    """HLD-6: one question, nothing compressed, nothing behind; the answer is a header with the same number."""
    answer = dns.message.from_wire(refusal(data).reply)
    assert answer.id == 1 or len(data) > MAX_QUERY
    assert answer.rcode() == dns.rcode.FORMERR
    assert not answer.question
    assert answer.flags & dns.flags.QR


def test_a_name_of_255_bytes_is_the_longest() -> None:
    """RFC 1035 section 2.3.4: the neighbour of the one that is refused above."""
    name = (b"\x3f" + b"x" * 63) * 3 + b"\x3d" + b"x" * 61 + b"\0"
    assert len(name) == 255
    assert len(parse_query(PLAIN[:12] + name + PLAIN[20:]).labels) == 4
    longer = (b"\x3f" + b"x" * 63) * 3 + b"\x3e" + b"x" * 62 + b"\0"
    assert refusal(PLAIN[:12] + longer + PLAIN[20:])


def test_other_operations_are_not_implemented() -> None:
    """RFC 1035 section 4.1.1: a notify, an update or a status query gets NOTIMP."""
    for opcode in (1, 2, 4, 5, 15):
        answer = dns.message.from_wire(refusal(_changed(PLAIN, 2, opcode << 3 | 1)).reply)
        assert answer.rcode() == dns.rcode.NOTIMP
        assert answer.opcode() == opcode


def test_a_response_and_a_stump_get_no_answer() -> None:
    """Two servers that answer each other's answers would never stop."""
    for data in (_changed(PLAIN, 2, 0x81), _changed(PLAIN, 2, 0x91), b"", PLAIN[:11]):
        assert refusal(data).reply == b""


def test_a_signed_query_is_not_taken_apart() -> None:
    """TSIG and SIG(0) are for servers among themselves."""
    message = dns.message.make_query("a.test.", "A", use_edns=False)
    message.use_tsig(dns.tsigkeyring.from_text({"key.": "c2VjcmV0c2VjcmV0"}))
    assert refusal(message.to_wire()).reply


@pytest.mark.parametrize("text", ["198.18.1.0", "0.0.0.0", "255.255.255.255", "fd74::1", "2600:beef::17", "::"])
def test_reverse_names_are_read(text: str) -> None:
    """RFC 1035 section 3.5 and RFC 3596 section 2.5, in either case."""
    name = dns.reversename.from_address(text)
    packed = dns.reversename.to_address(name)
    for labels in (name.labels[:-1], tuple(label.upper() for label in name.labels[:-1])):
        found = address_of(labels)
        assert found is not None
        assert dns.reversename.to_address(dns.reversename.from_address(text)) == packed
        assert found == dns.inet.inet_pton(dns.inet.AF_INET6 if ":" in text else dns.inet.AF_INET, text)


@pytest.mark.parametrize(
    "name",
    ["in-addr.arpa", "1.in-addr.arpa", "1.2.3.in-addr.arpa", "256.1.1.1.in-addr.arpa", "1.1.1.1.1.in-addr.arpa",
     "-1.1.1.1.in-addr.arpa", "1.1.1.1.ip6.arpa", "0.0.0.0001.in-addr.arpa", ".".join("g" * 32) + ".ip6.arpa",
     ".".join("1" * 31) + ".ip6.arpa", ".".join("1" * 30) + ".11.ip6.arpa", "1.1.1.1.in-addr.arpa.test", "arpa", ""],
)  # fmt: skip
def test_what_is_no_whole_reverse_name_is_none(name: str) -> None:
    """Neighbours of the ones above."""
    assert address_of(tuple(name.encode().split(b"."))) is None


@given(LABELS, st.integers(0, 65535), st.sampled_from([False, 0, 1]), st.integers(0, 65535), st.booleans())
def test_it_reads_what_dnspython_writes(labels: list[bytes], kind: int, edns: Any, size: int, dnssec: bool) -> None:
    """Differential: any labels, any type, with and without EDNS."""
    if kind in (dns.rdatatype.OPT, dns.rdatatype.TSIG, 250, 251, 252):
        kind = 1
    name = dns.name.Name([*labels, b""])
    data = dns.message.make_query(
        name, kind, use_edns=edns, payload=max(size, 512), want_dnssec=bool(dnssec and edns is not False)
    ).to_wire()
    found = parse_query(data)
    assert found.labels == tuple(labels)
    assert (found.kind, found.space) == (kind, 1)
    assert (found.edns is None) == (edns is False)
    if found.edns is not None:
        assert found.edns == Edns(max(size, 512), int(edns), dnssec)
    assert all(" " <= char <= "~" for char in found.shown)


@given(st.binary(max_size=600))
def test_any_bytes_are_a_query_or_an_error(data: bytes) -> None:
    """The invariant of wire/: a value or WireError, and never an answer to a response."""
    outcome(lambda: parse_query(data))
    outcome(lambda: read_frame(data))
    if len(data) >= 3 and data[2] & 0x80:
        assert refusal(data).reply == b""


@given(st.data())
def test_what_is_accepted_dnspython_reads_the_same(data: st.DataObject) -> None:
    """Differential on changed queries: whatever passes here is one question to the other reader too."""
    start = data.draw(st.sampled_from([PLAIN, WITH_EDNS]))
    changed = bytearray(start)
    for _ in range(data.draw(st.integers(0, 4))):
        changed[data.draw(st.integers(2, len(changed) - 1))] = data.draw(st.integers(0, 255))
    found = outcome(lambda: parse_query(bytes(changed)))
    if isinstance(found, Query):
        other = dns.message.from_wire(bytes(changed))
        assert [question.name.labels[:-1] for question in other.question] == [found.labels]
        assert int(other.question[0].rdtype) == found.kind
        assert other.edns == (found.edns.version if found.edns else -1)


def test_frames_are_whole_or_not_there() -> None:
    """RFC 7766: two messages in one segment, or one byte at a time, are the same."""
    stream = framed(PLAIN) + framed(WITH_EDNS)
    for pieces in ([stream], bytewise(stream)):
        buf, got = bytearray(), []
        for piece in pieces:
            buf += piece
            while (found := read_frame(buf)) is not None:
                got.append(found[0])
                del buf[: found[1]]
        assert got == [PLAIN, WITH_EDNS]
        assert not buf


@pytest.mark.parametrize(
    ("size", "good"), [(0, False), (11, False), (12, True), (MAX_QUERY, True), (MAX_QUERY + 1, False), (65535, False)]
)
def test_a_frame_is_bounded_before_it_arrives(size: int, good: bool) -> None:
    """Nothing is collected for a length that cannot be a query."""
    found = outcome(lambda: read_frame(size.to_bytes(2, "big")))
    assert found is (None if good else Reason.BAD_DNS)


def test_types_have_their_numbers() -> None:
    """IANA's registry, as dnspython has it."""
    assert (A, AAAA) == (dns.rdatatype.A, dns.rdatatype.AAAA)
