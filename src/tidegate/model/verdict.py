"""What a policy can say of a destination, and when it says it."""

from __future__ import annotations

from tidegate.model.closed import Closed


class Verdict(Closed):
    """The answer of a policy. Asking is not a weak allow: nothing moves until a person has answered."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Phase(Closed):
    """What a task is doing: its one set-up command, or everything else (POL-7)."""

    INSTALL = "install"
    RUNTIME = "runtime"


class How(Closed):
    """How a connection went, as the journal and the `net:` lines say it (JRN-1)."""

    TUNNELED = "tunneled"
    INSPECTED = "inspected"
    FORWARDED = "forwarded"
    REFUSED = "refused"
    CAPTURED = "captured"
    PUBLISHED = "published"  # inward: from this machine to a server of the task (HLD-10)
