"""What a hold and the gate both know of a task's network: where things are inside, and what is handed over (HLD-6).

The gate gives names addresses of its synthetic ranges, but for the first 256 of each, which are the hold's. These are
they; a test holds them against the gate's own numbers. The task's own address is what makes AI_ADDRCONFIG find a
family, and what it reaches itself by. What listens for the gate does so on an address of its own, at the proxy's port,
which is taken on 127.0.0.1 anyway, and at port 53, which a task has no right to: capture takes no port from the task's
servers. (In docker's containers every port may be had; there a server of a task has 53 on any other address.)
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_pton

from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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
MET = "met"  # stands for one service of this machine (HLD-10)
SSH_AGENT = "ssh-agent"  # a unix socket, at SSH_AUTH_SOCK
_OWNER = "owner-"
ANNOUNCED = "announced"  # where the watcher says who comes to the proxy, where others could (gate/announced.py)
TOOLS = "tools"  # our end of the channel to what answers for the task's tools (gate/tool_door.py); no hold makes it
TURNED_AWAY = "turned-away"  # netlink: what failed at once
CARRIED = "carried"  # a unix socket, whose peers' names say where a connection was going (model/caught.py)
TOLD = "told"  # a unix socket: a relay tells there what its log of TURNED_AWAY does

# Services of this machine that rules let a task reach, met at the same place of its own loopback. What stands for the
# n-th is on an address of its own at the gate's port, so that no port is taken from the task's servers; who connects to
# the place and finds none of those there is led to it (watcher.py).
MOST_MET = 32
_MAPPED = bytes(10) + b"\xff\xff"


def met_at(number: int) -> str:
    """The address of what stands for the n-th service, counted from 0."""
    return f"127.116.103.{number + 1}"


def detours(met: Sequence[tuple[str, int]], gate_port: int) -> dict[bytes, bytes]:
    """For each place of loopback (family, port and address as in a sockaddr) the sockaddr that it leads to instead.

    `met` are hosts (`localhost`, or a literal of loopback) and ports. A place that a literal names is that one's.
    """
    found: dict[bytes, bytes] = {}
    for number, (host, port) in sorted(enumerate(met), key=lambda one: one[1][0] == "localhost"):
        there = packed(met_at(number))
        to4 = _family(AF_INET) + gate_port.to_bytes(2, "big") + there + bytes(8)
        to6 = _family(AF_INET6) + gate_port.to_bytes(2, "big") + bytes(4) + _MAPPED + there + bytes(4)
        for address in ("127.0.0.1", "::1") if host == "localhost" else (host,):
            at, place = port.to_bytes(2, "big"), packed(address)
            if len(place) == 4:
                found.setdefault(_family(AF_INET) + at + place, to4)
                place = _MAPPED + place
            found.setdefault(_family(AF_INET6) + at + place, to6)
    return found


def place_of(sockaddr: bytes) -> bytes:
    """The key that `detours` has for the place that an address of connect(2) names."""
    return sockaddr[:8] if sockaddr[:2] == _family(AF_INET) else sockaddr[:4] + sockaddr[8:24]


def _family(number: int) -> bytes:
    return number.to_bytes(2, "little")  # on both machines that there are holds for


class TaskSockets(Value):
    """What was made inside a task's network for its gate: descriptors, and for each its role."""

    roles: tuple[str, ...]
    descriptors: tuple[int, ...]

    def of(self, role: str) -> tuple[int, ...]:
        """Return the descriptors of a role."""
        return tuple(fd for one, fd in zip(self.roles, self.descriptors, strict=True) if one == role)

    @property
    def owner(self) -> tuple[str, int]:
        """The role that says whose the clients must be where others can reach the sockets, and who that is; or ''."""
        for role in self.roles:
            if role.startswith(_OWNER):
                return role, int(role.removeprefix(_OWNER))
        return "", 0


def owner_role(uid: int) -> str:
    """The role of a descriptor that is there to say that every client must be this user's."""
    return f"{_OWNER}{uid}"


def packed(address: str) -> bytes:
    """The bytes of an address."""
    return inet_pton(AF_INET6 if ":" in address else AF_INET, address)
