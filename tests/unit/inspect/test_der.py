"""DER as far as it is made here, held to what the library reads."""

from __future__ import annotations

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from tidegate.inspect import der


@pytest.mark.parametrize(
    ("made", "octets"),
    [
        (der.integer(0), "020100"),
        (der.integer(127), "02017f"),
        (der.integer(128), "02020080"),  # positive: X.690 section 8.3.3
        (der.integer(256), "02020100"),
        (der.oid("1.2.840.10045.4.3.2"), "06082a8648ce3d040302"),
        (der.oid("2.5.29.30"), "0603551d1e"),
        (der.flags(5, 6), "03020106"),
        (der.flags(0), "03020780"),
        (der.flags(8), "0303070080"),
        (der.sequence(), "3000"),
        (der.head(der.OCTETS, 128), "048180"),
        (der.head(der.OCTETS, 65536), "0483010000"),
    ],
)
def test_elements(made: bytes, octets: str) -> None:
    """INS-1: each kind as X.690 has it, the shortest way."""
    assert made.hex() == octets


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=6))
def test_identifiers_are_those_of_the_library(numbers: list[int]) -> None:
    """INS-1: any object identifier has the octets that the library gives it."""
    text = ".".join(map(str, (1, 3, *numbers)))
    kind = x509.ObjectIdentifier(text)
    name = x509.Name([x509.NameAttribute(kind, "x", _validate=False)]).public_bytes()
    assert der.oid(text) in name


@given(st.binary(max_size=300), st.binary(max_size=3))
def test_what_is_whole(content: bytes, more: bytes) -> None:
    """INS-2: one sequence, with nothing behind it and nothing missing."""
    made = der.sequence(content)
    assert der.is_whole(made)
    assert der.is_whole(made + more) is (more == b"")
    assert not der.is_whole(made[:-1])
    assert not der.is_whole(b"")
