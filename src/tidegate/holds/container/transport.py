"""How a container reaches its gate: what the three transports have in common (HLD-4).

    enter   the gate's socket is made inside the container's network namespace, by who has the right to enter it
    relay   a relay container with no network, whose namespace the worker joins, leads to a socket of that task alone
    vm      as relay, and a second relay carries the channel from a volume to one mutual-TLS listener of this machine

In each of them the network is there, and proven, before the worker's container is made: the worker only joins it
(`Channel.network`). So its first instruction is behind the gate, whatever its image holds.

Rules of the file: `open` raises StartError and leaves nothing, or returns a channel that the hold must `close`. Every
container and volume that it makes carries the labels of `Way.labels`, so that `sweep` in sweep.py finds it after a
crash. None of these is ever taken in place of another that was asked for by name (HLD-7).
"""

from __future__ import annotations

from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from tidegate.holds.container.engine import Engine
    from tidegate.holds.container.life import Life
    from tidegate.holds.inside import TaskSockets
    from tidegate.model.errors import StartError
else:
    Protocol = object

ENTER, RELAY, VM = "enter", "relay", "vm"
TRANSPORTS = (ENTER, RELAY, VM)


class Way(Value):
    """What is wanted of a transport for one command of a task.

    `name` is unique among this machine's containers, and what all that is made begins with; `labels` are put on all of
    it; `folder` is private to this user and this task (0700), for sockets and what a relay mounts; `image` is the
    relay's. `state` is tidegate's state folder, where the authority for relays is. `port` is where the gate is to be
    inside. The rest is as in LaunchSpec.
    """

    name: str
    labels: dict[str, str]
    folder: str
    port: int
    capture: str
    capture_ports: tuple[int, ...] = ()
    met: tuple[tuple[str, int], ...] = ()
    published: tuple[int, ...] = ()
    selftest: bool = True
    image: str = ""
    state: str = ""


class Channel(Protocol):
    """An open way from a network namespace of containers to the gate."""

    network: tuple[str, ...]  # options of `create` that put the worker behind it
    name_server: str  # the address that the worker's resolv.conf names; '' where look-ups are not captured
    descriptor: int  # readable once the way is broken; -1 where its container's end says it all
    kept: tuple[int, ...]  # descriptors that `serve_again` needs
    life: Life | None  # what `descriptor` is of, where the way gives signs of life

    def serve_again(self, way: Way, deliver: Callable[[TaskSockets], None]) -> None:
        """Hand the gate new sockets, in place of those that are gone with who served them; also in a child.

        `way` is what was opened, with what the policy says by now; `deliver` is as in Transport.open.

        Raises:
            StartError: when that cannot be done, or the fence leaks.
        """

    def shut(self, *, shut: bool) -> bool:
        """Have connections reset, those that are open too, since the gate does not answer; or no more.

        Return whether that is so. Never raises.
        """

    def close(self, *others: str) -> None:
        """End it and remove all that was made for it, and these containers. Never raises; may be called twice."""


class Transport(Protocol):
    """One of the three."""

    name: str
    captures: bool  # whether --capture on is to be had with it

    def probe(self, engine: Engine) -> StartError | None:
        """Try it with a real container that is gone afterwards; why it cannot be had with this engine, or None."""

    def open(self, engine: Engine, way: Way, deliver: Callable[[TaskSockets], None]) -> Channel:
        """Make the network of the task, hand its sockets to the gate by `deliver`, and prove it.

        `deliver` is called once, as Hold.launch says: the descriptors are closed after the call. Whoever serves a unix
        socket in place of one inside gives it the role PROXY, too.

        Raises:
            StartError: when anything is missing or does not work.
        """
