"""Transport `relay`: a container with no network, whose namespace the worker joins, leads to one socket (HLD-4 (b)).

It needs an engine whose containers can connect to a unix socket of this machine: one on the same kernel, with no
SELinux between. Whether that is so is found out by a real container that tries (`probe`).
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from tidegate.holds.container import relay_rules, relays
from tidegate.holds.container.life import Life
from tidegate.holds.container.relay.words import CAPTURED
from tidegate.holds.container.relays import PART, Sockets
from tidegate.holds.container.transport import RELAY
from tidegate.holds.inside import OFF
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.holds.container.engine import Engine
    from tidegate.holds.container.transport import Channel, Way
    from tidegate.holds.inside import TaskSockets


class Relayed:
    """An open way through one relay."""

    def __init__(
        self, engine: Engine, container: str, sockets: Sockets, life: socket.socket, name_server: str = ""
    ) -> None:
        self.name_server = name_server
        self.network: tuple[str, ...] = ("--network", f"container:{container}")
        self.container = container
        self.descriptor = life.fileno()
        self.kept: tuple[int, ...] = ()
        self.life: Life | None = Life(life)
        self._engine = engine
        self._sockets = sockets
        self._wire = life
        self._pid = os.getpid()

    def shut(self, *, shut: bool) -> bool:
        """Tell the relay that the gate does not answer, or that it does; see Channel.shut."""
        if self.life is not None:
            self.life.shut(shut=shut)  # a relay that does not hear it is missed by `life`
        return True

    def serve_again(self, way: Way, deliver: Callable[[TaskSockets], None]) -> None:  # noqa: ARG002 - all is as it was
        """Hand the gate a new socket in the folder that the relay has; see Channel.serve_again."""
        self._sockets.deliver_again(deliver)

    def close(self, *others: str) -> None:
        """Remove the relay, after or with the others. In a child that removes for us, the descriptors are not there."""
        if os.getpid() == self._pid:
            self._wire.close()
            self._sockets.close()
        self._engine.discard(*others, self.container)


class RelayTransport:
    """See the head of the file. `image` is the relay's, '' for ours; `grace` how long it waits for its next owner."""

    name = RELAY
    captures = True

    def __init__(self, image: str = "", grace: float = relays.GRACE) -> None:
        self._image = image
        self._grace = grace

    def probe(self, engine: Engine) -> StartError | None:
        """Have a real container try to connect to a socket of this machine; why it cannot, or None."""
        from tidegate.holds.container import owner
        from tidegate.holds.container.engine import LABEL_OWNER
        from tidegate.holds.container.transport import Way
        from tidegate.holds.container.work_folder import WorkFolder

        folder = WorkFolder()
        try:
            name = f"tidegate-probe-{os.getpid()}-{os.urandom(4).hex()}"
            labels = {LABEL_OWNER: owner.me()}
            way = Way(name=name, labels=labels, folder=folder.path, port=0, capture=OFF, image=self._image)
            check_socket(engine, way)
        except StartError as error:
            return error
        finally:
            folder.remove()
        return None

    def open(self, engine: Engine, way: Way, deliver: Callable[[TaskSockets], None]) -> Channel:
        """Make the relay, hand the gate its socket and prove the way; see Transport.open."""
        relays.check_wishes(way, self.name)
        way = way.replace(image=way.image or self._image)
        captured = way.capture != OFF
        sockets = Sockets(way.folder, captured=captured)
        container = ""
        life: socket.socket | None = None
        try:
            sockets.deliver(deliver)
            words = ("worker", relays.INSIDE, str(way.port), str(self._grace), *((CAPTURED,) if captured else ()))
            options = ["--network", "none", *relays.mount("bind", sockets.folder, relays.INSIDE, readonly=True)]
            container = relays.make(engine, way, PART, words, options)
            if captured:
                relay_rules.lay(engine, way, container)
            life = relays.wait_for_life(engine, sockets, [(container, PART)])
            relays.check_network(engine, container)
            if way.selftest:
                relays.ask_gate(engine, container, way.port)
                if captured:
                    relay_rules.prove(engine, way, container)
        except BaseException:
            sockets.close()
            if life is not None:
                life.close()
            if container:
                engine.remove(container)
            raise
        return Relayed(engine, container, sockets, life, relay_rules.name_server(way))


def check_socket(engine: Engine, way: Way) -> None:
    """Have a container try whether it can connect to a socket of this machine.

    Raises:
        StartError: where it cannot; code `socket-vm` where that is because the engine runs in a virtual machine.
    """
    sockets = Sockets(way.folder)
    container = ""
    try:
        options = ["--network", "none", *relays.mount("bind", sockets.folder, relays.INSIDE, readonly=True)]
        try:
            container = relays.make(engine, way, "probe", ("check", relays.INSIDE), options)
            status = engine.run("wait", container)
            said = engine.run("logs", container).strip()
        except StartError as error:
            if error.code == "engine" and engine.facts().in_vm:
                raise _in_vm(engine, error.what) from None  # the folder is none that the machine shares with it
            raise
    finally:
        sockets.close()
        if container:
            engine.remove(container)
    if status == "0" and said.endswith("connected"):
        return
    why = said.rpartition(" ")[2] if said.startswith("tidegate-relay ") else said[-200:] or f"it ended with {status}"
    if not said.startswith("tidegate-relay "):
        raise StartError(
            f"the socket check of {engine.name} did not run: {why}",
            fix=f"tidegate relay-image build --engine {engine.name}",
            code="socket-check",
        )
    raise _in_vm(engine, why) if engine.facts().in_vm else _not_let(engine, why)


def _in_vm(engine: Engine, why: str) -> StartError:
    return StartError(
        f"containers of {engine.name} run in a virtual machine and cannot reach a socket of this one ({why})",
        fix="--transport vm",
        code="socket-vm",
    )


def _not_let(engine: Engine, why: str) -> StartError:
    return StartError(
        f"a container of {engine.name} cannot connect to a socket of this machine ({why}), and {engine.name} says that"
        " it runs in no virtual machine",
        fix="where SELinux is on, `ausearch -m avc` says what it denied; else see who may use the temporary folder",
        code="socket-denied",
    )
