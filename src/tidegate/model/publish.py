"""A port of this machine that leads to a server of the task: `--publish 8080[:8080]` (HLD-10).

`[ADDRESS:]HOSTPORT[:TASKPORT]`, as people know it from containers, with two differences: the address is one of this
machine's loopback, and both of them where none is named; and one number stands for both ports.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_ntop, inet_pton

from tidegate.model.destination import PortError, parse_port
from tidegate.model.host import bracketed
from tidegate.model.value import Value

LOOPBACKS = ("127.0.0.1", "::1")
FIRST_PORT = 1024  # a task has no right to listen below (ip_unprivileged_port_start, capabilities(7))
MOST = 16  # of one task
MARK = b"\0tidegate-published-%d"
"""The abstract unix socket that marks a port of this machine as tidegate's own: no task reaches it (gate/marks.py)."""


class PublishError(ValueError):
    """The text publishes nothing. `what` says why, `fix` what to write instead."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix


class Publish(Value):
    """One published port: `port` on each of `addresses` leads to `inside` in the task.

    `addresses` are texts of loopback addresses; `named` says that a person wrote the one that there is.
    """

    addresses: tuple[str, ...]
    port: int
    inside: int
    named: bool = False

    @property
    def host(self) -> str:
        """What people connect to."""
        return self.addresses[0] if self.named else "localhost"

    @property
    def text(self) -> str:
        """The canonical spelling."""
        address = f"{bracketed(self.host)}:"
        return f"{address if self.named else ''}{self.port}:{self.inside}"


def parse_publish(text: str) -> Publish:
    """Return what the text publishes.

    Raises:
        PublishError: for an address that is not this machine's loopback, and for what are no ports.
    """
    address, ports = "", text
    if text[:1] == "[":
        address, bracket, ports = text[1:].partition("]:")
        if not bracket or ":" not in address:
            raise PublishError("after an IPv6 address in brackets come ':' and a port", "[::1]:8080:8080")
    elif text.count(":") > 1 or "." in text.partition(":")[0]:
        address, _, ports = text.partition(":")
    addresses = (_loopback(address),) if address else LOOPBACKS
    outside, colon, inside = ports.partition(":")
    try:
        port = parse_port(outside)
        to = parse_port(inside) if colon else port
    except PortError as error:
        raise PublishError(error.what, "8080, 8080:3000 or 127.0.0.1:8080:3000 (TCP)") from None
    if to < FIRST_PORT:
        raise PublishError(
            f"a task has no right to listen on port {to}", f"let it listen on 8080, and --publish {outside}:8080"
        )
    return Publish(addresses, port, to, bool(address))


def _loopback(address: str) -> str:
    family = AF_INET6 if ":" in address else AF_INET
    try:
        packed = inet_pton(family, address)
    except (OSError, ValueError):
        raise PublishError(f"{ascii(address)[:60]} is no address", "127.0.0.1:8080:8080 or [::1]:8080:8080") from None
    if packed[0] != 127 if family == AF_INET else packed != bytes(15) + b"\1":
        raise PublishError(
            f"{inet_ntop(family, packed)} is not this machine's loopback, and ports are published nowhere else",
            "leave the address out; who must reach it from elsewhere comes by ssh -L or a reverse proxy",
        )
    return inet_ntop(family, packed)
