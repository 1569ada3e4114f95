"""The classes of addresses that admission tells apart (SPEC section 2)."""

from __future__ import annotations

from enum import Enum


class AddressClass(Enum):
    """What an address is to this machine. The table of ranges is in addresses/."""

    PUBLIC = "public"
    PRIVATE = "private"
    OWN = "own"
    NEVER = "never"


class Admission(Enum):
    """What admits a class of addresses: the settings `private` and `own` of a policy (ADR-2)."""

    NEVER = "never"
    EXACT_HOST = "exact-host"
    EXACT_HOST_PORT = "exact-host-port"
