"""The table of special addresses: each range with its neighbours just outside, and against the standard library."""

from __future__ import annotations

import ipaddress

import pytest

from tidegate.addresses.classify import classify
from tidegate.addresses.table import NEVER, OWN, PRIVATE
from tidegate.model.address_class import AddressClass

PUBLIC = AddressClass.PUBLIC
STRICTNESS = [AddressClass.PUBLIC, AddressClass.PRIVATE, AddressClass.OWN, AddressClass.NEVER]

# (range, class of all of it, class just below, class just above); None where there is nothing below or above.
RANGES = [
    ("0.0.0.0/32", "never", None, "private"),
    ("0.0.0.1/32", "private", "never", "private"),
    ("0.255.255.255/32", "private", "private", "public"),
    ("10.0.0.0/8", "private", "public", "public"),
    ("100.64.0.0/10", "private", "public", "public"),
    ("100.100.100.200/32", "never", "private", "private"),
    ("127.0.0.0/8", "own", "public", "public"),
    ("168.63.129.16/32", "never", "public", "public"),
    ("169.254.0.0/16", "never", "public", "public"),
    ("172.16.0.0/12", "private", "public", "public"),
    ("192.0.0.192/32", "never", "private", "private"),
    ("192.0.0.0/26", "private", "public", "private"),
    ("192.0.0.255/32", "private", "private", "public"),
    ("192.0.2.0/24", "private", "public", "public"),
    ("192.88.99.0/24", "private", "public", "public"),
    ("192.168.0.0/16", "private", "public", "public"),
    ("198.18.0.0/15", "private", "public", "public"),
    ("198.51.100.0/24", "private", "public", "public"),
    ("203.0.113.0/24", "private", "public", "public"),
    ("224.0.0.0/4", "never", "public", "private"),
    ("240.0.0.0/5", "private", "never", "private"),
    ("255.255.255.254/32", "private", "private", "never"),
    ("255.255.255.255/32", "never", "private", None),
    ("::/128", "never", None, "own"),
    ("::1/128", "own", "never", "private"),
    ("64:ff9b:1::a00:1/128", "private", "private", "private"),
    ("100::/64", "private", "private", "private"),
    ("100:0:0:1::/64", "private", "private", "private"),
    ("1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", "private", "private", "public"),
    ("2000::/16", "public", "private", "never"),
    ("2001::/128", "never", "public", "never"),  # Teredo with the server 0.0.0.0
    ("2001:1::/32", "private", "never", "private"),
    ("2001:1ff::/32", "private", "private", "public"),
    ("2001:db8::/32", "private", "public", "public"),
    ("2002:102::/32", "private", "private", "private"),
    ("2002:ffff:ffff::/48", "never", "private", "public"),
    ("3fff::/20", "private", "public", "public"),
    ("4000::/16", "private", "public", "private"),
    ("5f00::/16", "private", "private", "private"),
    ("fc00::/8", "private", "private", "private"),
    ("fd00:42::42/128", "never", "private", "private"),
    ("fd00:c1::a9fe:a9fe/128", "never", "private", "private"),
    ("fd00:ec2::23/128", "never", "private", "private"),
    ("fd00:ec2::254/128", "never", "private", "private"),
    ("fd20:ce::254/128", "never", "private", "private"),
    ("fe80::/10", "never", "private", "private"),
    ("fec0::/10", "private", "never", "never"),
    ("ff00::/8", "never", "private", None),
]


def at(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """Return the class of an address by the table, as its word."""
    return classify(address.packed).value


@pytest.mark.parametrize(("text", "inside", "below", "above"), RANGES)
def test_ranges_and_their_neighbours(text: str, inside: str, below: str | None, above: str | None) -> None:
    """Both ends of each range have its class, and the addresses just outside theirs (ADR-1, ADR-2, B19)."""
    network = ipaddress.ip_network(text)
    assert at(network[0]) == inside
    assert at(network[-1]) == inside
    if below is not None:
        assert at(network[0] - 1) == below
    if above is not None:
        assert at(network[-1] + 1) == above


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("1.2.3.4", "public"),
        ("8.8.8.8", "public"),
        ("100.63.255.255", "public"),
        ("192.31.196.1", "public"),
        ("2600:beef::1", "public"),
        ("2a00:1450:4001:82b::2011", "public"),
        ("2620:4f:8000::1", "public"),
        ("fec0::1", "private"),
        ("::127.0.0.1", "own"),
    ],
)
def test_well_known_addresses(address: str, expected: str) -> None:
    """Addresses that everyone knows have the class that everyone expects."""
    assert at(ipaddress.ip_address(address)) == expected


@pytest.mark.parametrize("text", [*NEVER, *OWN, *PRIVATE])
def test_ranges_are_networks(text: str) -> None:
    """Each entry is a network with no bit set behind its length."""
    assert str(ipaddress.ip_network(text)) == text


def interesting() -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Return the ends and neighbours of every range the standard library or the table knows."""
    texts = [*NEVER, *OWN, *PRIVATE]
    for constants in (ipaddress._IPv4Constants, ipaddress._IPv6Constants):  # type: ignore[attr-defined]
        texts += [str(network) for network in constants._private_networks]
        texts += [str(getattr(constants, name)) for name in ("_linklocal_network", "_multicast_network")]
    ends = [end for text in texts for end in (ipaddress.ip_network(text)[0], ipaddress.ip_network(text)[-1])]
    return [end + offset for end in ends for offset in (-1, 0, 1) if 0 <= int(end) + offset < 2**end.max_prefixlen]


def test_never_looser_than_the_standard_library() -> None:
    """What `ipaddress` calls special is never public here, at the ends of every range that either knows (ADR-2)."""
    for address in interesting():
        special = (
            address.is_private
            or address.is_reserved
            or address.is_loopback
            or address.is_link_local
            or address.is_multicast
            or address.is_unspecified
        )
        if address in ipaddress.ip_network("64:ff9b::/96"):  # `is_reserved`, but a way to public addresses (B20)
            continue
        if special:
            assert at(address) != "public", address
        if address.is_loopback:
            assert at(address) == "own", address
        if address.is_link_local or address.is_multicast or address.is_unspecified:
            assert at(address) == "never", address


def test_where_the_standard_library_is_looser() -> None:
    """These are `is_global` to Python 3.11, and are not public here (B17, B19)."""
    for text in ("::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1", "2002:7f00:1::", "192.0.0.192", "224.0.0.1",
                 "fec0::1", "::ffff:100.64.0.1"):  # fmt: skip
        assert at(ipaddress.ip_address(text)) != "public"
