"""A running `tidegate serve`, and tasks behind it as `run` brings them, but for the hold.

A task here is a front's conversation with the server and a listening socket of its own on loopback, where `run` hands
over one that was made in its namespace: what the server does with either is the same. A thousand network namespaces
would measure the machine, not the server.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import time
from typing import TYPE_CHECKING

from bench import processes
from bench.build import ROOT
from bench.loads import DENIED
from bench.processes import BenchError
from tidegate.cli.api_client import ApiClient
from tidegate.holds.inside import PROXY, TaskSockets
from tidegate.model.errors import TidegateError
from tidegate.policy.layers import command_line, join
from tidegate.policy.snapshot import to_plain
from tidegate.runtime.server_link import find_server

if TYPE_CHECKING:
    import subprocess

_HEAD_BYTES = 65536


class Server:
    """`./tidegate serve` with a home of its own below `folder`."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.join(folder, "server")
        os.makedirs(self.folder, exist_ok=True)
        self.environment = {"HOME": self.folder, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        self.state = os.path.join(self.folder, ".local", "state", "tidegate")
        self.process: subprocess.Popen[bytes] | None = None
        self.pid = 0

    def start(self) -> None:
        """Start it, and wait until it serves.

        Raises:
            BenchError: when it does not.
        """
        log = os.path.join(self.folder, "output")
        command = [os.path.join(ROOT, "tidegate"), "serve"]
        self.process = processes.start(command, log=log, env=self.environment, cwd=self.folder)
        info = os.path.join(self.state, "run", "server.json")
        processes.wait_until(
            lambda: os.path.exists(info), f"the server (its output: {log})", seconds=120, process=self.process
        )
        with open(info, encoding="utf-8") as file:
            self.pid = json.load(file)["pid"]

    def api(self) -> ApiClient:
        """Return a client of its API."""
        return ApiClient(os.path.join(self.state, "run", "api.sock"))

    def footprint(self) -> processes.Footprint:
        """Return what it holds now."""
        return processes.footprint([self.pid])

    def cpu(self) -> float:
        """Return the processor seconds it has used."""
        return processes.cpu_seconds([self.pid])

    def stop(self) -> float:
        """End it; return how many seconds that took."""
        began = time.perf_counter()
        if self.process is not None:
            processes.stop(self.process, patience=60)
        return time.perf_counter() - began


class Task:
    """One task behind a server, which may reach `rules`."""

    def __init__(self, server: Server, name: str, rules: list[str]) -> None:
        try:
            link = find_server(server.state, lambda _line: None)
            if link is None:
                raise BenchError("the server is not there any more")
            self._link = link
            link.configure(
                {
                    "task": name,
                    "phase": "runtime",
                    "policy": to_plain(join(command_line(allow=rules, profile="closed"))),
                    "log": os.path.join(server.folder, f"{name}.jsonl"),
                    "rotate": True,
                    "own_names": (),
                    "command": ("bench",),
                    "folder": server.folder,
                    "hold": "netns",
                }
            )
            with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
                self.address: tuple[str, int] = listener.getsockname()
                link.deliver(TaskSockets((PROXY,), (listener.fileno(),)))
                link.confirm()
            link.begin(0.0)
        except TidegateError as error:
            raise BenchError(f"task {name}: {error}") from None
        self._tunnels: list[socket.socket] = []

    def connect(self, where: str) -> tuple[socket.socket, bytes]:
        """Send a CONNECT; return the connection and the head of the answer."""
        sock = socket.create_connection(self.address, timeout=30)
        sock.sendall(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode("ascii"))
        return sock, sock.recv(_HEAD_BYTES)

    def hold(self, where: str, count: int) -> None:
        """Open so many tunnels and keep them.

        Raises:
            BenchError: when one is not opened.
        """
        for _ in range(count):
            sock, head = self.connect(where)
            self._tunnels.append(sock)
            if b" 200 " not in head[:20]:
                raise BenchError(f"a tunnel was not opened: {head[:80]!r}")

    def timed(self, where: str) -> float:
        """Return the seconds from connecting to the answer."""
        began = time.perf_counter()
        sock, _head = self.connect(where)
        took = time.perf_counter() - began
        sock.close()
        return took

    def refused(self) -> None:
        """Ask for what no rule names."""
        self.connect(DENIED)[0].close()

    def close(self) -> None:
        """Let go of its tunnels and end it."""
        for sock in self._tunnels:
            sock.close()
        self._link.close()


def raise_descriptors() -> int:
    """Take as many descriptors as the machine gives; return how many."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
