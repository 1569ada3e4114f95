"""IPv4 addresses that travel inside IPv6 ones (ADR-3).

A translator, a tunnel or the kernel itself may turn such an address into a connection to the IPv4 address, so both are
judged. One function; it returns every IPv4 address that could be meant, and none for an IPv4 address.

| form | where the IPv4 address is | source |
|---|---|---|
| `::ffff:0:0/96` mapped, `::ffff:0:0:0/96` translated | last 4 bytes | RFC 4291 section 2.5.5.2, RFC 2765 |
| `::/96` compatible | last 4 bytes, but for `::` and `::1` | RFC 4291 section 2.5.5.1 |
| `2002::/16` 6to4 | bytes 2-5 | RFC 3056 |
| `2001::/32` Teredo | bytes 4-7 (server), last 4 inverted (client) | RFC 4380 section 4 |
| any prefix, `0000:5efe` or `0200:5efe` ISATAP | last 4 bytes | RFC 5214 section 6.1 |
| `64:ff9b::/96` NAT64 | last 4 bytes | RFC 6052 section 2.1 |
| `64:ff9b:1::/48` local NAT64 | last 4 bytes, or around byte 8 for shorter prefixes | RFC 8215, RFC 6052 section 2.2 |

What it does not do: NAT64 under a network's own prefix cannot be told from an ordinary address.
"""

from __future__ import annotations

_ZERO_96 = bytes(12)
_MAPPED = bytes(10) + b"\xff\xff"
_TRANSLATED = bytes(8) + b"\xff\xff\x00\x00"
_SIX_TO_FOUR = b"\x20\x02"
_TEREDO = b"\x20\x01\x00\x00"
_ISATAP = b"\x00\x5e\xfe"
NAT64_WELL_KNOWN = b"\x00\x64\xff\x9b" + bytes(8)
_NAT64_LOCAL = b"\x00\x64\xff\x9b\x00\x01"


def embedded(packed: bytes) -> tuple[bytes, ...]:
    """Return the IPv4 addresses (4 bytes each) inside a packed address; most addresses have none."""
    if len(packed) != 16:
        return ()
    head = packed[:12]
    tail = packed[12:]
    if head == _ZERO_96:
        return () if tail in {b"\x00\x00\x00\x00", b"\x00\x00\x00\x01"} else (tail,)
    if head in {_MAPPED, _TRANSLATED, NAT64_WELL_KNOWN}:
        return (tail,)
    found: tuple[bytes, ...] = ()
    if packed[:2] == _SIX_TO_FOUR:
        found = (packed[2:6],)
    elif packed[:4] == _TEREDO:
        found = (packed[4:8], bytes(byte ^ 0xFF for byte in tail))
    elif packed[:6] == _NAT64_LOCAL:
        found = _local_nat64(packed)
    if packed[9:12] == _ISATAP and packed[8] & 0xFC == 0:
        found += (tail,)
    return found


def _local_nat64(packed: bytes) -> tuple[bytes, ...]:
    # The length of the prefix in use is not known: 48, 56, 64 and 96 bits are read (byte 8 is left out, RFC 6052
    # section 2.2). What comes out as 0.x.y.z is the padding of another layout, no address.
    layouts = (
        packed[6:8] + packed[9:11],
        packed[7:8] + packed[9:12],
        packed[9:13],
        packed[12:],
    )
    return tuple(address for address in layouts if address[0])
