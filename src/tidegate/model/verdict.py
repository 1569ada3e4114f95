"""What a policy can say of a destination, and when it says it."""

from __future__ import annotations

from enum import Enum

# Members are one each, and journals count by them: Enum's own hash is of their names, and a call.
_hash = object.__hash__


class Verdict(Enum):
    """The answer of a policy. Asking is not a weak allow: nothing moves until a person has answered."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    __hash__ = _hash


class Phase(Enum):
    """What a task is doing: its one set-up command, or everything else (POL-7)."""

    INSTALL = "install"
    RUNTIME = "runtime"

    __hash__ = _hash


class How(Enum):
    """How a connection went, as the journal and the `net:` lines say it (JRN-1)."""

    TUNNELED = "tunneled"
    INSPECTED = "inspected"
    FORWARDED = "forwarded"
    REFUSED = "refused"
    CAPTURED = "captured"
    PUBLISHED = "published"  # inward: from this machine to a server of the task (HLD-10)

    __hash__ = _hash
