"""IPv4 addresses inside IPv6 ones."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.addresses.embedded import embedded


def inside(text: str) -> list[str]:
    """Return the IPv4 addresses inside an address, as text."""
    return [str(ipaddress.IPv4Address(packed)) for packed in embedded(ipaddress.ip_address(text).packed)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("::ffff:10.0.0.1", ["10.0.0.1"]),  # mapped
        ("::fffe:10.0.0.1", []),
        ("::ffff:0:10.0.0.1", ["10.0.0.1"]),  # translated
        ("::10.0.0.1", ["10.0.0.1"]),  # compatible
        ("::", []),
        ("::1", []),
        ("::2", ["0.0.0.2"]),
        ("0:0:0:0:0:1:10.0.0.1", []),
        ("2002:a00:1::", ["10.0.0.1"]),  # 6to4
        ("2002:a00:1:1:2:3:4:5", ["10.0.0.1"]),
        ("2003:a00:1::", []),
        ("2001:0:102:304::f5ff:fffe", ["1.2.3.4", "10.0.0.1"]),  # Teredo: server, client inverted
        ("2001:1:102:304::f5ff:fffe", []),
        ("2600:beef::5efe:a00:1", ["10.0.0.1"]),  # ISATAP
        ("2600:beef::200:5efe:a00:1", ["10.0.0.1"]),
        ("fe80::5efe:a00:1", ["10.0.0.1"]),
        ("2600:beef::400:5efe:a00:1", []),
        ("2600:beef::5eff:a00:1", []),
        ("64:ff9b::a00:1", ["10.0.0.1"]),  # NAT64
        ("64:ff9b::1:a00:1", []),
        ("64:ff9b:1::a00:1", ["10.0.0.1"]),  # local NAT64, 96 bits
        ("64:ff9b:1:a00:0:100::", ["10.0.0.1"]),  # local NAT64, 48 bits: 10.0 | u | 0.1
        ("64:ff9b:2::a00:1", []),
        ("2600:beef::1", []),
        ("10.0.0.1", []),
    ],
)
def test_every_form_and_its_neighbour(text: str, expected: list[str]) -> None:
    """Each form of ADR-3 gives up its IPv4 address, and an address just outside the form has none (B17, B19)."""
    assert inside(text) == expected


@given(st.binary(min_size=4, max_size=4))
def test_agrees_with_the_standard_library(packed: bytes) -> None:
    """Mapped and 6to4 addresses hold what `ipaddress` finds in them."""
    mapped = ipaddress.IPv6Address(bytes(10) + b"\xff\xff" + packed)
    assert embedded(mapped.packed) == (mapped.ipv4_mapped.packed if mapped.ipv4_mapped else b"",)
    six_to_four = ipaddress.IPv6Address(b"\x20\x02" + packed + bytes(10))
    assert embedded(six_to_four.packed) == (six_to_four.sixtofour.packed if six_to_four.sixtofour else b"",)


@given(st.binary(min_size=4, max_size=4), st.binary(min_size=4, max_size=4))
def test_teredo_agrees_with_the_standard_library(server: bytes, client: bytes) -> None:
    """Both addresses of Teredo are found."""
    address = ipaddress.IPv6Address(b"\x20\x01\x00\x00" + server + bytes(4) + client)
    teredo = address.teredo
    assert teredo is not None
    assert set(embedded(address.packed)) >= {teredo[0].packed, teredo[1].packed}


@given(st.binary(min_size=16, max_size=16))
def test_always_ipv4(packed: bytes) -> None:
    """Whatever comes in, what comes out are four bytes each."""
    assert all(len(address) == 4 for address in embedded(packed))
