"""The listener for relays of engines in a virtual machine: mutual TLS on 127.0.0.1, one for all tasks (HLD-4).

A process of its own, with nothing but the standard library: neither gate nor server wait for a handshake, and the key
of the authority is not in it. Who starts it (door_link.py) leaves it the listening sockets, and on standard input one
line of JSON: {"tcp": descriptor, "owners": descriptor, "listener": PEM, "authority": PEM, "log": path}.

    owner -> door   {"task", "fingerprint", "folder", "ends_at"}     one line; the connection is then held open
    door -> owner   {"port": N}
    end of file     from the owner: its task has ended, and the certificate is worth nothing from now on;
                    from the door: the route is gone

Rules of the file: a task is who its certificate says, and no byte of a connection says anything else; the first frame
of a captured one says where it was going, which is the gate's to judge. A certificate
that is expired, of another authority, of a task that has ended or not of any is refused, and recorded. What is open
when seven days are over is cut. Sessions are not resumed: that would outlive a certificate. Without owners it ends.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
import time
from contextlib import suppress
from hashlib import sha256

from tidegate.holds.container.relay.ends import Framed, Plain, connect_unix
from tidegate.holds.container.relay.pairs import Caller, Loop
from tidegate.holds.container.relay.words import AGAIN, CAUGHT, IN, MOST, NAMES, CutError
from tidegate.model.caught import place_of
from tidegate.model.publish import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tidegate.holds.container.relay.pairs import Held, Pair

LINE = 1 << 14  # bytes of one line of an owner
ALONE = 10.0  # seconds without an owner before it ends: a server that is started anew takes less
STRANGERS = 128  # connections whose certificate is not known yet
LOG_BYTES = 1 << 20
_FOLD = 1.0  # seconds: equal refusals within are one line


class Owner:
    """One task's owner, by its connection. Until it has said whose, it is nobody."""

    def __init__(self, door: Door, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.task = ""
        self.fingerprint = ""
        self.folder = ""
        self.ends_at = 0.0
        self.pairs: set[Held] = set()
        self._door = door
        self._line = b""
        door.loop.watch(sock.fileno(), self, IN)

    def ready(self, _fd: int, _mask: int) -> None:
        """It says whose it is, or leaves."""
        try:
            data = self.sock.recv(LINE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._line += data
        if not data or self.fingerprint or len(self._line) > LINE:
            self._door.leave(self)
        elif self._line.endswith(b"\n"):
            try:
                said = json.loads(self._line)
                self.task, self.folder = str(said["task"]), str(said["folder"])
                self.ends_at = float(said["ends_at"])
                self._door.enter(self, str(said["fingerprint"]))
            except (ValueError, KeyError, TypeError, OSError):
                self._door.leave(self)


class Stranger(Caller):
    """A connection that is not known yet: hands are shaken, and it says what it wants."""

    def __init__(self, door: Door, sock: socket.socket, peer: str) -> None:
        self._door = door
        self._peer = peer
        self._owner: Owner | None = None
        door.strangers += 1
        super().__init__(door.loop, Framed(sock, door.wrap))

    def arrived(self, word: bytes) -> Plain:
        """Find out whose it is, and connect it to the socket of that task.

        Raises:
            OSError: when it is nobody's, or there is nothing to connect to.
        """
        owner = self._owner = self._door.owner_of(self.end.peer())
        kind, name = word[:1], word[1:]
        if kind not in NAMES or (name and (kind != CAUGHT or not _is_place(name))):
            raise CutError(0, "it wants what there is not")
        if len(owner.pairs) >= MOST:
            raise CutError(0, f"{owner.task} has as many connections as it may")
        return Plain(_connect(owner.folder, NAMES[kind], name))

    def joined(self, pair: Pair) -> None:
        """It is its owner's from now on."""
        owner = self._owner
        assert owner is not None, "who arrived has one"
        owner.pairs = {one for one in owner.pairs if one in self._door.loop.pairs} | {pair}

    def refused(self, error: OSError) -> None:
        """Say why."""
        self._door.refused(self._peer, _why(error))

    def forget(self) -> None:
        """It is no stranger any more, or gone."""
        super().forget()
        self._door.strangers -= 1


class Door:
    """See the head of the file. Owns both listening sockets."""

    def __init__(self, tcp: socket.socket, owners: socket.socket, order: dict[str, Any]) -> None:
        self.loop = Loop()
        self.port: int = tcp.getsockname()[1]
        self.strangers = 0
        self._owners: dict[str, Owner] = {}
        self._unknown: set[Owner] = set()
        self._last = time.monotonic()
        self._log = str(order["log"])
        self._said: tuple[str, float] = ("", 0.0)
        self._context = _context(order["listener"], order["authority"])
        self._tcp, self._control = tcp, owners
        self._mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with suppress(OSError):  # somebody else has it: then it is marked
            self._mark.bind(MARK % self.port)  # no task of any gate reaches it (ADR-1)
        for sock, ready in ((tcp, self._stranger), (owners, self._owner)):
            sock.setblocking(False)
            self.loop.watch(sock.fileno(), _Ready(ready), IN)

    def wrap(self, raw: socket.socket) -> ssl.SSLSocket:
        """Make a connection speak TLS."""
        return self._context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)

    def _stranger(self) -> None:
        try:
            sock, peer = self._tcp.accept()
        except OSError:
            time.sleep(0.01)
            return
        if self.strangers >= STRANGERS:
            sock.close()
            self.refused(f"{peer[0]}:{peer[1]}", "too many that have not said who they are")
            return
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        Stranger(self, sock, f"{peer[0]}:{peer[1]}")

    def _owner(self) -> None:
        with suppress(OSError):
            self._unknown.add(Owner(self, self._control.accept()[0]))

    def owner_of(self, certificate: bytes | None) -> Owner:
        """Return the owner of the task that a certificate is of.

        Raises:
            OSError: when there is none.
        """
        owner = self._owners.get(sha256(certificate or b"").hexdigest())
        if owner is None:
            raise CutError(0, "the certificate is of no task that lives")
        if owner.ends_at <= _now():
            raise CutError(0, f"the certificate of {owner.task} has expired")
        return owner

    def enter(self, owner: Owner, fingerprint: str) -> None:
        """An owner has said who it is.

        Raises:
            ValueError: when there is one already.
        """
        if fingerprint in self._owners:
            raise ValueError(fingerprint)
        owner.fingerprint = fingerprint
        self._owners[fingerprint] = owner
        self._unknown.discard(owner)
        owner.sock.send(json.dumps({"port": self.port}).encode() + b"\n")

    def leave(self, owner: Owner) -> None:
        """An owner has gone, or its time is over: so is its route."""
        self._unknown.discard(owner)
        if self._owners.get(owner.fingerprint) is owner:
            del self._owners[owner.fingerprint]
        for pair in owner.pairs:
            pair.close(cut=True)
        self.loop.forget(owner.sock.fileno())
        owner.sock.close()

    def refused(self, peer: str, why: str) -> None:
        """Record who was not let in; equal ones within a second are one line. Never raises."""
        now = _now()
        if self._said[0] == why and now - self._said[1] < _FOLD:
            return
        self._said = (why, now)
        line = json.dumps({"at": round(now, 3), "event": "relay.refused", "from": peer, "why": why}) + "\n"
        with suppress(OSError):
            if os.path.exists(self._log) and os.path.getsize(self._log) > LOG_BYTES:
                os.replace(self._log, f"{self._log}.1")
            fd = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(fd, "ab") as file:
                file.write(line.encode())

    def serve(self) -> None:
        """Serve until there has been no owner for a while."""
        while self._owners or time.monotonic() - self._last < ALONE:
            self.loop.turn(AGAIN)
            if self._owners:
                self._last = time.monotonic()
            now = _now()
            for owner in [one for one in self._owners.values() if one.ends_at <= now]:
                self.refused("", f"the seven days of {owner.task} are over: its route is gone")
                self.leave(owner)


class _Ready:
    """What is called when something may have happened."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def ready(self, _fd: int, _mask: int) -> None:
        """Call it."""
        self._call()


def _context(listener: str, authority: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.load_verify_locations(cadata=authority)
    fd = os.memfd_create("listener", os.MFD_CLOEXEC)
    try:
        os.write(fd, listener.encode())
        context.load_cert_chain(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
    return context


def _is_place(name: bytes) -> bool:
    try:
        place_of(name)
    except ValueError:
        return False
    return True


def _connect(folder: str, name: str, own: bytes = b"") -> socket.socket:
    """Return a connection to a socket in a folder, however long its path is; its end is called `own`."""
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return connect_unix(f"/proc/self/fd/{fd}/{name}", own)
    finally:
        os.close(fd)


def _why(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not good: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    return error.strerror or str(error) or type(error).__name__


def _now() -> float:
    return time.time()  # noqa: TID251 - the clock of a process of its own comes in here


def main() -> None:
    """Serve with what the starter left: see the head of the file."""
    order = json.loads(sys.stdin.readline())
    Door(socket.socket(fileno=order["tcp"]), socket.socket(fileno=order["owners"]), order).serve()
