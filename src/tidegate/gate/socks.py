"""The SOCKS5 side of a client's connection: greeting, then request (RFC 1928). Loaded when the first client speaks it.

Rules of the file: no authentication is asked for, because who the task is follows from its listener (GAT-2). Only
CONNECT is offered. What a client sends ahead stays in its buffer and goes into the tunnel.
"""

from __future__ import annotations

from tidegate.wire.socks5 import NO_AUTH, read_greeting, read_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.connection import Client
    from tidegate.model.destination import Destination

GREETING, REQUEST = 1, 2


def read_socks(client: Client) -> Destination | None:
    """Return where the client wants to go, or None while bytes are missing; what was read leaves its buffer.

    A client that is gone by now is closed, and None is returned too.

    Raises:
        WireError: with the reply to send before closing.
    """
    if client.socks != REQUEST:
        client.socks = GREETING
        used = read_greeting(client.buffer)
        if not used:
            return None
        client.buffer = client.buffer[used:]
        try:
            client.sock.send(NO_AUTH)  # two bytes on a fresh connection always fit
        except OSError:
            client.gone()
            return None
        client.socks = REQUEST
    request = read_request(client.buffer)
    if request is None:
        return None
    used, destination = request
    client.buffer = client.buffer[used:]
    return destination
