"""Which transport an engine gets: the one that was named, or the first that works, found by a real container (HLD-4).

    <state>/run/transports.json    what was found, by engine: its name, version and place, and who we are

Each transport ends at the same gate, and none is taken in place of one that was named. `relay` is taken where the
network of a container cannot be entered from here, and `vm` only where a container cannot reach a socket of this
machine *and* the engine says that it runs in a virtual machine; everything else is an error (HLD-7). What was found
once stays until it fails, or the engine is another.
"""

from __future__ import annotations

import hashlib
import json
import os

from tidegate.holds.container.enter import ENTERING
from tidegate.holds.container.relay_transport import RelayTransport
from tidegate.holds.container.transport import ENTER, RELAY, TRANSPORTS, VM
from tidegate.holds.container.vm_transport import VmTransport
from tidegate.model.errors import StartError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.holds.container.engine import Engine
    from tidegate.holds.container.transport import Transport

FILE = "run/transports.json"
_BYTES = 1 << 16
_MOST = 64  # engines that are remembered
_PLACES = ("DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF")


def choose(engine: Engine, name: str = "", *, state: str = "", image: str = "") -> Transport:
    """The transport of this name, or the one that this engine has. `image` is the relay's, '' for our own.

    Raises:
        UsageError: for a name that there is no transport of.
        StartError: where none works.
    """
    if name:
        if name not in TRANSPORTS:
            raise UsageError(f"there is no transport {name!r}", fix=f"one of {', '.join(TRANSPORTS)}")
        if name == ENTER and engine.facts().in_vm:
            raise StartError(
                f"{engine.name} runs in a virtual machine, whose containers cannot be entered from here",
                fix="--transport vm",
                code="transport-enter",
            )
        return _make(name, image)
    key = _key(engine)
    found = _recall(state).get(key, "")
    if found not in TRANSPORTS:
        found = _find(engine, image)
        _remember(state, key, found)
    return _make(found, image)


def forget(engine: Engine, state: str) -> None:
    """What was found has failed: the next task looks anew. Never raises."""
    try:
        _remember(state, _key(engine), "")
    except StartError:
        return  # the engine is gone


def known(engine: Engine, state: str) -> str:
    """The transport that was found for this engine, '' for none yet.

    Raises:
        StartError: where the engine does not answer.
    """
    return _recall(state).get(_key(engine), "")


def _make(name: str, image: str) -> Transport:
    if name == ENTER:
        return ENTERING
    return RelayTransport(image=image) if name == RELAY else VmTransport(image=image)


def _find(engine: Engine, image: str) -> str:
    if not engine.facts().in_vm:
        why = ENTERING.probe(engine)
        if why is None:
            return ENTER
        if why.code != "transport-enter":
            raise why
    why = RelayTransport(image=image).probe(engine)
    if why is None:
        return RELAY
    if why.code != "socket-vm":
        raise why
    why = VmTransport(image=image).probe(engine)
    if why is not None:
        raise why
    return VM


def _key(engine: Engine) -> str:
    environ = engine.environ
    parts = (engine.name, repr(engine.facts()), str(os.geteuid()), *(environ.get(name, "") for name in _PLACES))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _recall(state: str) -> dict[str, str]:
    try:
        with open(os.path.join(state, FILE), encoding="ascii") as file:
            found = json.loads(file.read(_BYTES)) if state else {}
    except (OSError, ValueError):
        return {}
    return {str(key): str(name) for key, name in found.items()} if isinstance(found, dict) else {}


def _remember(state: str, key: str, name: str) -> None:
    """Keep what was found, or nothing of it for ''. What cannot be kept is found again."""
    kept = {one: found for one, found in _recall(state).items() if one != key and found in TRANSPORTS}
    if name:
        kept[key] = name
    path = os.path.join(state, FILE)
    fresh = f"{path}.{os.getpid()}.new"
    try:
        if not state:
            return
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="ascii") as file:
            json.dump(dict(list(kept.items())[-_MOST:]), file)
        os.replace(fresh, path)
    except OSError:
        return
