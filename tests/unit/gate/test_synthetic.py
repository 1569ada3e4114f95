"""Proves the mapping of names to synthetic addresses and back (HLD-6)."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.gate.synthetic import (
    DEFAULT_RANGES,
    FIRST,
    IPV4,
    IPV6,
    RESERVED,
    SECOND,
    Ranges,
    Synthetic,
    range_of,
)
from tidegate.model.host import Host


def text(packed: bytes | None) -> str:
    """Return an address as text."""
    assert packed is not None
    return str(ipaddress.ip_address(packed))


def test_a_name_keeps_its_addresses() -> None:
    """HLD-6: the same name has the same two addresses, whatever else is looked up in between."""
    names = Synthetic()
    a = names.address(Host("a.test"), ipv6=False)
    assert text(a) == "198.18.1.1"
    assert text(names.address(Host("b.test"), ipv6=True)) == "fd74:6467:6174:6500::102"
    for number in range(1000):
        names.address(Host(f"h{number}.test"), ipv6=False)
    assert names.address(Host("a.test"), ipv6=False) == a
    assert text(names.address(Host("a.test"), ipv6=True)) == "fd74:6467:6174:6500::101"
    assert text(names.address(Host("b.test"), ipv6=False)) == "198.18.1.2"
    assert len(names) == 1002


def test_every_address_leads_back_to_its_one_name() -> None:
    """HLD-6: over more than two blocks of last bytes, in both families, no address twice, none ending in 0 or 255."""
    names = Synthetic()
    seen: set[bytes] = set()
    for number in range(600):
        host = Host(f"h{number}.test")
        for ipv6 in (False, True):
            packed = names.address(host, ipv6=ipv6)
            assert packed is not None
            assert packed not in seen
            seen.add(packed)
            assert names.name(packed) == host
            assert packed[-1] not in (0, 255)
            assert DEFAULT_RANGES.hold(packed)
            assert ipaddress.ip_address(packed) in ipaddress.ip_network(IPV6 if ipv6 else IPV4)


@pytest.mark.parametrize(
    "address",
    ["198.18.0.1", "198.18.0.2", "198.18.1.0", "198.18.1.3", "198.18.1.255", "198.18.2.1", "198.17.255.255",
     "198.20.0.0", "1.2.3.4", "fd74:6467:6174:6500::1", "fd74:6467:6174:6500::103", "fd74:6467:6174:6501::101",
     "::101", "::ffff:198.18.1.1"],
)  # fmt: skip
def test_an_address_that_was_not_given_leads_nowhere(address: str) -> None:
    """Neighbours of the two that were: reserved ones, the next one, and the same offset elsewhere."""
    names = Synthetic()
    names.address(Host("a.test"), ipv6=False)
    names.address(Host("b.test"), ipv6=False)
    assert names.name(ipaddress.ip_address(address).packed) is None


def test_when_all_are_given_new_names_have_none() -> None:
    """HLD-6: a bounded number; those that have an address keep it, none is taken from anyone."""
    names = Synthetic(most=3)
    given_ = [names.address(Host(f"h{number}"), ipv6=False) for number in range(4)]
    assert given_[3] is None
    assert None not in given_[:3]
    assert names.address(Host("h3"), ipv6=True) is None
    assert names.address(Host("h0"), ipv6=False) == given_[0]
    assert names.address(Host("h2"), ipv6=True) is not None


def test_a_small_range_bounds_the_names_too() -> None:
    """1,024 addresses of which 256 are the hold's: three blocks of 254."""
    names = Synthetic(Ranges(range_of("10.1.4.0/22"), DEFAULT_RANGES.ipv6))
    hosts = [Host(f"h{number}") for number in range(763)]
    addresses = [names.address(host, ipv6=False) for host in hosts]
    assert addresses[762] is None
    assert text(addresses[0]) == "10.1.5.1"
    assert text(addresses[761]) == "10.1.7.254"
    assert [names.name(packed) for packed in addresses if packed] == hosts[:762]


def test_the_hold_has_the_first_ones() -> None:
    """The addresses for `lo` and for a resolver are never a name's."""
    assert text(DEFAULT_RANGES.ipv4.at(FIRST)) == "198.18.0.1"
    assert text(DEFAULT_RANGES.ipv6.at(SECOND)) == "fd74:6467:6174:6500::2"
    assert max(FIRST, SECOND) < RESERVED


@pytest.mark.parametrize(
    "good", ["198.18.0.0/15", "10.0.0.0/8", "10.1.4.0/22", "240.0.0.0/8", "fd00::/64", "fd12:3456::/48", "fd00::/118"]
)
def test_networks_that_will_do(good: str) -> None:
    """The configurable range: private, and large enough."""
    found = range_of(good)
    network = ipaddress.ip_network(good)
    assert (found.network, found.bits, found.size) == (
        network.network_address.packed,
        network.prefixlen,
        network.num_addresses,
    )


@pytest.mark.parametrize(
    "bad",
    ["", "198.18.0.0", "198.18.0.0/", "/15", "198.18.0.1/15", "198.19.0.0/15", "198.18.0.0/33", "198.18.0.0/23",
     "10.0.0.0/7", "198.18.0.0/+15", "198.18.0.0/015", "1.2.0.0/16", "127.0.0.0/16", "169.254.0.0/16", "224.0.0.0/16",
     "0.0.0.0/8", "a.test/16", "fd00::/119", "fd00::1/64", "2600::/64", "fe80::/64", "::/64", "fd00::%lo/64",
     "198.18.0/15"],
)  # fmt: skip
def test_networks_that_will_not(bad: str) -> None:
    """Malformed, too small, public, or with a meaning of their own."""
    with pytest.raises(ValueError, match=r"network|prefix|range|addresses"):
        range_of(bad)


@given(st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16))
def test_only_the_range_holds(packed: bytes) -> None:
    """Compared with `ipaddress`."""
    address = ipaddress.ip_address(packed)
    networks = (ipaddress.ip_network(IPV4), ipaddress.ip_network(IPV6))
    assert DEFAULT_RANGES.hold(packed) is any(
        address in network for network in networks if network.version == address.version
    )
