"""What both transports with relays do: the sockets of a task, containers of the relay's image, the proof of the way.

    <Way.folder>/channel/gate.sock    the gate serves it; no other task's relay sees it (GAT-2)
    caught.sock, lookup.sock, told.sock    beside it, where connections are captured: relay/caught.py
    <Way.folder>/channel/life.sock    the relay's own connection (relay/): its end is the end of the way

Rules of the file: a relay has no right, a root that is read-only, and the folders it is given. It is believed once it
has connected here, its network was looked at, and a name that is never allowed came back refused through all of it.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tidegate.holds import inside, selftest
from tidegate.holds.container import relay_image
from tidegate.holds.container.confinement import check_process, confining
from tidegate.holds.container.engine import LABEL_PART
from tidegate.holds.container.listening import listen_at
from tidegate.holds.container.relay.words import CAUGHT, GATE, LIFE, LOOKUP, NAMES, OPEN, TOLD
from tidegate.holds.inside import CARRIED, OFF, ON, PROXY, STREAMS, TaskSockets
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidegate.holds.container.engine import Engine
    from tidegate.holds.container.transport import Way

NOT_CARRIED: Final = ("transport-capture", "transport-publish")
"""Codes of errors that say what was wished, not what works."""

PART: Final = "relay"
INSIDE: Final = "/run/tidegate"
NOBODY: Final = "65534:65534"
GRACE: Final = 30.0  # seconds a relay waits for the next owner
CHANNEL: Final = "channel"
_SERVED: Final = ((GATE, PROXY), (CAUGHT, CARRIED), (LOOKUP, STREAMS), (TOLD, inside.TOLD))
_PATIENCE = 60.0  # seconds for the way to open, on a machine that starts much at once
_LOOK = 1.0  # seconds between looks whether the relay still runs
_WHY = 300


class Sockets:
    """The sockets of one task, in a folder that a container can be given. `close` gives them back.

    `captured`: the gate has some for what is captured, too.
    """

    def __init__(self, folder: str, *, captured: bool = False) -> None:
        self.folder = os.path.join(folder, CHANNEL)
        self._served = _SERVED if captured else _SERVED[:1]
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o755)  # noqa: S103 - what leads to it is private
        self.gate = [_listen(self.folder, NAMES[kind]) for kind, _ in self._served]
        self.life = _listen(self.folder, NAMES[LIFE])

    def deliver(self, deliver: Callable[[TaskSockets], None]) -> None:
        """Hand the gate its sockets, and keep no copy of them."""
        try:
            deliver(TaskSockets(tuple(role for _, role in self._served), tuple(one.fileno() for one in self.gate)))
        finally:
            self._close_gate()

    def deliver_again(self, deliver: Callable[[TaskSockets], None]) -> None:
        """Make the gate's sockets anew, in the place of those that are gone with who served them; also in a child.

        Raises:
            StartError: when it cannot be made, or who serves it does not refuse what is never allowed.
        """
        self.gate = []
        for kind, _ in self._served:
            name = NAMES[kind]
            try:
                os.unlink(os.path.join(self.folder, name))
                self.gate.append(_listen(self.folder, name))
            except OSError as error:
                self._close_gate()
                raise StartError(f"{self.folder}/{name} cannot be made: {error.strerror}", code="listener") from None
        self.deliver(deliver)
        check_refused(_ask(self.folder, NAMES[GATE]))

    def close(self) -> None:
        """Give them back."""
        self._close_gate()
        self.life.close()

    def _close_gate(self) -> None:
        for one in self.gate:
            one.close()


def _listen(folder: str, name: str) -> socket.socket:
    return socket.socket(fileno=listen_at(folder, name))


def check_wishes(way: Way, transport: str) -> None:
    """See that nothing is wanted that a relay does not carry.

    Raises:
        StartError: for what only `enter` can have; nothing weaker is done in its place (HLD-7).
    """
    if way.capture not in (OFF, ON):
        raise StartError(
            f"--capture {way.capture} does not work with --transport {transport}",
            fix="--capture on, or --transport enter",
            code="transport-capture",
        )
    if way.published:
        raise StartError(
            f"--publish does not work with --transport {transport}", fix="--transport enter", code="transport-publish"
        )


def make(
    engine: Engine,
    way: Way,
    part: str,
    words: Sequence[str],
    options: Sequence[str],
    *,
    user: str = NOBODY,
    rules: bool = False,
) -> str:
    """Make a container of the relay's image, and start it; its id. `rules`: it makes those of a network.

    Raises:
        StartError: when the image is missing (the line names what makes it), or the engine cannot.
    """
    labels = {**way.labels, LABEL_PART: part}
    whole = [
        *("--name", f"{way.name}-{part}", "--read-only", "--user", user, "--entrypoint", "", "--restart", "no"),
        *confining(engine, way.folder, rules=rules),
        *(one for name, value in labels.items() for one in ("--label", f"{name}={value}")),
        *options,
    ]
    image = way.image or relay_image.default_image()
    try:
        return engine.begin(image, whole, (*relay_image.COMMAND, *words))
    except StartError as error:
        raise (without_image(engine, image) if error.code == "image-missing" else error) from None


def without_image(engine: Engine, image: str) -> StartError:
    """The error for a relay's image that is not here."""
    ours = image == relay_image.default_image()
    fix = f"tidegate relay-image build --engine {engine.name}" if ours else f"{engine.name} pull {image}"
    return StartError(f"{engine.name} does not have the image of the relay, {image}", fix=fix, code="relay-image")


def mount(kind: str, source: str, target: str, *, readonly: bool) -> list[str]:
    """The options that give a container a folder of this machine (`bind`) or a volume."""
    return ["--mount", f"type={kind},src={source},dst={target}{',ro' if readonly else ''}"]


def ended(engine: Engine, container: str, part: str) -> StartError:
    """The error for a relay that did not stay, with what it said."""
    said = ""
    with suppress(StartError):
        said = " ".join(engine.run("logs", container).split())[-_WHY:]
    return StartError(
        f"the {part} of the task ended before the way to the gate was open{': ' if said else ''}{said}",
        fix=f"tidegate relay-image build --engine {engine.name}; see tidegate doctor",
        code="relay-ended",
    )


def wait_for_life(engine: Engine, sockets: Sockets, parts: Sequence[tuple[str, str]]) -> socket.socket:
    """Return the relay's own connection, once what is sent on it came back. `parts` are containers and their names.

    Raises:
        StartError: when one of them ends, or the way does not open in time.
    """
    until = time.monotonic() + _PATIENCE
    sockets.life.settimeout(_LOOK)
    while time.monotonic() < until:
        try:
            life = sockets.life.accept()[0]
        except TimeoutError:
            for container, part in parts:
                if not is_running(engine, container):
                    raise ended(engine, container, part) from None
            continue
        try:
            life.settimeout(_PATIENCE)
            life.sendall(OPEN)
            if life.recv(1) == OPEN:
                life.setblocking(False)
                return life
        except OSError:
            pass
        life.close()
    raise StartError(
        f"the way to the gate did not open within {_PATIENCE:.0f} seconds",
        fix=f"see `{engine.name} logs {parts[0][0][:12]}` while it is tried",
        code="relay-silent",
    )


def is_running(engine: Engine, container: str) -> bool:
    """Whether a container runs."""
    try:
        return (engine.inspect(container).get("State") or {}).get("Status") == "running"
    except StartError:
        return False


def check_network(engine: Engine, container: str) -> None:
    """See that a container has no network but its own loopback, and no right.

    Raises:
        StartError: where it has; the worker would have it too.
    """
    found = engine.inspect(container)
    mode = (found.get("HostConfig") or {}).get("NetworkMode")
    if mode != "none":
        raise selftest_failed(f"the relay has the network {mode!r}")
    if engine.facts().in_vm:
        return  # on another kernel: its engine's word is what there is
    pid = engine.pid(container)
    ours = theirs = 0
    try:
        with suppress(PermissionError):  # of root's engine, to another user: its interfaces are shown all the same
            theirs = os.stat(f"/proc/{pid}/ns/net").st_ino
            ours = os.stat("/proc/self/ns/net").st_ino
        with open(f"/proc/{pid}/net/dev", encoding="ascii", errors="replace") as file:
            links = {line.partition(":")[0].strip() for line in file if ":" in line}
    except OSError as error:
        raise selftest_failed(f"the relay's network cannot be looked at ({error.strerror})") from None
    if (theirs and ours == theirs) or links != {"lo"}:
        raise selftest_failed(f"the relay's network is not alone: {', '.join(sorted(links))}")
    check_process(engine.pid(container), pid)


def ask_gate(engine: Engine, container: str, port: int) -> None:
    """Ask for a name that is never allowed, from inside and through all of the way.

    Raises:
        StartError: where that is not refused by the gate.
    """
    check_refused(engine.run("exec", container, *relay_image.COMMAND, "ask", str(port), _request()))


def _request() -> str:
    host = selftest.NEVER_ALLOWED.decode()
    return f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {selftest.MARK.decode()}"


def _ask(folder: str, name: str) -> str:
    """The first line of what a gate's socket answers, ask it what is never allowed."""
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
            wire.settimeout(_PATIENCE)
            wire.connect(f"/proc/self/fd/{fd}/{name}")
            wire.sendall(_request().encode("ascii") + b"\r\n\r\n")
            return wire.recv(1000).partition(b"\r")[0].decode("ascii", "replace")
    except OSError as error:
        return error.strerror or type(error).__name__
    finally:
        os.close(fd)


def check_refused(said: str) -> None:
    """See that this is how a gate refuses a name that is never allowed.

    Raises:
        StartError: where it is not.
    """
    words = said.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or words[1] != "403":
        raise selftest_failed(f"the gate did not refuse a name that is never allowed (it said {said[:60]!r})")


def selftest_failed(what: str) -> StartError:
    """The error for a fence that is none."""
    return StartError(
        f"the self-test of the transport failed: {what}", fix="the task was not started", code="self-test"
    )


def warn(line: str) -> None:
    """Tell the person something that does not keep the task from its start."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"tidegate: warning: {line}\n")
        sys.stderr.flush()
