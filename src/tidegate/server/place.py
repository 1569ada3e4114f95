"""The server's place in the state folder: one server at a time, its sockets, and how others find it.

    <state>/run/lock          held (flock(2)) while a server lives; its pid inside, for people
    <state>/run/front.sock    fronts: run, exec, task (front_door.py)
    <state>/run/api.sock      the API, for this user
    <state>/run/server.json   {"pid", "version", "api_port", "started"}
    <state>/run/port          the TCP port of the last server: a page that was open finds the next one

The folder is private to the user and hidden from every hold. What a server that was killed left is taken over: only
who has the lock touches it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from typing import TYPE_CHECKING

from tidegate.model.errors import StartError
from tidegate.runtime.state import FRONT_SOCKET, RUN_FOLDER, make_private_folder, unix_address, write_private

if TYPE_CHECKING:
    from typing import Any

API_SOCKET, INFO = "api.sock", "server.json"
_BACKLOG = 1024  # a thousand fronts may start at once
_LOOPBACK = "127.0.0.1"


class Place:
    """See the head of the file. `claim` first, `release` last."""

    def __init__(self, state: str) -> None:
        self.folder = os.path.join(state, RUN_FOLDER)
        self._state = state
        self._lock = -1

    def claim(self) -> None:
        """Become the one server of this state folder.

        Raises:
            StartError: when another one is, or the folder cannot be used.
        """
        make_private_folder(self._state)
        make_private_folder(self.folder)
        path = os.path.join(self.folder, "lock")
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise _unusable(path, error) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
            os.close(fd)
            raise StartError(
                f"a server runs already (pid {pid or 'unknown'})",
                fix="use that one, or end it first: kill " + (pid or "PID"),
                code="server-runs",
            ) from None
        try:
            if os.path.lexists(os.path.join(self.folder, INFO)):
                os.unlink(os.path.join(self.folder, INFO))  # of one that was killed: nobody serves yet
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(fd)
            raise _unusable(path, error) from None
        self._lock = fd

    def listen(self, name: str) -> socket.socket:
        """Return a listening unix socket of this name that only this user can open.

        Raises:
            StartError: when it cannot be made.
        """
        path = os.path.join(self.folder, name)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if os.path.lexists(path):
                os.unlink(path)
            with unix_address(path) as address:
                sock.bind(address)
            os.chmod(path, 0o600)
            sock.listen(_BACKLOG)
        except OSError as error:
            sock.close()
            raise _unusable(path, error) from None
        sock.setblocking(False)
        return sock

    def listen_tcp(self, port: int) -> socket.socket:
        """Return a listening socket on loopback: on this port; for 0 on the one of the last server, or any.

        Raises:
            StartError: when a port that was asked for is taken.
        """
        for wanted in (port,) if port else (self._last_port(), 0):
            try:
                sock = socket.create_server((_LOOPBACK, wanted), backlog=128)
            except OSError as error:
                why = error
                continue
            sock.setblocking(False)
            return sock
        raise StartError(
            f"port {port} of {_LOOPBACK} cannot be listened on: {os.strerror(why.errno or errno.EIO).lower()}",
            fix="another one: --port N, or --port 0 for any",
            code="port",
        )

    def _last_port(self) -> int:
        try:
            with open(os.path.join(self.folder, "port"), encoding="ascii") as file:
                port = int(file.read(8))
        except (OSError, ValueError):
            return 0
        return port if 0 < port < 65536 else 0

    def publish(self, info: dict[str, Any]) -> None:
        """Write server.json, at once or not at all.

        Raises:
            StartError: when it cannot be written.
        """
        try:
            # server.json last: whoever sees it finds the rest as it is to be.
            for name, text in (("port", f"{info.get('api_port') or 0}\n"), (INFO, json.dumps(info) + "\n")):
                write_private(os.path.join(self.folder, name), text.encode("ascii"))
        except OSError as error:
            raise _unusable(self.folder, error) from None

    def release(self) -> None:
        """Take away what others find the server by, and let the next one in."""
        if self._lock < 0:
            return
        for name in (FRONT_SOCKET, API_SOCKET, INFO):
            try:
                os.unlink(os.path.join(self.folder, name))
            except FileNotFoundError:
                continue
            except OSError:
                break  # the folder was taken from under us; the next server takes over what is left
        os.close(self._lock)
        self._lock = -1


def _unusable(path: str, error: OSError) -> StartError:
    why = os.strerror(error.errno or errno.EIO).lower()
    return StartError(
        f"{path!r} cannot be used: {why}", fix="see that the folder is yours and has room", code="state-folder"
    )
