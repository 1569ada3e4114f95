"""The classes of addresses that admission tells apart (SPEC section 2)."""

from __future__ import annotations

from tidegate.model.closed import Closed
from tidegate.model.value import Value


class AddressClass(Closed):
    """What an address is to this machine. The table of ranges is in addresses/."""

    PUBLIC = "public"
    PRIVATE = "private"
    OWN = "own"
    NEVER = "never"


class Admission(Closed):
    """What admits a class of addresses: the settings `private` and `own` of a policy (ADR-2)."""

    NEVER = "never"
    EXACT_HOST = "exact-host"
    EXACT_HOST_PORT = "exact-host-port"


class Modes(Value):
    """What of a policy admission needs after resolving: both modes, and the ports that stay closed on this machine.

    `locked` says that a command-line `--allow` would change nothing, so a refusal does not offer it.
    """

    private: Admission = Admission.EXACT_HOST_PORT
    own: Admission = Admission.EXACT_HOST_PORT
    protected_ports: frozenset[int] = frozenset()
    locked: bool = False
