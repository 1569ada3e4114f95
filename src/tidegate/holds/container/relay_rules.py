"""Capture behind a relay: who makes the rules is a container of its own, and gone before the worker is made (HLD-6).

    relay (no network, no right) ── waits at an abstract socket of its network
    rules (that network, CAP_NET_ADMIN) ── makes them, hands the sockets over, ends with 0, is removed
    relay ── leads what is captured to the gate, and is asked to try that nothing else is possible

Rules of the file: it comes back only once that container is gone, and with the proof; whatever else happens is a
StartError, and the task does not start (HLD-7). The container has no folder of this machine, no network but the
relay's, a root that is read-only, and no right but to set up that network (docs/decisions/0029).
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tidegate.holds import inside, messages
from tidegate.holds.canaries import Canaries
from tidegate.holds.container import relay_image, relays
from tidegate.holds.container.engine import PODMAN
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from tidegate.holds.container.engine import Engine
    from tidegate.holds.container.transport import Way

PART: Final = "rules"
RIGHTS: Final = ("NET_ADMIN", "NET_BIND_SERVICE")
"""What the container has: addresses, routes and tables of its network, and port 53 there."""

_KNOCKED = (2, 10)  # AF_INET, AF_INET6: a container sees no socket with a path, and check_sockets has tried the others
_PROVEN = "tidegate-relay 1 proven"
_SAID = "tidegate-relay 1 "


def lay(engine: Engine, way: Way, relay: str) -> None:
    """Have the connections of a relay's network captured, and led to that relay.

    Raises:
        StartError: when that cannot be done, or who did it is not gone.
    """
    options = ["--network", f"container:{relay}", *(f"--cap-add={right}" for right in RIGHTS)]
    if engine.name == PODMAN and engine.facts().rootless:
        options += ["--userns", f"container:{relay}"]  # whose user namespace the network belongs to
    container = relays.make(engine, way, PART, ("rules", str(way.port)), options, user="0:0", rules=True)
    said = ""
    try:
        status = engine.run("wait", container)
        if status != "0":
            with suppress(StartError):
                said = engine.run("logs", container).strip()[-200:]
    finally:
        engine.remove(container)
    if status != "0":
        why = said.removeprefix(_SAID) or f"it ended with {status}"
        raise StartError(
            f"{engine.name} cannot have the connections of a container captured behind a relay: {why}",
            fix="--capture off, with programs that know a proxy; or --transport enter",
            code="capture",
        )


def prove(engine: Engine, way: Way, relay: str) -> None:
    """Try from inside that all is captured, and that nothing of this machine is reached (HLD-11).

    Raises:
        StartError: where something is not as it must be.
    """
    canaries = None if engine.facts().in_vm else Canaries((), frozenset(port for _, port in way.met))
    try:
        targets = [one for one in canaries.targets if one[0] in _KNOCKED] if canaries else []
        word = canaries.word.decode() if canaries else "-"
        said = engine.run("exec", relay, *relay_image.COMMAND, "prove", word, json.dumps(targets)).strip()
        if said != _PROVEN:
            raise relays.selftest_failed(said.removeprefix(_SAID) or "nothing was said")
        heard = canaries.heard() if canaries else []
        if heard:
            raise messages.canary_heard(heard)
    finally:
        if canaries:
            canaries.close()


def name_server(way: Way) -> str:
    """The address that the worker's resolv.conf names, '' where look-ups are not captured."""
    return inside.GATE4 if way.capture != inside.OFF else ""
