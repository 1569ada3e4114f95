"""A gate for a container that somebody else started: its network must be nobody's, and stays so (HLD-4).

What is refused, each by name: a container with another network, with rights, namespaces or devices of this machine, or
with an engine's socket. What its engine says is not believed alone: the network itself is looked at from inside before
anything is made in it.

Rules of the file: the gate goes into a network namespace that has nothing but loopback. Until then the container
reaches nobody, so its first instructions need no waiting for. To come back after a restart of the server (`again`) is
to make the sockets anew; what the kernel was told the first time is still there, and the self-test sees that it is.
"""

from __future__ import annotations

import os
import socket

from tidegate.holds.container.enter import check_here, join, namespaces_of, ports_of, serve_inside
from tidegate.holds.container.transport import Way
from tidegate.holds.container.weakness import folders_with_sockets, weaknesses
from tidegate.holds.mountinfo import places_of, read_mounts
from tidegate.holds.namespaces import close_namespaces
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tidegate.holds.container.engine import Engine
    from tidegate.holds.inside import TaskSockets

_ALONE = frozenset({"none"})


class Attached:
    """A container that was looked at. `pid` is its first process, `mounts` lead from places inside to sources."""

    def __init__(self, engine: Engine, container: str) -> None:
        """Look at it.

        Raises:
            StartError: when it does not run, or cannot be held.
        """
        found = engine.inspect(container)
        self.id = str(found.get("Id", container))
        self._rootless = engine.facts().rootless
        self._ports: tuple[int, ...] = ()
        if (found.get("State") or {}).get("Status") != "running":
            raise StartError(
                f"the container {container[:20]} does not run",
                fix=f"{engine.name} start {container[:20]}",
                code="container-ended",
            )
        self.mounts = {str(one.get("Destination")): str(one.get("Source")) for one in found.get("Mounts") or ()}
        self._said_writable = writable_of(found)
        texts = (found.get("Config") or {}).get("Env") or ()
        self.variables = {name: value for name, _, value in (str(text).partition("=") for text in texts)}
        self.pid = engine.pid(container)
        check_here(engine, self.id, self.pid)
        weak = [*weaknesses(found), *folders_with_sockets(found, engine.environ)]
        other = networks_of(found) - _ALONE
        if other:
            weak.append(f"it has another network ({', '.join(sorted(other))})")
        if not is_filtered(self.pid):
            weak.append("it has no filter of system calls")
        if weak:
            raise StartError(
                f"the container {container} cannot be held: {'; '.join(weak)}",
                fix="start it with what `tidegate task create --print-args` prints",
                code="container-weak",
            )
        self._look()

    def writable(self) -> tuple[str, ...]:
        """The files and folders of this machine that it can write, as its engine says and as the kernel does.

        Raises:
            StartError: when what is mounted there cannot be read.
        """
        return (*self._said_writable, *mounted_writable(self.pid))

    def serve(self, way: Way, deliver: Callable[[TaskSockets], None], *, again: bool = False) -> None:
        """Make the gate's sockets in there, hand them over, and try the fence.

        Raises:
            StartError: when that cannot be done, or the fence leaks.
        """
        namespaces = namespaces_of(self.pid, rootless=self._rootless)
        self._ports = ports_of(way)
        try:
            serve_inside(namespaces, way, deliver, again=again)
        finally:
            close_namespaces(namespaces)

    def warning(self) -> str:
        """What a gate does not hold in a container that another launcher started, '' where there is nothing.

        Nobody watches who it connects to on this machine's disk, and nobody covers what is there already.
        """
        folders = sorted({source for source in self.mounts.values() if os.path.isdir(source)})
        if not folders:
            return ""
        return (
            f"it can reach whoever listens at a unix socket below {', '.join(folders)}, now or later: its own launcher"
            " mounted that (docs/holds.md)"
        )

    def shut(self, *, shut: bool) -> bool:
        """Reset connections instead of leaving them with a gate that does not answer, or no more; whether that is so.

        A container that has ended needs neither.
        """
        from tidegate.holds import pause

        try:
            namespaces = namespaces_of(self.pid, rootless=self._rootless)
        except StartError:
            return False
        try:
            return pause.refuse(namespaces, self._ports) if shut else pause.admit(namespaces)
        finally:
            close_namespaces(namespaces)

    def _look(self) -> None:
        """See that the network is its own, and has nothing but loopback."""
        names = interfaces_of(self.pid, rootless=self._rootless)
        if names is None or os.stat(f"/proc/{self.pid}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino:
            raise StartError(
                "the container's network is this machine's, or cannot be entered from here",
                fix="start it with --network none, and be root where its engine is root's",
                code="container-network",
            )
        if set(names) != {"lo"}:
            raise StartError(
                f"the container's network has more than loopback ({', '.join(sorted(names))})",
                fix="start it with --network none",
                code="container-network",
            )


def writable_of(found: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths of this machine that an engine says a container can write: mounts, and the layer that is its own."""
    mounts = [one.get("Source") for one in found.get("Mounts") or () if one.get("RW") is not False]
    layers = ((found.get("GraphDriver") or {}).get("Data") or {}).get
    own = (layers("UpperDir"), layers("MergedDir"), found.get("Rootfs"))
    return tuple(str(path) for path in (*mounts, *own) if path)


def mounted_writable(pid: int) -> tuple[str, ...]:
    """The paths of this machine that a process can write by its mounts.

    An engine's word is not enough: what docker and podman mount read-only is so at its top alone, and what is mounted
    below it on this machine can be written. Nodes of devices do not count: no program is one.

    Raises:
        StartError: when they cannot be read.
    """
    try:
        ours, theirs = read_mounts(), read_mounts(f"/proc/{pid}/mountinfo")
    except OSError as error:
        raise StartError(
            f"what is mounted in the container cannot be read: {error.strerror}",
            fix="attach as the user whose engine it is",
            code="container-mounts",
        ) from None
    written = [one for one in theirs if not one.firm and one.kind != "devtmpfs"]
    return tuple(dict.fromkeys(place for one in written for place in places_of(one.device, one.root, ours)))


def is_filtered(pid: int) -> bool:
    """Whether a process has a seccomp filter. Without one it has sockets that no network namespace holds (vsock)."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            return any(line.split() == ["Seccomp:", "2"] for line in status)
    except OSError:
        return False


def networks_of(found: Mapping[str, Any]) -> set[str]:
    """The networks that an engine says a container is in."""
    host = found.get("HostConfig") or {}
    mode = str(host.get("NetworkMode", "")) or "default"
    joined = ((found.get("NetworkSettings") or {}).get("Networks") or {}).keys()
    return {mode, *map(str, joined)}


def interfaces_of(pid: int, *, rootless: bool) -> Sequence[str] | None:
    """The names of a process's network interfaces; None where its network cannot be entered."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            join(pid, rootless=rootless)
            names = " ".join(name for _, name in socket.if_nameindex())
            os.write(writing, names.encode("ascii", "replace")[:4000])
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        text = file.read()
    _pid, status = os.waitpid(child, 0)
    return text.decode("ascii").split() if status == 0 else None
