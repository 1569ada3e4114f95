"""The class of an address, with what is inside it and what this machine owns."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.addresses import classify as module
from tidegate.addresses.classify import classify, judged
from tidegate.addresses.embedded import embedded
from tidegate.model.address_class import AddressClass

OWN = frozenset({bytes([1, 2, 3, 4]), ipaddress.IPv6Address("2600:beef::1").packed})
ORDER = [AddressClass.PUBLIC, AddressClass.PRIVATE, AddressClass.OWN, AddressClass.NEVER]


def of(text: str, own: frozenset[bytes] = frozenset()) -> str:
    """Return the class of an address as its word."""
    return classify(ipaddress.ip_address(text).packed, own).value


@pytest.mark.parametrize(
    ("form", "loopback", "metadata", "private", "public"),
    [
        ("::ffff:{}", "own", "never", "private", "private"),
        ("::{}", "own", "never", "private", "private"),
        ("64:ff9b::{}", "own", "never", "private", "public"),
        ("64:ff9b:1::{}", "own", "never", "private", "private"),
        ("2600:beef::5efe:{}", "own", "never", "private", "public"),
        ("2600:beef::200:5efe:{}", "own", "never", "private", "public"),
        ("fe80::5efe:{}", "never", "never", "never", "never"),
    ],
)
def test_judged_as_both(form: str, loopback: str, metadata: str, private: str, public: str) -> None:
    """An address with an IPv4 address inside is as strict as the stricter of the two (ADR-3, B17, B19, B20)."""
    assert of(form.format("127.0.0.1")) == loopback
    assert of(form.format("169.254.169.254")) == metadata
    assert of(form.format("10.0.0.1")) == private
    assert of(form.format("100.64.0.1")) == private
    assert of(form.format("1.2.3.4")) == public


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2002:7f00:1::", "own"),
        ("2002:a9fe:a9fe::", "never"),
        ("2002:102:304::", "private"),
        ("2001:0:102:304::80ff:fffe", "own"),  # Teredo with the client 127.0.0.1
        ("2001:0:a9fe:a9fe::fefd:fcfb", "never"),  # with a metadata address as its server
        ("2001:0:102:304::fefd:fcfb", "private"),
    ],
)
def test_tunnels(text: str, expected: str) -> None:
    """6to4 and Teredo are never public, and as strict as what they carry (ADR-2, ADR-3)."""
    assert of(text) == expected


def test_own_addresses() -> None:
    """An address of this machine's interfaces is own, also inside an IPv6 address; its neighbours are not (ADR-2)."""
    for text in ("1.2.3.4", "2600:beef::1", "64:ff9b::1.2.3.4", "::ffff:1.2.3.4", "2002:102:304::"):
        assert of(text, OWN) == "own"
    assert of("1.2.3.5", OWN) == "public"
    assert of("2600:beef::2", OWN) == "public"
    assert of("1.2.3.4") == "public"
    link_local = ipaddress.ip_address("169.254.1.1")
    assert classify(link_local.packed, frozenset({link_local.packed})) is AddressClass.NEVER


@given(st.one_of(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16)))
def test_never_looser_than_a_part(packed: bytes) -> None:
    """The class is never looser than that of any IPv4 address inside, and asking twice changes nothing."""
    strict = ORDER.index(classify(packed))
    assert all(ORDER.index(classify(part)) <= strict for part in embedded(packed))
    assert classify(packed) is ORDER[strict]
    assert judged(packed)[1][0] == packed


def test_the_cache_is_bounded() -> None:
    """A task that resolves to ever new addresses does not fill the memory."""
    for number in range(module._CACHE_SIZE + 10):
        classify(number.to_bytes(4, "big"))
    assert len(module._cache) <= module._CACHE_SIZE
