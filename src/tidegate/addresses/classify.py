"""What an address is to this machine: public, private, own or never reached (ADR-1, ADR-2, ADR-3).

An address and every IPv4 address inside it are looked up in the table, and the strictest class counts. Results of the
pure part are kept, because a task meets few addresses many times; the cache is bounded and holds nothing of a task.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_pton

from tidegate.addresses.embedded import NAT64_WELL_KNOWN, embedded
from tidegate.addresses.table import NEVER, OWN, PRIVATE
from tidegate.model.address_class import AddressClass

_CACHE_SIZE = 4096

_STRICTNESS = {AddressClass.PUBLIC: 0, AddressClass.PRIVATE: 1, AddressClass.OWN: 2, AddressClass.NEVER: 3}


def classify(packed: bytes, own: frozenset[bytes] = frozenset()) -> AddressClass:
    """Return the class of a packed address (4 or 16 bytes); `own` are the packed addresses of this machine."""
    address_class, forms = judged(packed)
    if address_class is not AddressClass.NEVER and not own.isdisjoint(forms):
        return AddressClass.OWN
    return address_class


def judged(packed: bytes) -> tuple[AddressClass, tuple[bytes, ...]]:
    """Return the class by the table alone, and the address with all IPv4 addresses inside it."""
    found = _cache.get(packed)
    if found is None:
        forms = (packed, *embedded(packed))
        found = (max((_by_table(form) for form in forms), key=_STRICTNESS.__getitem__), forms)
        if len(_cache) >= _CACHE_SIZE:
            _cache.clear()
        _cache[packed] = found
    return found


_cache: dict[bytes, tuple[AddressClass, tuple[bytes, ...]]] = {}


def _by_table(packed: bytes) -> AddressClass:
    if packed[:12] == NAT64_WELL_KNOWN:
        return AddressClass.PUBLIC  # the address inside it decides
    number = int.from_bytes(packed, "big")
    for mask, network, address_class in _RANGES_4 if len(packed) == 4 else _RANGES_6:
        if number & mask == network:
            return address_class
    return AddressClass.PUBLIC


def _ranges(bits: int) -> tuple[tuple[int, int, AddressClass], ...]:
    """Return (mask, network, class) for one family, strictest class first."""
    found = []
    classes = ((AddressClass.NEVER, NEVER), (AddressClass.OWN, OWN), (AddressClass.PRIVATE, PRIVATE))
    for address_class, texts in classes:
        for text in texts:
            address, _, length = text.partition("/")
            if (":" in address) == (bits == 128):
                network = int.from_bytes(inet_pton(AF_INET6 if bits == 128 else AF_INET, address), "big")
                mask = ((1 << int(length)) - 1) << (bits - int(length))
                found.append((mask, network, address_class))
    return tuple(found)


_RANGES_4 = _ranges(32)
_RANGES_6 = _ranges(128)
