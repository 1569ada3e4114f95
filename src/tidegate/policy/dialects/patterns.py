"""Host patterns that several products share: wildcards of any depth, addresses, and which rules meet."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from tidegate.model.host import HostError, canonical_host, looks_numeric
from tidegate.model.rule import Shape
from tidegate.policy.rules import RuleError, read_rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NEVER, OWN, PRIVATE, OTHER = "never", "own", "private", "other"
"""Of a host part: an address that no rule reaches, this machine, a private address, or anything else (ADR-1, ADR-2)."""

# Cloud metadata outside of link-local (ADR-1); what counts is addresses/table.py, this only says so beforehand.
_METADATA = frozenset({"100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"})
_SHARED = ip_network("100.64.0.0/10")


def split(text: str) -> tuple[str, str]:
    """Return the host part of `host[:port]` as it stands, and `:port` or ''."""
    if text[:1] == "[":
        host, closed, rest = text.partition("]")
        return host + closed, rest
    host, colon, port = text.partition(":")
    return host, colon + port


def plain(host: str) -> str:
    """Return a host part in lower case, without the final dot."""
    return host.lower().removesuffix(".")


def below(text: str) -> str:
    """Return `*.name[:port]` as the rule of ours for any depth; another text as it is."""
    return f"*{text}" if text.startswith("*.") else text


def kind_of(host: str) -> str:
    """Say what a host part is that can lead to one place only: an address, or a name of this machine."""
    name = plain(host)
    if name == "localhost" or name.endswith(".localhost"):
        return OWN
    try:
        literal = canonical_host(name)
    except HostError:
        return OTHER
    if literal.packed is None:
        return OTHER
    address = ip_address(literal.packed)
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_loopback:
        return OWN
    never = address.is_link_local or address.is_multicast or address.is_unspecified or literal.text in _METADATA
    if never or literal.text == "255.255.255.255" or literal.text.startswith("0."):
        return NEVER
    return PRIVATE if address.is_private or address in _SHARED else OTHER


def is_address(host: str) -> bool:
    """Whether a host part is an address and no name, or would be read as one."""
    return host[:1] == "[" or looks_numeric(plain(host).rpartition(".")[2])


class Meeting:
    """Rules of ours without ports, exact or for any depth, asked whether another meets one: matches what it matches.

    How many they are does not count: what is looked up are names above a name.
    """

    def __init__(self, rules: Iterable[str]) -> None:
        self._exact: set[str] = set()
        self._deep: set[str] = set()
        self._above: set[str] = set()
        for text in rules:
            try:
                _, shape, key, _ = read_rule(text)
            except RuleError:
                continue  # an error of the file, which has been noted
            (self._deep if shape is Shape.DEEP else self._exact).add(key)
            self._above.update(_above(key))

    def meets(self, text: str) -> bool:
        """Whether a rule and one of them can match the same name or address."""
        _, shape, key, _ = read_rule(text)
        below_one = any(name in self._deep for name in _above(key))
        if shape is Shape.DEEP:
            return below_one or key in self._deep or key in self._above
        return below_one or key in self._exact


def _above(name: str) -> Iterator[str]:
    while name:
        name = name.partition(".")[2]
        if name:
            yield name
