"""What a refusal adds where a task asks the proxy for its own loopback (HLD-10, GAT-10).

By the proxy that is this machine's loopback, and a rule would let the task reach this machine. What the task itself
listens on is reached without the proxy, wherever its connections are captured; most clients know it by NO_PROXY, which
they read as three names and no ranges.
"""

from __future__ import annotations

from tidegate.addresses.classify import judged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.model.decision import Decision
    from tidegate.model.host import Host

NOTE = "by the proxy this is this machine: what the task itself serves is reached without it (NO_PROXY)"
_SIX = (bytes(15) + b"\1", bytes(16))  # ::1, and :: as clients connect to it
_FOUR = bytes(4)


def is_own(host: Host) -> bool:
    """Whether a program that asks for this host means its own loopback."""
    packed = host.packed
    if packed is None:
        return host.text == "localhost" or host.text.endswith(".localhost")
    fours = (form for form in judged(packed)[1] if len(form) == 4)
    return packed in _SIX or any(four[0] == 127 or four == _FOUR for four in fours)


def noted(decision: Decision) -> Decision:
    """Return a decision that says so, where it refuses or asks."""
    own = not decision.allowed and is_own(decision.destination.host)
    return decision.replace(note=NOTE) if own else decision
