"""What admission has to know of the machine it runs on, as a value. Who fills it in reads interfaces; this does not."""

from __future__ import annotations

from tidegate.model.value import Value


class Surroundings(Value):
    """The machine a task runs on, at one moment.

    `own` are the packed addresses (4 or 16 bytes) of its interfaces and of what its hostname resolves to; loopback
    needs no entry. `protected_ports` are tidegate's own ports on it, and what else no task may reach here (ADR-1).
    `names` are its canonical host names, used where names are not resolved here (ADR-5); `localhost` needs no entry.
    """

    own: frozenset[bytes] = frozenset()
    protected_ports: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()


NOWHERE = Surroundings()
