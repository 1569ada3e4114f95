"""What a hold and the gate both know of a task's network: where things are inside, and what is handed over (HLD-6).

The gate gives names addresses of its synthetic ranges, but for the first 256 of each, which are the hold's. These are
they; a test holds them against the gate's own numbers. The task's own address is what makes AI_ADDRCONFIG find a
family, and what it reaches itself by. What listens for the gate does so on an address of its own, at the proxy's port,
which is taken on 127.0.0.1 anyway, and at port 53, which a task has no right to: capture takes no port from the task's
servers.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_pton

from tidegate.model.value import Value

OWN4, OWN6 = "198.18.0.1", "fd74:6467:6174:6500::1"
"""The address of `lo`."""
GATE4, GATE6 = "198.18.0.2", "fd74:6467:6174:6500::2"
"""Captured connections arrive here, and look-ups; it is what resolv.conf names."""
DNS = 53

OFF, ON, PORTS = "off", "on", "ports"
"""How connections are captured: capture.py says what they mean."""


# What a descriptor is for the gate.
PROXY = "proxy"  # where programs that know of proxies connect
REDIRECTED = "redirected"  # the kernel knows where a connection was going
ADDRESSED = "addressed"  # the connection's own address here is where it was going
DATAGRAMS, STREAMS = "datagrams", "streams"  # of the resolver
MOULD = "mould"  # unbound: sockets of the task's network are made from these (gate/inward.py)
TURNED_AWAY = "turned-away"  # netlink: what failed at once


class TaskSockets(Value):
    """What was made inside a task's network for its gate: descriptors, and for each its role."""

    roles: tuple[str, ...]
    descriptors: tuple[int, ...]

    def of(self, role: str) -> tuple[int, ...]:
        """Return the descriptors of a role."""
        return tuple(fd for one, fd in zip(self.roles, self.descriptors, strict=True) if one == role)


def packed(address: str) -> bytes:
    """The bytes of an address."""
    return inet_pton(AF_INET6 if ":" in address else AF_INET, address)
