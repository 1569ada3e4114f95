"""Addresses that stand for names: what a task's resolver answers, and what a captured connection is turned back from.

Rules of the file (HLD-6):

* An address belongs to one name for the life of the task and is never given to another. So nothing is ever forgotten,
  and there is a bound: past it a new name gets none, while names that have one keep it.
* The n-th name has the n-th address in both families. Last bytes 0 and 255 are left out, because old software takes
  them for a network and for its broadcast address.
* The first 256 addresses are never given to a name: they are the hold's, for `lo` (FIRST) and a resolver (SECOND).

Why these ranges. 198.18.0.0/15 is for benchmarks of network devices (RFC 2544): not globally reachable, in no home or
office network, and large. 240.0.0.0/4 is refused by too much software, 100.64.0.0/10 is used by carriers and overlay
networks, 10/8, 172.16/12 and 192.168/16 by everybody else. The IPv6 range is a ULA /64 (RFC 4193), on no link. Which
family a client prefers is its own affair (glibc IPv6 by RFC 3484, others IPv4 by RFC 6724): both lead to the same name.
Both ranges can be changed, for a network that really uses them; inside the task they hide what is there.

Pure: no sockets, no clock.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_pton

from tidegate.addresses.classify import classify
from tidegate.model.address_class import AddressClass
from tidegate.model.destination import PortError, parse_port
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.model.host import Host

IPV4 = "198.18.0.0/15"
IPV6 = "fd74:6467:6174:6500::/64"  # "tdgate" in ASCII, a prefix nobody drew by lot
MOST = 16384  # names of one task; a browser's day. About 6 MiB when all are as long as names can be
RESERVED = 256
FIRST = 1  # the hold gives it to `lo`, so that AI_ADDRCONFIG finds a family
SECOND = 2  # free for a resolver's address
_BLOCK = 254  # usable last bytes of 256


class Range(Value):
    """One family's range: the packed network and the length of its prefix in bits."""

    network: bytes
    bits: int

    @property
    def size(self) -> int:
        """How many addresses it has."""
        return 1 << (len(self.network) * 8 - self.bits)

    def at(self, offset: int) -> bytes:
        """Return the packed address at an offset from the network's."""
        return (int.from_bytes(self.network, "big") + offset).to_bytes(len(self.network), "big")

    def offset(self, packed: bytes) -> int:
        """Return where an address stands in the range, -1 when it is outside."""
        if len(packed) != len(self.network):
            return -1
        offset = int.from_bytes(packed, "big") - int.from_bytes(self.network, "big")
        return offset if 0 <= offset < self.size else -1


def range_of(text: str) -> Range:
    """Return the range that `address/bits` writes.

    Raises:
        ValueError: when it is no network, is too small, or holds addresses that mean something else.
    """
    address, slash, bits_text = text.partition("/")
    family = AF_INET6 if ":" in address else AF_INET
    try:
        network = inet_pton(family, address)
        bits = parse_port(bits_text)  # a plain number without sign or leading zero
    except (OSError, ValueError, PortError):
        raise ValueError(f"{text!r} is no network; write it like {IPV4} or {IPV6}") from None
    width = len(network) * 8
    if not slash or not 8 <= bits <= width - 10:
        raise ValueError(f"{text!r} has too many or too few addresses; its prefix has 8 to {width - 10} bits")
    found = Range(network, bits)
    if int.from_bytes(network, "big") % found.size:
        raise ValueError(f"{text!r} has bits set behind its prefix")
    for packed in (network, found.at(found.size - 1)):
        if classify(packed) is not AddressClass.PRIVATE:
            raise ValueError(f"{text!r} holds addresses that are public or have a meaning; use a private range")
    return found


class Ranges(Value):
    """Both ranges of a task."""

    ipv4: Range
    ipv6: Range

    def hold(self, packed: bytes) -> bool:
        """Whether an address lies in one of them."""
        return (self.ipv4 if len(packed) == 4 else self.ipv6).offset(packed) >= 0


DEFAULT_RANGES = Ranges(range_of(IPV4), range_of(IPV6))


class Synthetic:
    """The names of one task and their addresses."""

    __slots__ = ("_most", "_names", "_numbers", "ranges")

    def __init__(self, ranges: Ranges = DEFAULT_RANGES, most: int = MOST) -> None:
        self.ranges = ranges
        self._names: list[Host] = []
        self._numbers: dict[str, int] = {}
        smaller = min(ranges.ipv4.size, ranges.ipv6.size)
        self._most = min(most, (smaller - RESERVED) // 256 * _BLOCK)

    def __len__(self) -> int:
        return len(self._names)

    def address(self, host: Host, *, ipv6: bool) -> bytes | None:
        """Return the packed address of a canonical name, a new one where it has none; None when all are given."""
        number = self._numbers.get(host.text)
        if number is None:
            number = len(self._names)
            if number >= self._most:
                return None
            self._names.append(host)
            self._numbers[host.text] = number
        block, last = divmod(number, _BLOCK)
        return (self.ranges.ipv6 if ipv6 else self.ranges.ipv4).at(RESERVED + block * 256 + 1 + last)

    def name(self, packed: bytes) -> Host | None:
        """Return the name that an address was given to, None where it was given to none."""
        offset = (self.ranges.ipv4 if len(packed) == 4 else self.ranges.ipv6).offset(packed)
        if offset < RESERVED:
            return None
        block, last = divmod(offset - RESERVED, 256)
        number = block * _BLOCK + last - 1
        return self._names[number] if 1 <= last <= _BLOCK and number < len(self._names) else None
