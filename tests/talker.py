"""A task whose tunnels are opened, used and closed as a test says, behind a running server or alone."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Self

from tests.product import PYTHON
from tests.served import until

if TYPE_CHECKING:
    from tests.product import Product
    from tests.served import Served

TALK = """
import os, socket, sys
host, port = os.environ["HTTP_PROXY"].removeprefix("http://").rstrip("/").rsplit(":", 1)
tunnels = []
for line in sys.stdin:
    word, where = line.split()
    if word == "open":
        sock = socket.create_connection((host, int(port)))
        sock.sendall(f"CONNECT {where} HTTP/1.1\\r\\nHost: {where}\\r\\n\\r\\n".encode())
        print(sock.recv(4096).split()[1].decode(), flush=True)
        tunnels.append(sock)
    elif word == "close":
        tunnels.pop(int(where)).close()
        print("closed", flush=True)
    elif word == "send":
        data = bytes(int(where))
        tunnels[0].sendall(data)
        left = len(data)
        while left:
            left -= len(tunnels[0].recv(left))
        print("sent", flush=True)
    else:
        try:
            data = tunnels[int(where)].recv(1)
        except ConnectionError:  # an end, too
            data = b""
        print("byte" if data else "end", flush=True)
"""

COMMAND = ("--", PYTHON, "-c", TALK)


class Talker:
    """The task of `tidegate run WORDS`. `process` is its front, `id` the task's."""

    def __init__(self, process: subprocess.Popen[str], id: str = "") -> None:  # noqa: A002 - what everybody calls it
        self.process = process
        self.id = id

    @classmethod
    def behind(cls, served: Served, *words: str) -> Talker:
        """Start one behind a server."""
        process = served.start("run", *words, *COMMAND, stdin=subprocess.PIPE)
        return cls(process, str(until(lambda: next((one["id"] for one in served.json("task", "list")), ""))))

    @classmethod
    def alone(cls, product: Product, *words: str) -> Talker:
        """Start one with a gate of its own."""
        return cls(product.start(*words, *COMMAND, stdin=subprocess.PIPE))

    def says(self, line: str) -> str:
        """Have it do something, and return what came of it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=60)
