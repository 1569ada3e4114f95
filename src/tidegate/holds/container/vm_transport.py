"""Transport `vm`: for an engine in a virtual machine, whose containers reach no socket of this one (HLD-4 (c)).

    worker ── its loopback ── relay (no network) ── socket in a volume ── carrier (the engine's network)
           ── mutual TLS ── door.py on 127.0.0.1 ── gate.sock of the task

The carrier alone has the certificate; the worker shares no network, volume or mount with it, which is looked at before
the task starts. The engine's default network is taken, and the name that its makers gave this machine there;
TIDEGATE_RELAY_NETWORK=NETWORK[,HOST] names others, for an engine whose default network does not lead to 127.0.0.1 here.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tidegate.holds.container import door_link, owner, relay_image, relay_rules, relays
from tidegate.holds.container.engine import DOCKER, LABEL_OWNER, LABEL_PART
from tidegate.holds.container.life import Life
from tidegate.holds.container.relay.words import AUTHORITY, BY_CARRIER, CAPTURED, CERTIFICATE
from tidegate.holds.container.relays import PART, Sockets
from tidegate.holds.container.sweep import sweep_volumes
from tidegate.holds.container.transport import VM
from tidegate.holds.inside import OFF
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.holds.container.certificates import TaskKeys
    from tidegate.holds.container.door_link import Route
    from tidegate.holds.container.engine import Engine
    from tidegate.holds.container.transport import Channel, Way
    from tidegate.holds.inside import TaskSockets

CARRIER: Final = "carrier"
VARIABLE: Final = "TIDEGATE_RELAY_NETWORK"
KEYS: Final = "/run/keys"
PLACE: Final = "run/relays"
"""Below the state folder: what carriers mount, a folder for each (virtual machines share the home folder)."""

_OWNER: Final = "owner"
_HOSTS: Final = {"docker": "host.docker.internal", "podman": "host.containers.internal"}


class Carried:
    """An open way through two relays."""

    def __init__(self, engine: Engine, way: Way) -> None:
        self.name_server = relay_rules.name_server(way)
        self.network: tuple[str, ...] = ()
        self.descriptor = -1
        self.kept: tuple[int, ...] = ()
        self.relay = self.carrier = self.volume = ""
        self.keys = os.path.join(way.state, PLACE, way.name)
        self.sockets: Sockets | None = None
        self.route: Route | None = None
        self.wire: socket.socket | None = None
        self.life: Life | None = None
        self._engine = engine
        self._pid = os.getpid()

    def shut(self, *, shut: bool) -> bool:
        """Tell the relay that the gate does not answer, or that it does; see Channel.shut."""
        if self.life is not None:
            self.life.shut(shut=shut)  # a relay that does not hear it is missed by `life`
        return True

    def serve_again(self, way: Way, deliver: Callable[[TaskSockets], None]) -> None:  # noqa: ARG002 - all is as it was
        """Hand the gate a new socket in the folder that the listener leads to; see Channel.serve_again."""
        assert self.sockets is not None
        self.sockets.deliver_again(deliver)

    def close(self, *others: str) -> None:
        """Remove all of it, after or with the others. In a child that removes for us, the descriptors are not there."""
        if os.getpid() == self._pid:
            for one in (self.route, self.wire, self.sockets):
                if one is not None:
                    one.close()
        self._engine.discard(*others, *(one for one in (self.relay, self.carrier) if one))
        with suppress(StartError):  # the engine is gone: the next sweep finds it
            if self.volume:
                self._engine.run("volume", "rm", "--force", self.volume)
        shutil.rmtree(self.keys, ignore_errors=True)


class VmTransport:
    """See the head of the file. `image` is the relays', '' for ours; `life` a certificate's, `grace` a relay's."""

    name = VM
    captures = True

    def __init__(self, image: str = "", life: float = 0.0, grace: float = relays.GRACE) -> None:
        self._image = image
        self._life = life
        self._grace = grace

    def probe(self, engine: Engine) -> StartError | None:
        """Whether this engine says that it is one in a virtual machine, and has the image; a task proves the rest."""
        try:
            if not engine.facts().in_vm:
                return StartError(
                    f"{engine.name} runs in no virtual machine, as it says of itself",
                    fix="--transport enter, or relay",
                    code="transport-vm",
                )
            image = self._image or relay_image.default_image()
            if not engine.has_image(image):
                return relays.without_image(engine, image)
        except StartError as error:
            return error
        return None

    def open(self, engine: Engine, way: Way, deliver: Callable[[TaskSockets], None]) -> Channel:
        """Make both relays and the certificate, hand the gate its socket and prove the way; see Transport.open."""
        relays.check_wishes(way, self.name)
        if not way.state:
            raise StartError("there is no state folder to keep the authority for relays in", code="authority")
        sweep_volumes(engine)
        _sweep_keys(way.state)
        way = way.replace(image=way.image or self._image)
        channel = Carried(engine, way)
        try:
            self._open(engine, way, channel, deliver)
        except BaseException:
            channel.close()
            raise
        return channel

    def _open(self, engine: Engine, way: Way, channel: Carried, deliver: Callable[[TaskSockets], None]) -> None:
        captured = way.capture != OFF
        channel.sockets = sockets = Sockets(way.folder, captured=captured)
        sockets.deliver(deliver)
        channel.route = self._certify(way, channel, sockets.folder)
        name = f"{way.name}-channel"
        labels = [*(f"{key}={value}" for key, value in way.labels.items()), f"{LABEL_PART}={PART}"]
        engine.run("volume", "create", *(one for label in labels for one in ("--label", label)), name)
        channel.volume = name
        network, host = _network(engine)
        options = [*network, *relays.mount("volume", name, relays.INSIDE, readonly=False)]
        options += relays.mount("bind", channel.keys, KEYS, readonly=True)
        words = ("far", relays.INSIDE, f"{host}:{channel.route.port}", KEYS, str(self._grace))
        channel.carrier = relays.make(engine, way, CARRIER, words, options, user="0:0")
        words = ("worker", relays.INSIDE, str(way.port), str(self._grace), BY_CARRIER)
        near = (*words, CAPTURED) if captured else words
        options = ["--network", "none", *relays.mount("volume", name, relays.INSIDE, readonly=True)]
        channel.relay = relays.make(engine, way, PART, near, options)
        channel.network = ("--network", f"container:{channel.relay}")
        if captured:
            relay_rules.lay(engine, way, channel.relay)
        try:
            channel.wire = relays.wait_for_life(engine, sockets, [(channel.relay, PART), (channel.carrier, CARRIER)])
        except StartError as error:
            raise _unreached(engine, host, channel.route.port, error) from None
        channel.descriptor = channel.wire.fileno()
        channel.life = Life(channel.wire)
        relays.check_network(engine, channel.relay)
        check_apart(engine, channel.relay, channel.carrier, name)
        if way.selftest:
            relays.ask_gate(engine, channel.relay, way.port)
            if captured:
                relay_rules.prove(engine, way, channel.relay)

    def _certify(self, way: Way, channel: Carried, folder: str) -> Route:
        try:
            from tidegate.holds.container.certificates import TASK_LIFE, open_authority
        except ImportError:
            raise StartError(
                "the package cryptography is not installed, which makes the certificates for transport vm",
                fix=f"{sys.executable} -m pip install 'cryptography>=42'",
                code="packages",
            ) from None
        now = door_link.now()
        authority = open_authority(way.state, now)
        keys = authority.task(way.name, now, self._life or TASK_LIFE)
        made = os.path.join(way.folder, "keys")  # where a crash leaves nothing that is nobody's
        _write_keys(made, keys, way.labels.get(LABEL_OWNER, ""))
        _move(made, channel.keys)
        return door_link.register(way.state, way.name, keys, folder, authority, now=now, warn=relays.warn)


def _network(engine: Engine) -> tuple[list[str], str]:
    """Options for the carrier's network, and this machine's name there."""
    text = engine.environ.get(VARIABLE, "")
    host = _HOSTS[engine.name]
    if text:
        network, _comma, named = text.rpartition(",") if text.count(",") else (text, "", "")
        return ["--network", network], named or host
    options = ["--add-host", f"{host}:host-gateway"] if engine.name == DOCKER and not engine.facts().in_vm else []
    return options, host


def _sweep_keys(state: str) -> None:
    """Remove the keys that a crash left. Never raises."""
    place = os.path.join(state, PLACE)
    with suppress(OSError):
        for name in os.listdir(place):
            with suppress(OSError), open(os.path.join(place, name, _OWNER), encoding="utf-8") as file:
                if owner.is_gone(file.read(1000)):
                    shutil.rmtree(os.path.join(place, name), ignore_errors=True)


def _write_keys(folder: str, keys: TaskKeys, whose: str) -> None:
    """Put them where the carrier mounts them: readable for whatever user it has there, behind a folder that is ours."""
    try:
        os.mkdir(folder)
        os.chmod(folder, 0o755)  # noqa: S103 - what leads to it is private
        files = {CERTIFICATE: keys.pem, AUTHORITY: keys.authority, _OWNER: whose.encode()}
        for name, content in files.items():
            path = os.path.join(folder, name)
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            with open(fd, "wb") as file:
                os.fchmod(fd, 0o644)
                file.write(content)
    except OSError as error:
        raise StartError(f"{folder} cannot be written: {error.strerror}", code="authority") from None


def _move(folder: str, to: str) -> None:
    try:
        os.makedirs(os.path.dirname(to), 0o700, exist_ok=True)
        os.chmod(os.path.dirname(to), 0o700)
        os.rename(folder, to)
    except OSError as error:
        raise StartError(f"{to} cannot be made: {error.strerror}", code="authority") from None


def check_apart(engine: Engine, near: str, carrier: str, volume: str) -> None:
    """See that what the worker joins shares nothing with the carrier but the one volume that the worker does not see.

    Raises:
        StartError: where it shares more.
    """
    mounts = [_mounts(engine, container) for container in (near, carrier)]
    networks = [_networks(engine, container) for container in (near, carrier)]
    shared = (mounts[0] & mounts[1]) - {volume}
    if shared or near in "".join(networks[1]) or (networks[0] & networks[1]):
        what = ", ".join(sorted(shared or networks[0] & networks[1] or networks[1]))
        raise relays.selftest_failed(f"both relays share {what}")
    if KEYS in {str(one.get("Destination")) for one in engine.inspect(near).get("Mounts") or ()}:
        raise relays.selftest_failed("the first relay has the certificate")


def _mounts(engine: Engine, container: str) -> set[str]:
    return {str(one.get("Name") or one.get("Source")) for one in engine.inspect(container).get("Mounts") or ()}


def _networks(engine: Engine, container: str) -> set[str]:
    found = engine.inspect(container)
    names = set((found.get("NetworkSettings") or {}).get("Networks") or {})
    return names | {str((found.get("HostConfig") or {}).get("NetworkMode"))}


def _unreached(engine: Engine, host: str, port: int, error: StartError) -> StartError:
    if error.code not in ("relay-silent", "relay-ended"):
        return error
    return StartError(
        f"{error.what}; the second relay is to reach port {port} of 127.0.0.1 of this machine as {host}",
        fix=f"see that {engine.name}'s containers reach this machine, or {VARIABLE}=NETWORK,HOST names a way that does",
        code=error.code,
    )
