"""The hold `uid`: this machine's network, a user of its own, and a table that lets that user reach its gate (HLD-3).

For a daemon of root's on a shared machine: many tasks, no network namespace for each. Files, processes and IPC are a
task's own as in `netns` (launch.py), but it stands in this machine's user namespace with a uid of the range that nobody
else has, and its sockets are in this machine's network, fenced by uid_table.py. The gate listens on loopback, on ports
that the kernel picks; the table leads the task's proxy address, look-ups and connections there.

The order is the point: the table is there, the uid is claimed, the listeners are open and entered, and then the task
gets its first process. A user of the range without a place in the table reaches nothing at all.

What it does not do: publish (the task's servers are on this machine's loopback already) and `--capture ports`.
"""

from __future__ import annotations

import _socket
import errno
import os
import stat

from tidegate.holds import capture, linux, messages, network, uid_claims, uid_fence, uid_range, uid_routes, uid_watch
from tidegate.holds.idmap import Mapped, make_map
from tidegate.holds.inside import (
    DATAGRAMS,
    MET,
    ON,
    PORTS,
    PROXY,
    REDIRECTED,
    STREAMS,
    TaskSockets,
    owner_role,
)
from tidegate.holds.launch import NamespaceHold
from tidegate.holds.mountinfo import is_within
from tidegate.holds.plan import make_plan
from tidegate.holds.seccomp import NETNS
from tidegate.holds.uid_account import HOME, account_files, environment
from tidegate.holds.uid_pause import UidPause
from tidegate.holds.uid_table import FIRST, LAST, Ports, elements
from tidegate.holds.uid_watch import TableWatch
from tidegate.holds.uid_watcher import TABLE_GONE, Post
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.holds.hold import LaunchSpec, RunningTask
    from tidegate.holds.launch import Finish
    from tidegate.holds.plan import Plan
    from tidegate.holds.uid_claims import Claim

NAME = "uid"
TABLE_LOST = "tidegate: the table inet tidegate, or routing rule 3128, was removed or changed; the task was ended"
_TRIES = 64  # ports that are free for one protocol and family and taken for another
_MOST_TRIED = 256  # uids
_LOADS = 4


class Tenant:
    """One user of the range with its gate's sockets and its place in the table; what launch.py asks of it."""

    namespaces = linux.CLONE_NEWNS | linux.CLONE_NEWIPC | linux.CLONE_NEWPID

    def __init__(self, claim: Claim, spec: LaunchSpec, table: TableWatch) -> None:
        self.uid = claim.uid
        self._claim = claim
        self._table = table
        self._made: list[tuple[str, int]] = []
        self._maps: list[int] = []
        self.pause: UidPause | None = None
        shares = tuple(os.path.realpath(share.path) for share in spec.shares)
        self.post = Post(claim.uid, table, (claim.descriptor,), shares)

    def settle(self, spec: LaunchSpec) -> None:
        """Open what its gate listens on and enter it into the table.

        Raises:
            StartError, OSError: where something is missing.
        """
        proxy = network.listen(0)
        self._made.append((PROXY, proxy))
        captured = names = 0
        if spec.capture == ON:
            captured = self._open_captured()
            names = self._open_names()
        met: dict[tuple[str, int], int] = {}
        for host, port in spec.met:
            address = "127.0.0.1" if host == "localhost" else host
            listener = capture.listen(_family(address), "::1" if ":" in address else "127.0.0.1", 0)
            self._made.append((MET, listener))
            met[address, port] = _port(listener)
        ports = Ports(_port(proxy), captured, names, met)
        self._claim.enter(elements(self.uid, ports))
        self.pause = UidPause(self.uid, ports)
        self._made.append((owner_role(self.uid), os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)))

    def hand_over(self, deliver: Callable[[TaskSockets], None] | None) -> None:
        """Give the gate its sockets; ours are closed."""
        made, self._made = self._made, []
        try:
            if deliver is not None:
                deliver(TaskSockets(tuple(role for role, _ in made), tuple(fd for _, fd in made)))
        finally:
            for _, descriptor in made:
                os.close(descriptor)

    def plan(self, spec: LaunchSpec) -> Plan:
        """What the task sees: the workspace and shares as its own, nothing of who owns the folders above them."""
        shown = [path for path in _places(spec) if not is_within(path, "/dev") or is_within(path, "/dev/shm")]  # noqa: S108
        closed = tuple(dict.fromkeys(above for above in map(closed_above, shown) if above))
        owner = os.stat(spec.workspace).st_uid if spec.workspace else os.geteuid()
        made = make_plan(spec, owner, ("/var/tmp", *closed))  # noqa: S108 (it is replaced)
        mapped = [
            self._mapped(path) for path in shown if not any(is_within(path, one) and path != one for one in shown)
        ]
        names = (*made.names, *account_files(self.uid))
        return made.replace(mapped=tuple(mapped), owner=self.uid, names=names, made=(*made.made, (HOME, 0o700)))

    def give_streams(self) -> None:
        """Let the task open its own terminal, and the pipes that are its standard streams, by their names."""
        for name in os.listdir("/dev/pts"):
            if name.isdigit():
                os.chown(f"/dev/pts/{name}", self.uid, -1)
        for descriptor in range(3):
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith("pipe:"):
                os.chown(descriptor, self.uid, -1)

    def let_go(self) -> None:
        """Close what only a launch needs."""
        for descriptor in self._maps:
            os.close(descriptor)
        self._maps.clear()
        self._table.close()

    def release(self) -> None:
        """Give the uid back."""
        for _, descriptor in self._made:
            os.close(descriptor)
        self._made.clear()
        if self.pause is not None:
            self.pause.close()
        self._claim.release()

    def _mapped(self, path: str) -> Mapped:
        found = os.stat(path)
        self._maps.append(make_map((found.st_uid, found.st_gid), (self.uid, self.uid)))
        return Mapped(path, self._maps[-1])

    def _open_captured(self) -> int:
        port = 0
        for family, address in _LOOPBACK:
            listener = _listen_at(family, address, port)
            if listener >= 0:
                self._made.append((REDIRECTED, listener))
                port = _port(listener)
        return port

    def _open_names(self) -> int:
        """Sockets of the resolver, on one port that is free for TCP and UDP in both families."""
        for _ in range(_TRIES):
            made: list[tuple[str, int]] = []
            port = 0
            try:
                for family, address in _LOOPBACK:
                    listener = _listen_at(family, address, port)
                    if listener < 0:
                        continue
                    made.append((STREAMS, listener))
                    port = _port(listener)
                    made.append((DATAGRAMS, capture.datagrams(family, address, port)))
            except OSError as error:
                for _, descriptor in made:
                    os.close(descriptor)
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
            self._made += made
            return port
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE), "a port for the task's resolver")


_LOOPBACK = ((_socket.AF_INET, "127.0.0.1"), (_socket.AF_INET6, "::1"))
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


class UidHold(NamespaceHold):
    """See the head of the file."""

    def __init__(self) -> None:
        super().__init__(NETNS)
        self.name = NAME

    def sweep(self) -> None:
        """Remove from the table what was left by runs that were killed; load the table."""
        prepare()
        uid_claims.sweep()

    def _launch(
        self,
        spec: LaunchSpec,
        deliver: Callable[[TaskSockets], None] | None,
        finish: Finish,
        tenant: Tenant | None = None,
    ) -> RunningTask:
        assert tenant is None, "a tenant is made here"
        if spec.capture == PORTS:
            raise StartError(
                "the hold uid captures all connections or none",
                fix="--capture on, or --capture off",
                code="hold-capture",
            )
        if spec.published:
            raise StartError(
                "with --hold uid the task's servers are on this machine's loopback already",
                fix="leave --publish out and connect to the port that the task listens on",
                code="hold-published",
            )
        require()
        try:
            table = TableWatch()
        except OSError as error:
            raise uid_fence.cannot_load(str(error)) from error
        claim = spec.claim or claim_any()
        tenant = Tenant(claim, spec, table)
        try:
            with uid_claims.locked():
                _load(table)
                _keep_at_home(table)
                tenant.settle(spec)
                _expect(table, claim.uid)
            # A home that is the workspace, or lies in it, stays closed to new names; all else is read-only anyway.
            places = _places(spec)
            closed = tuple(one for one in spec.closed if any(is_within(os.path.realpath(one), at) for at in places))
            spec = spec.replace(env=environment(spec.env, claim.uid), strict=True, writable=(), closed=closed)
            tenant.hand_over(deliver)
            task = super()._launch(spec, deliver, finish, tenant)
        except OSError as error:
            tenant.release()
            raise messages.explain("listener", error.errno or 0, str(error.filename or error)) from error
        except BaseException:
            tenant.release()
            raise
        finally:
            tenant.let_go()
        task.said = {TABLE_GONE: TABLE_LOST}
        task.shut = tenant.pause.shut if tenant.pause is not None else None
        task.after.append(tenant.release)
        return task


def prepare(watch: TableWatch | None = None) -> None:
    """See that users of the range can be held here, and load what holds all of them: the table and its routes.

    A watch then knows the table.

    Raises:
        StartError: naming what is missing.
    """
    require()
    with uid_claims.locked():
        _load(watch)
    _keep_at_home(watch)


def _load(watch: TableWatch | None) -> None:
    """Load the table where it is not as it must be.

    What the watch takes for it was looked at *before* it was compared: who changes it in between is noticed, too.
    """
    for _ in range(_LOADS):
        seen = uid_watch.look()
        if not uid_fence.ensure():
            if watch is not None:
                watch.know(seen)
            return
    raise _being_changed()


def _expect(watch: TableWatch, uid: int) -> None:
    """From here on the watcher sees to the table, and to the user's place, which has just been made."""
    if watch.altered():
        raise _being_changed()
    watch.expect(uid)


def _being_changed() -> StartError:
    return uid_fence.cannot_load("somebody changes it all the time")


def require() -> None:
    """See that users of the range can be held here: by root, in a range that is nobody's.

    Raises:
        StartError: naming what is missing.
    """
    if os.geteuid() != 0:
        raise StartError(
            "the hold uid is for root: it needs other users' ids and the machine's nftables",
            fix="run tidegate as root; or --hold netns, which needs no rights",
            code="uid-root",
        )
    uid_range.check_range()


def _keep_at_home(watch: TableWatch | None) -> None:
    try:
        uid_routes.keep_at_home()
    except OSError as error:
        raise uid_fence.cannot_load(f"{error.filename}: {error.strerror}") from error
    if watch is not None and not watch.know_routes():
        raise _being_changed()


def claim_any() -> Claim:
    """Claim a uid without asking which has been free for longest.

    Raises:
        StartError: where none is to be had.
    """
    start = int.from_bytes(os.urandom(2), "little")
    for number in range(_MOST_TRIED):
        claim = uid_claims.claim(FIRST + (start + number) % (LAST - FIRST + 1))
        if claim is not None:
            return claim
    raise none_free()


def none_free() -> StartError:
    """Every uid is in use."""
    return StartError(
        f"no uid between {FIRST} and {LAST} is free: tasks have them, or files and processes of ended ones are left",
        fix="`tidegate doctor` names what is left",
        code="uid-none",
    )


def _places(spec: LaunchSpec) -> tuple[str, ...]:
    """The real paths of the workspace and what is shared."""
    shares = (os.path.realpath(share.path) for share in spec.shares)
    return tuple(dict.fromkeys(path for path in (spec.workspace, *shares) if path))


def closed_above(path: str) -> str:
    """The topmost folder above a real path that others may not enter; '' where there is none."""
    folder = ""
    for part in path.strip("/").split("/")[:-1]:
        folder += f"/{part}"
        if not os.stat(folder).st_mode & stat.S_IXOTH:
            return folder
    return ""


def _family(address: str) -> int:
    return int(_socket.AF_INET6 if ":" in address else _socket.AF_INET)


def _listen_at(family: int, address: str, port: int) -> int:
    """A listener, -1 where this machine has no IPv6."""
    try:
        return capture.listen(family, address, port)
    except OSError as error:
        if family == _socket.AF_INET6 and error.errno in _NO_IPV6:
            return -1
        raise


def _port(listener: int) -> int:
    wire = _socket.socket(fileno=listener)
    try:
        port: int = wire.getsockname()[1]
    finally:
        wire.detach()
    return port


UID = UidHold()
