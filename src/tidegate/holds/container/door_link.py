"""Tell the listener for relays (door.py) of a task, and start it where none runs.

    <state>/run/ca/door.sock    where it hears of tasks; for this user alone, as the folder is
    <state>/run/ca/port         the port of the last one: the next one takes the same, so that relays find it
    <state>/run/ca/lock         held (flock(2)) while one is started
    <state>/log/relay.jsonl     whom it refused

Rules of the file: one listener for all tasks of a state folder, whoever began them; it outlives whoever started it and
ends a moment after the last owner. Where its port is taken by another program it gets another one, with a warning:
older tasks have no route then. It is on 127.0.0.1, whatever happens.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tidegate.holds.container.certificates import FOLDER
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidegate.holds.container.certificates import Authority, TaskKeys

ADDRESS: Final = "127.0.0.1"
SOCKET: Final = "door.sock"
LOG: Final = "log/relay.jsonl"
_PATIENCE = 20.0  # seconds for a listener to answer
_SOURCE: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
_PROGRAM: Final = "import sys; sys.path.insert(0, sys.argv[1]); from tidegate.holds.container.door import main; main()"
_started: list[subprocess.Popen[bytes]] = []  # they outlive whoever asks for them


class Route:
    """A task that the listener knows. `descriptor` is readable once it does no more."""

    def __init__(self, sock: socket.socket, port: int) -> None:
        self.port = port
        self._sock = sock

    @property
    def descriptor(self) -> int:
        """What becomes readable when the listener has ended, or the certificate has."""
        return self._sock.fileno()

    def close(self) -> None:
        """The task has ended: its certificate is worth nothing from now on."""
        self._sock.close()


def register(
    state: str,
    task: str,
    keys: TaskKeys,
    folder: str,
    authority: Authority,
    *,
    now: float,
    warn: Callable[[str], None],
) -> Route:
    """Let the listener lead what has this certificate to the sockets in `folder`.

    Raises:
        StartError: when there is no listener, and none can be started.
    """
    order = {"task": task, "fingerprint": keys.fingerprint, "folder": folder, "ends_at": keys.ends_at}
    line = json.dumps(order).encode() + b"\n"
    place = os.path.join(state, FOLDER)
    try:
        route = _ask(place, line)
        if route is None:
            with _locked(place):
                route = _ask(place, line)
                if route is None:
                    _start(state, authority, now, warn)
                    route = _ask(place, line)
    except OSError as error:
        raise _cannot(error.strerror or str(error)) from None
    if route is None:
        raise _cannot("it ended at once")
    return route


def _cannot(why: str) -> StartError:
    return StartError(
        f"the listener for relays cannot be had: {why}", fix="see tidegate doctor; --transport relay", code="listener"
    )


def _ask(place: str, line: bytes) -> Route | None:
    """Register with the listener that runs, None where none does."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fd = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sock.settimeout(_PATIENCE)
        sock.connect(f"/proc/self/fd/{fd}/{SOCKET}")
        sock.sendall(line)
        answer = b""
        while not answer.endswith(b"\n"):
            data = sock.recv(1024)
            if not data:
                sock.close()
                return None
            answer += data
    except (FileNotFoundError, ConnectionError):
        sock.close()
        return None
    except OSError:
        sock.close()
        raise
    finally:
        os.close(fd)
    return Route(sock, int(json.loads(answer)["port"]))


@contextmanager
def _locked(place: str) -> Iterator[None]:
    fd = os.open(os.path.join(place, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _start(state: str, authority: Authority, now: float, warn: Callable[[str], None]) -> None:
    place = os.path.join(state, FOLDER)
    os.makedirs(os.path.join(state, os.path.dirname(LOG)), 0o700, exist_ok=True)
    with _listen(place, warn) as tcp, _owners(place) as owners:
        order = {
            "tcp": tcp.fileno(),
            "owners": owners.fileno(),
            "listener": authority.listener(now).decode(),
            "authority": authority.pem.decode(),
            "log": os.path.join(state, LOG),
        }
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", _PROGRAM, _SOURCE],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            pass_fds=(tcp.fileno(), owners.fileno()),
            start_new_session=True,
        )
        _started.append(process)
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(json.dumps(order).encode() + b"\n")


def _listen(place: str, warn: Callable[[str], None]) -> socket.socket:
    """Return the listening socket: on the port of the last listener, or, where somebody else has that, on another."""
    path = os.path.join(place, "port")
    last = kept_port(place)
    try:
        sock = socket.create_server((ADDRESS, last), backlog=128)
    except OSError:
        if not last:
            raise
        sock = socket.create_server((ADDRESS, 0), backlog=128)
        warn(
            f"port {last} of {ADDRESS} is taken by another program: the listener for relays moves to port "
            f"{sock.getsockname()[1]}, and older tasks have no route until they are started again"
        )
    port = sock.getsockname()[1]
    if port != last:
        fd = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="ascii") as file:
            file.write(f"{port}\n")
        os.replace(f"{path}.new", path)
    return sock


def kept_port(place: str) -> int:
    """Return the port of the last listener, 0 where there was none."""
    try:
        with open(os.path.join(place, "port"), encoding="ascii") as file:
            port = int(file.read(10))
    except (OSError, ValueError):
        return 0
    return port if 0 < port < 65536 else 0


def _owners(place: str) -> socket.socket:
    path = os.path.join(place, SOCKET)
    fd = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if os.path.lexists(path):
            os.unlink(path)
        sock.bind(f"/proc/self/fd/{fd}/{SOCKET}")
        sock.listen(128)
    except OSError:
        sock.close()
        raise
    finally:
        os.close(fd)
    return sock


def now() -> float:
    """Return Unix time in seconds."""
    return time.time()  # noqa: TID251 - where a transport's clock comes in
