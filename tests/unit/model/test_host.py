"""tidegate.model.host."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.host import Host, HostError, bracketed, canonical_host
from tidegate.policy.rules import RuleError, parse_rule


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("example.com", "example.com"),
        ("EXAMPLE.com.", "example.com"),
        (b"EXAMPLE.COM", "example.com"),
        ("_dmarc.a.test", "_dmarc.a.test"),
        ("a", "a"),
        ("a-.test", "a-.test"),
        ("1.2.3.4.test", "1.2.3.4.test"),
        ("0x7f.test", "0x7f.test"),
        ("1a.2b", "1a.2b"),
        ("a.0xg", "a.0xg"),
        ("x" * 63 + ".test", "x" * 63 + ".test"),
        (".".join(["a" * 49] * 5) + ".abc", ".".join(["a" * 49] * 5) + ".abc"),
    ],
)
def test_names_become_lower_case_without_the_final_dot(raw: str | bytes, text: str) -> None:
    """POL-3, B02: one spelling of each name, whatever case or final dot a client sends."""
    assert canonical_host(raw) == Host(text)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("1.2.3.4", "1.2.3.4"),
        ("0.0.0.0", "0.0.0.0"),
        ("255.255.255.255", "255.255.255.255"),
        ("[::1]", "::1"),
        ("[2600:BEEF:0:0::1]", "2600:beef::1"),
        ("[::ffff:1.2.3.4]", "::ffff:1.2.3.4"),
    ],
)
def test_literals_are_known_as_literals(raw: str, text: str) -> None:
    """POL-3, B26: a canonical dotted quad or one pair of brackets; the text is RFC 5952's."""
    host = canonical_host(raw)
    assert host.text == text
    assert host.is_literal
    assert host.bracketed == (f"[{text}]" if ":" in text else text)
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    assert host.packed == socket.inet_pton(family, text)


BAD = [
    "", ".", "..", "a..b", "example.com..", ".a", "a b", "a\tb", "a\x00b", "127.0.0.1\x00.a.test", "a\x7f", "a%2eb",
    "a%00b", "a/b", "a@b", "a:1", "::1", "2001:db8::1", "x" * 64 + ".test", "a." * 127 + "a", "a" * 254,
    "127.1", "0177.0.0.1", "010.0.0.1", "2130706433", "0", "0x7f000001", "0x7f.1", "1.2.3", "1.2.3.4.5", "256.1.1.1",
    "1.2.3.04", "1.2.3.0x4", "a.1", "a.0x1f", "a.0x", "1.2.3.4..", "127.0.0.1.:",
    "[::1", "::1]", "[[::1]]", "[]", "[1.2.3.4]", "[fe80::1%25lo]", "[fe80::1%lo]", "[::1]x", "[::g]", "[::1\x00]",
    "bücher.test", "127。0。0。1", "①②⑦.0.0.1", "a\u202eb", "\uff41.test", "é", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("raw", BAD, ids=ascii)
def test_everything_else_is_malformed(raw: str) -> None:
    """POL-3, B04, B05, B10, B25, B26, B44: malformed before any rule, look-up or question."""
    with pytest.raises(HostError) as raised:
        canonical_host(raw)
    assert raised.value.what.isprintable()


def test_a_quad_with_one_final_dot_is_the_quad() -> None:
    """B02: `127.0.0.1.` is 127.0.0.1 and judged as that, never a name to resolve."""
    assert canonical_host("127.0.0.1.").packed == bytes((127, 0, 0, 1))


@given(st.binary(max_size=300))
def test_any_bytes_are_a_host_or_a_host_error(raw: bytes) -> None:
    """POL-3: total: no other exception, and the result is canonical already."""
    try:
        host = canonical_host(raw)
    except HostError:
        return
    assert canonical_host(host.bracketed) == host
    assert set(host.text) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-:")


@given(st.text(alphabet="0123456789abcdefx.", max_size=24))
def test_what_the_c_resolver_reads_as_a_number_is_never_a_name(text: str) -> None:
    """B25: whatever inet_aton accepts is a canonical literal or malformed, never handed to a resolver as a name."""
    try:
        packed = socket.inet_aton(text)
    except OSError:
        return
    try:
        host = canonical_host(text)
    except HostError:
        return
    assert host.packed == packed


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("a.test", True),
        ("a-b.test", True),
        ("_x.test", True),
        ("1.2.3.4", True),
        ("[::1]", True),
        ("-a.test", False),
        ("a-.test", False),
        ("a.-b.test", False),
        ("a.test-", False),
    ],
)
def test_which_hosts_fit_a_rule(text: str, fits: bool) -> None:
    """POL-2: a host that no rule can name is known as such, so that no refusal offers one; the others parse."""
    host = canonical_host(text)
    assert host.fits_a_rule is fits
    if fits:
        assert parse_rule(host.bracketed).key == host.text
    else:
        with pytest.raises(RuleError):
            parse_rule(host.bracketed)


def test_a_place_is_read_one_way() -> None:
    """JRN-3: `name:port`, and an IPv6 address in brackets: its own colons are no port's."""
    assert [f"{bracketed(host)}:{port}" for host, port in (("a.test", 443), ("1.2.3.4", 1), ("2600::1", 80))] == [
        "a.test:443",
        "1.2.3.4:1",
        "[2600::1]:80",
    ]
