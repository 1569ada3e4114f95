"""Where a captured connection was going, as the name of the unix socket that carries it on (HLD-4, HLD-6).

A relay beside a task takes the connection and makes another one to a socket of the gate's. Before it connects, it binds
its end to an abstract name that says the first destination, so whoever accepts asks for the peer's name (unix(7)), and
every byte of the connection is the task's. Such a name is of the relay's network namespace, and good for one
connection: what stands behind the last stroke is chance.

Invariant: any bytes give a place or ValueError. What it does not do: it trusts nobody; who may connect is the socket's.
"""

from __future__ import annotations

PREFIX = b"\0tidegate-caught/"
MOST = 107  # bytes of a name: sun_path without one


def name_of(packed: bytes, port: int, chance: bytes) -> bytes:
    """The name for a destination: 4 or 16 bytes of address, and a port."""
    return PREFIX + b"%b/%d/%b" % (packed.hex().encode(), port, chance.hex().encode())


def place_of(name: object) -> tuple[bytes, int]:
    """The address and the port that a peer's name says.

    Raises:
        ValueError: when it says none.
    """
    if not isinstance(name, bytes) or not name.startswith(PREFIX) or len(name) > MOST:
        raise ValueError("no name of a captured connection")
    address, port, _chance = name[len(PREFIX) :].decode("ascii").split("/")
    packed = bytes.fromhex(address)
    if len(packed) not in (4, 16) or address != packed.hex() or not (port.isascii() and port.isdigit()):
        raise ValueError("no address and port")
    if int(port) > 0xFFFF or str(int(port)) != port:
        raise ValueError("no port")
    return packed, int(port)
