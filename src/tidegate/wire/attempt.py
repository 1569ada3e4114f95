"""A packet that a hold turned away, as the kernel's logs tell of it (JRN-3). Pure."""

from __future__ import annotations

from tidegate.model.value import Value

NOBODY = -1
TCP, UDP, ICMP, OTHER = "tcp", "udp", "icmp", "other"
NAMES = {1: ICMP, 6: TCP, 17: UDP, 58: ICMP}
PORTS = (TCP, UDP)


class Attempt(Value):
    """One attempt around the gate. `address` is packed; the port is 0 where there is none, or it was not copied.

    `uid` is the user that owns the socket it came from, NOBODY where the kernel names none. `prefix` is the word that
    the rule which logged it puts before.
    """

    protocol: str
    address: bytes
    port: int
    uid: int = NOBODY
    prefix: str = ""
