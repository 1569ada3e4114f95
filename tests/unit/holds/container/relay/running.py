"""The relay's program as an image has it, and one worker's relay that runs, with the gate's side of it."""

from __future__ import annotations

import functools
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tidegate.holds.container import relay_image
from tidegate.holds.container.relay.words import READY

PATIENCE = 180.0


@functools.cache
def _written() -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory(prefix="tidegate-relay-test-")
    relay_image.write_program(folder.name)
    return folder


def program() -> str:
    """The folder of the program, which Python runs by its name; nothing of this repository is needed by it."""
    return _written().name


def argv(*words: str) -> list[str]:
    """A command of the relay."""
    return [sys.executable, "-I", "-S", "-B", program(), *words]


def listen(path: Path) -> socket.socket:
    """Return a listening unix socket with an end to each wait."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path.unlink(missing_ok=True)
    sock.bind(str(path))
    sock.listen(64)
    sock.settimeout(PATIENCE)
    return sock


class Owner:
    """The gate's side of one worker's relay: both sockets, and the relay itself as a process."""

    def __init__(self, folder: Path, grace: float = 20.0) -> None:
        self.folder = folder
        self.gate = listen(folder / "gate.sock")
        self.life = listen(folder / "life.sock")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = taken.getsockname()[1]
        words = argv("worker", str(folder), str(self.port), str(grace))
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    def greet(self) -> socket.socket:
        """Take the relay's own connection, and let it know that it has an owner."""
        life = self.life.accept()[0]
        life.settimeout(PATIENCE)
        life.send(b"+")
        assert life.recv(1) == b"+"
        return life

    def ready(self) -> socket.socket:
        """The same, once the relay has said so."""
        life = self.greet()
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == READY + "\n"
        return life

    def client(self) -> socket.socket:
        """Connect as the worker does."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def accepted(self) -> socket.socket:
        """The gate's end of the next connection."""
        sock = self.gate.accept()[0]
        sock.settimeout(PATIENCE)
        return sock

    def close(self) -> None:
        """End all of it."""
        self.process.kill()
        self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.gate.close()
        self.life.close()
