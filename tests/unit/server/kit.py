"""What the server's tests share: a whole server in this process, and fronts that speak to it as `run` does.

    def test_it(tmp_path):
        async def go(server):
            front = await Front.open(server, "run", allow=("a.test:80",))
            ...
        served(tmp_path, go)

The server, its gate, store and log are the real ones; the sockets are this process's own.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tidegate import __version__
from tidegate.holds.inside import PROXY, TaskSockets
from tidegate.model.errors import StartError
from tidegate.policy.layers import command_line, join
from tidegate.policy.snapshot import to_plain
from tidegate.runtime.server_link import find_server
from tidegate.server.serve import Server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tidegate.policy.policy import Policy
    from tidegate.runtime.server_link import ServerLink


_open: list[Front] = []
_THREADS = ThreadPoolExecutor(64)  # not asyncio's own, which the server works with


async def _blocking(call: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, call, *arguments)


def policy(*allow: str, ask: tuple[str, ...] = (), deny: tuple[str, ...] = (), profile: str = "closed") -> Policy:
    """Return a policy as the command line makes it."""
    return join(command_line(allow=allow, ask=ask, deny=deny, profile=profile))


def served(folder: Path, act: Callable[[Server], Awaitable[Any]], *, warned: list[str] | None = None) -> Any:
    """Run a server whose state is below `folder` while `act` acts, and return what that returns."""

    async def run() -> Any:
        lines: list[str] = [] if warned is None else warned
        environ = {"HOME": str(folder / "home")}
        server = Server(str(folder / "state"), environ=environ, warn=lines.append)
        await server.start()
        server.announce()
        try:
            async with asyncio.timeout(120):
                return await act(server)
        finally:
            for front in _open:
                front.drop()
            _open.clear()
            began = time.monotonic()
            await server.stop()
            assert time.monotonic() - began < 10
            assert warned is not None or not lines, lines

    return asyncio.run(run())


async def until(condition: Callable[[], bool], what: str = "it did not happen") -> None:
    """Wait until something is so."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.005)


def actions(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of the action log."""
    return [json.loads(line) for line in (folder / "state" / "log" / "actions.jsonl").read_bytes().splitlines()]


class Front:
    """A front without a hold: its listener is this process's own."""

    def __init__(self, server: Server, link: ServerLink, log: str) -> None:
        self.server = server
        self.link = link
        self.log = log
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self.warned: list[str] = []
        self._writers: list[asyncio.StreamWriter] = []
        _open.append(self)

    @classmethod
    async def open(
        cls,
        server: Server,
        folder: Path,
        *,
        task: str = "t1",
        rules: Policy | None = None,
        ask: str = "no",
        begin: bool = True,
        where: str = "",
        deliver: TaskSockets | None = None,
        **order: Any,
    ) -> Front:
        """Begin a `run`, as far as its first connection."""
        warned: list[str] = []
        link = await _blocking(find_server, server.state, warned.append)
        assert link is not None
        front = cls(server, link, str(folder / f"{task}.jsonl"))
        front.warned = warned
        await _blocking(
            link.configure,
            {
                "task": task,
                "phase": "runtime",
                "policy": to_plain(rules or policy()),
                "log": front.log,
                "rotate": True,
                "own_names": (),
                "command": ("true",),
                "folder": where or str(folder),
                "hold": "netns",
                "ask": ask,
            }
            | order,
        )
        await front.serve(begin=begin, deliver=deliver)
        return front

    @classmethod
    async def join(cls, server: Server, task: str, *, ask: str = "no") -> Front:
        """Begin an `exec`, as far as its first connection."""
        link = await _blocking(find_server, server.state, print)
        assert link is not None
        order = {"task": task, "command": ["true"], "hold": "netns", "ask": ask, "own_names": ()}
        front = cls(server, link, "")
        await _blocking(link.join, order)
        await front.serve()
        return front

    async def serve(self, *, begin: bool = True, deliver: TaskSockets | None = None) -> None:
        """Hand over the listener, or what is to be delivered in its place."""
        sockets = deliver or TaskSockets((PROXY,), (self.listener.fileno(),))
        await _blocking(self.link.deliver, sockets)
        await _blocking(self.link.confirm)
        self.listener.close()
        if begin:
            self.link.begin(0.0)

    async def connect(self, where: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
        """Send a CONNECT; return the connection and the head of the answer with what comes at once."""
        sock = socket.socket()
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, self.address)
        reader, writer = await asyncio.open_connection(sock=sock)  # noqa: TID251  a client of the test
        self._writers.append(writer)
        writer.write(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        return reader, writer, head

    async def asks(self, where: str) -> bytes:
        """Return the whole answer to a CONNECT that is refused."""
        reader, writer, head = await self.connect(where)
        rest = await reader.read()
        writer.close()
        return head + rest

    async def finish(self) -> tuple[list[Any], int] | None:
        """End it, and return the counts."""
        return await _blocking(self.link.finish)

    def drop(self) -> None:
        """Go without a word, as a front that was killed, and so are its clients."""
        for writer in self._writers:
            writer.close()
        self.listener.close()
        self.link.close()

    async def told(self) -> str:
        """Wait for what makes its command end."""

        def read() -> str:
            while data := self.link.channel.recv(65536):
                why = self.link.heard(data)
                if why:
                    return why
            return ""

        return await _blocking(read)


__all__ = ["Front", "StartError", "__version__", "actions", "policy", "served", "until"]
