"""What there is around a hold for the rows to try: folders, files, and listeners that write down who came.

All of it is made for the occasion and is nobody's: below one folder, on ports that the kernel chose, and as sockets
with names of their own in the folders that every program uses. `close` removes what lies elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from typing import Any

from tidegate.gate.marks import Marks
from tidegate.holds import canaries, control, linux, network

MARK = "tidegate-canary-"
NOBODY = 54321
"""Who a set-user-id helper belongs to where we are root."""
# Where services of a user listen, below the runtime folder: a canary stands at each.
SERVICES = (
    *("docker.sock", "podman/podman.sock", "containerd/containerd.sock", "bus", "systemd/private", "wayland-0"),
    *("gnupg/S.gpg-agent", "gnupg/S.gpg-agent.ssh", "keyring/ssh", "ssh-agent.socket", "pulse/native", "pipewire-0"),
)
SERVED_FILES = (
    "tidegate.db",
    "tidegate.db-wal",
    "keys/actions.key",
    "log/actions.jsonl",
    "run/server.json",
    "run/lock",
)
_MOST = 4096  # bytes of what a listener is told


class Machine:
    """What there is outside: folders below `base`, and listeners that write down who came."""

    def __init__(self, base: str) -> None:
        self.home = os.path.join(base, "home")
        self.workspace = os.path.join(self.home, "work")
        self.hidden = os.path.join(self.home, ".config", "tidegate")
        self.hidden_link = os.path.join(self.home, ".state")
        self.absent = os.path.join(self.home, ".local", "share", "tidegate")
        self.readonly = os.path.join(self.workspace, "src")
        self.readonly_file = os.path.join(self.workspace, "pyproject.toml")
        self.runtime = os.path.join(base, "runtime")
        self.survivor = os.path.join(self.workspace, "survivor")
        self.helper = os.path.join(self.home, "helper")
        self.state = os.path.join(self.hidden_link, "tidegate")  # what a server has there
        self.person = os.path.join(base, "person")
        self.marks = Marks()
        self.heard: list[str] = []
        self.sockets: list[socket.socket] = []
        self.open_to_all: list[socket.socket] = []
        self.others: list[tuple[int, int]] = []
        self.files: list[str] = []
        for folder in (self.hidden, self.readonly, self.runtime, self.hidden_link + "-real/tidegate"):
            os.makedirs(folder)
        os.symlink(".state-real", self.hidden_link)
        for folder in ("run", "keys", "log"):
            os.mkdir(os.path.join(self.state, folder))
        for name in SERVED_FILES:
            with open(os.path.join(self.state, name), "w", encoding="ascii") as file:
                file.write("the server's\n")
        for name, text in (
            (self.hidden + "/secret", "secret"),
            (self.readonly + "/code.py", "print()\n"),
            (self.readonly_file, "x = 1\n"),
        ):
            with open(name, "w", encoding="ascii") as file:
                file.write(text)
        self._furnish()
        shutil.copyfile(shutil.which("cat") or "/bin/cat", self.helper)
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):  # where this is root of a namespace with one user, there is nobody else
                os.chown(self.helper, NOBODY, NOBODY)
        os.chmod(self.helper, 0o6755)  # noqa: S103 (it is about these bits)

    def _furnish(self) -> None:
        """Give a person a home folder and the workspace a repository."""
        for folder in ("projects", ".ssh", ".config", ".claude", "tools"):
            os.makedirs(os.path.join(self.person, folder))
        for folder in (".git/hooks", ".git/refs", ".git/objects", ".vscode"):
            os.makedirs(os.path.join(self.workspace, folder))
        homes = (".bashrc", "notes", ".ssh/config", ".claude/settings.json")
        works = (".git/config", ".git/HEAD", ".vscode/tasks.json", "package.json")
        for folder, names in ((self.person, homes), (self.workspace, works)):
            for name in names:
                with open(os.path.join(folder, name), "w", encoding="ascii"):
                    pass

    def listen(self) -> dict[str, Any]:
        """Open the listeners and return where they are."""
        own = next((address for family, address in canaries.own_addresses() if family == socket.AF_INET), "")
        mark = f"{MARK}{os.getpid()}.sock"
        for name in SERVICES:
            self._add_unix(os.path.join(self.runtime, name))
        run = f"/run/{mark}" if os.access("/run", os.W_OK) else f"{self.runtime}/s"
        return {
            "tcp4": self._add(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "open_tcp4": self._add(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0), expected=True),
            "tcp6": self._add(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)),
            "udp4": self._add(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            "published": self._publish(),
            "own4": own,
            "own4_tcp": self._add(socket.AF_INET, socket.SOCK_STREAM, (own, 0)) if own else 0,
            "unix_tmp": self._add_unix(f"/tmp/{mark}"),
            "unix_run": self._add_unix(run),
            "api_tcp4": self._add(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "unix_front": self._add_unix(self.state + "/run/front.sock"),
            "unix_api": self._add_unix(self.state + "/run/api.sock"),
            "unix_home": self._add_unix(self.home + "/ctl.sock"),
            "unix_work": self._add_unix(self.workspace + "/app.sock"),
            "unix_folder": self._add_unix(self.home + "/agent/s"),
            "unix_abstract": self._add_unix(f"@{mark}"),
        }

    def _publish(self) -> int:
        """A port that is another task's, for all that gates can see."""
        port = self._add(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self.marks.hold(port)
        return port

    def paths(self) -> dict[str, str]:
        """Where the files are, by the names that rows know them by."""
        names = (
            "home",
            "person",
            "workspace",
            "runtime",
            "hidden",
            "hidden_link",
            "absent",
            "readonly",
            "readonly_file",
        )
        return {name: getattr(self, name) for name in (*names, "survivor", "helper", "state")}

    def other_task(self, port: int) -> int:
        """A process in a network of its own that has a gate at `port`; its pid. It ends when we close."""
        ours, theirs = control.pair()
        child = os.fork()
        if child == 0:
            try:
                os.close(ours)
                linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNET)
                network.raise_loopback()
                control.send(theirs, "gate", (network.listen(port),))
                control.receive(theirs)
            finally:
                os._exit(0)
        os.close(theirs)
        received = control.receive(ours)
        if received is None or not received[1]:
            raise OSError(5, "no other task")
        self._watch(socket.socket(fileno=received[1][0]))
        self.others.append((ours, child))
        return child

    def late_paths(self) -> dict[str, str]:
        """Where `listen_late` will put its sockets."""
        return {
            "late_home": self.home + "/late.sock",
            "late_work": self.workspace + "/late.sock",
            "late_elsewhere": self.workspace + "/elsewhere.sock",
        }

    def listen_late(self) -> None:
        """Open more, when the task's view is built: at home, in the workspace, and from a namespace of its own."""
        paths = self.late_paths()
        self._add_unix(paths["late_home"])
        self._add_unix(paths["late_work"])
        here, there = socket.socketpair()
        child = os.fork()
        if child == 0:
            linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNET)
            wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            wire.bind(paths["late_elsewhere"])
            socket.send_fds(there, [b"x"], [wire.fileno()])
            os._exit(0)
        wire = socket.socket(fileno=socket.recv_fds(here, 1, 1)[1][0])
        os.waitpid(child, 0)
        self.files.append(paths["late_elsewhere"])
        self._watch(wire)

    def close(self) -> None:
        """Close the listeners and remove their files."""
        for wire in (*self.sockets, *self.open_to_all):
            wire.close()
        self.marks.close()
        for channel, child in self.others:
            os.close(channel)
            os.waitpid(child, 0)
        for name in self.files:
            if os.path.lexists(name):
                os.unlink(name)

    def _add(self, family: int, kind: int, address: tuple[str, int], *, expected: bool = False) -> int:
        wire = socket.socket(family, kind)
        try:
            wire.bind(address)
        except OSError:
            wire.close()
            return 9  # this machine has no such address
        self._watch(wire, expected=expected)
        port: int = wire.getsockname()[1]
        return port

    def _add_unix(self, address: str) -> str:
        wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if address.startswith("@"):
            wire.bind("\0" + address[1:])
        else:
            os.makedirs(os.path.dirname(address), exist_ok=True)
            wire.bind(address)
            self.files.append(address)
        self._watch(wire)
        return address

    def _watch(self, wire: socket.socket, *, expected: bool = False) -> None:
        if wire.type == socket.SOCK_STREAM:
            wire.listen(16)
        if not expected:
            self.sockets.append(wire)
        else:
            self.open_to_all.append(wire)

    def who_came(self) -> list[tuple[str, str]]:
        """Which listeners were reached, and what was said there."""
        found = []
        for wire in self.sockets:
            wire.setblocking(False)
            while True:
                try:
                    said = _take(wire)
                except BlockingIOError:
                    break
                found.append((str(wire.getsockname()), said.decode("ascii", "backslashreplace")))
        return found


def _take(wire: socket.socket) -> bytes:
    """What is next at this listener: a datagram, or what a connection has said so far."""
    if wire.type != socket.SOCK_STREAM:
        return wire.recv(_MOST)
    with wire.accept()[0] as connection:
        connection.setblocking(False)
        try:
            return connection.recv(_MOST)
        except OSError:
            return b""
