"""The keeper of a command's tools, as its front knows it (SRV-6): begun before the hold is built, ended with the task.

The keeper is a child of the front: what a tool runs has the person's rights, environment and folder rights, and never
those of a server or a gate. The front gives the gate one end of a channel (link.tools) and keeps `life`, whose end is
the end of the keeper and of all that it runs.
"""

from __future__ import annotations

import json
import os
import select
import time
from _socket import AF_UNIX, SHUT_WR, SOCK_CLOEXEC, SOCK_STREAM, socketpair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from socket import socket
    from typing import NoReturn

    from tidegate.runtime.link import Link
    from tidegate.runtime.task import Ended, Order
    from tidegate.tools.declaration import Tool
    from tidegate.tools.program import Ran

_PATIENCE = 5.0  # seconds for a keeper to end what runs
_MOST_LOG = 1 << 20  # bytes of what tools said on standard error, of one task
LOG = "tools.log"


def with_tools(order: Order, tools: Sequence[Tool], link: Link, act: Callable[[], Ended]) -> Ended:
    """Act while the tools of the order are offered through this link; say afterwards what was called."""
    if not tools:
        return act()
    keeper = ToolKeeper(order, tools)
    link.tools = keeper.channel.fileno()
    link.tell_tools, link.end_tools = keeper.tell, keeper.finish
    try:
        ended = act()
        keeper.finish()
        return ended.replace(signed=(*ended.signed, *keeper.lines))
    finally:
        link.tools, link.tell_tools, link.end_tools = -1, None, None
        keeper.finish()


class ToolKeeper:
    """See the head of the file. `channel` is the gate's end, `lines` what a person is told once it has ended."""

    def __init__(self, order: Order, tools: Sequence[Tool]) -> None:
        from socket import SOCK_SEQPACKET
        from socket import socketpair as pair

        from tidegate.runtime.state import make_task_folder

        self._log = os.path.join(make_task_folder(order.state, order.task), LOG)
        self.lines: list[str] = []
        self._ended = False
        self._waits = any(tool.apply_task_hosts for tool in tools)  # it is to be told whom to trust
        self.channel, theirs = pair(AF_UNIX, SOCK_SEQPACKET)
        self._life, life = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)
        front = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            _be_keeper(front, theirs, life.detach(), self._log, order, {tool.name: tool for tool in tools})
        theirs.close()
        life.close()

    def tell(self, roots: str, authority: Sequence[str]) -> None:
        """Say whom programs behind the gate are to trust: roots as PEM, and the task's authority."""
        if self._waits:
            self._waits = False
            try:
                self._life.sendall(json.dumps([roots, list(authority)]).encode("ascii") + b"\n")
            except OSError:
                return  # it is gone, and no tool is offered

    def finish(self) -> None:
        """End it and what it runs. Later calls do nothing."""
        if self._ended:
            return
        self._ended = True
        self._life.shutdown(SHUT_WR)
        said, until = b"", time.monotonic() + _PATIENCE
        while select.select((self._life,), (), (), max(0.0, until - time.monotonic()))[0]:
            piece = self._life.recv(1 << 16)
            if not piece:
                break
            said += piece
        else:
            os.kill(self._pid, 9)  # its workers and their programs go with it (PR_SET_PDEATHSIG)
        self._life.close()
        self.channel.close()
        os.waitpid(self._pid, 0)
        self.lines = lines_of(json.loads(said) if said else {}, self._log)


def lines_of(counts: dict[str, dict[str, int]], log: str) -> list[str]:
    """Return what a person is told: a line for each tool that was called."""
    lines = []
    for name, how in sorted(counts.items()):
        calls = sum(how.values())
        others = ", ".join(f"{count} {word}" for word, count in sorted(how.items()) if word != "ok")
        lines.append(f"tool: {name} · {calls} call{'s' if calls != 1 else ''}{f' ({others})' if others else ''}")
    if counts and os.path.exists(log):
        lines.append(f"tool: what they said on standard error is in {log}")
    return lines


def _be_keeper(front: int, channel: socket, life: int, log: str, order: Order, tools: dict[str, Tool]) -> NoReturn:
    try:
        import signal
        from contextlib import suppress

        from tidegate.holds.control import close_all_but
        from tidegate.holds.init import fresh_signals
        from tidegate.holds.linux import PR_SET_PDEATHSIG, prctl
        from tidegate.inspect.strict_json import read  # noqa: F401 - workers need it, and are forked from here
        from tidegate.tools.keeper import Keeper

        fresh_signals()
        signal.signal(signal.SIGTERM, lambda *_: _stop())
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        os.setsid()  # Ctrl-C is for the command
        null = os.open("/dev/null", os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        close_all_but((channel.fileno(), life))
        if os.getppid() != front:
            os._exit(0)
        os.chdir("/")

        trusted = _told(life) if any(tool.apply_task_hosts for tool in tools.values()) else ("", ())

        def start(tool: Tool, data: bytes, ends: int) -> Ran:
            ran = _start(order, tool, data, ends, channel, trusted)
            _note(log, tool, ran)
            return ran

        keeper = Keeper(channel, life, tools, start)
        with suppress(SystemExit):
            keeper.serve()
        _clear(os.path.dirname(log))
        os.write(life, json.dumps(keeper.counts).encode("ascii"))
    finally:
        os._exit(0)


def _clear(base: str) -> None:
    """Remove the folders of programs whose workers were ended with them."""
    import shutil

    from tidegate.tools.program import PREFIX

    for name in os.listdir(base):
        if name.startswith(PREFIX):
            shutil.rmtree(os.path.join(base, name), ignore_errors=True)


def _told(life: int) -> tuple[str, tuple[str, ...]]:
    """Wait for what the front knows once its gate does; the end where that never comes."""
    data = bytearray()
    while not data.endswith(b"\n"):
        piece = os.read(life, 1 << 16)
        if not piece:
            raise SystemExit
        data += piece
    roots, authority = json.loads(data)
    return roots, tuple(authority)


def _stop() -> NoReturn:
    raise SystemExit


def _start(
    order: Order, tool: Tool, data: bytes, life: int, channel: socket, trusted: tuple[str, tuple[str, ...]]
) -> Ran:
    own = {"TIDEGATE_TASK": order.task, "TIDEGATE_TOOL": tool.name}
    if not tool.secrets:
        return _run(order, tool, data, life, channel, trusted, own)
    from tidegate.model.errors import TidegateError
    from tidegate.runtime.tool_secrets import ToolSecrets
    from tidegate.tools.program import Ran

    try:
        secrets = ToolSecrets(tool.secrets, order.state, order.environ, life)
    except TidegateError as error:
        return Ran("not-started", 0, b"", str(error).encode(), 0.0)
    return secrets.cover(_run(order, tool, data, life, channel, trusted, secrets.variables | own))


def _run(
    order: Order,
    tool: Tool,
    data: bytes,
    life: int,
    channel: socket,
    trusted: tuple[str, tuple[str, ...]],
    more: Mapping[str, str],
) -> Ran:
    from tidegate.runtime.state import make_task_folder
    from tidegate.tools.program import NOT_STARTED, Forked, run, see_through

    base = make_task_folder(order.state, order.task)  # the state folder is in no task's sight
    if tool.apply_task_hosts:
        from tidegate.runtime.tool_front import be_front

        ran = see_through(
            lambda _folder: Forked(lambda: be_front(order, tool, more, channel, trusted)),
            data,
            seconds=tool.timeout_seconds,
            most=tool.max_output_bytes,
            base=base,
            life=life,
        )
        return ran.replace(why="not-started") if ran.status == NOT_STARTED else ran
    return run(
        tool.command,
        os.path.realpath(tool.command[0]),
        data,
        order.environ,
        names=tool.env,
        more=more,
        seconds=tool.timeout_seconds,
        most=tool.max_output_bytes,
        base=base,
        life=life,
    )


def _note(log: str, tool: Tool, ran: Ran) -> None:
    """Keep what it said on standard error for the person, where no task reads it."""
    from tidegate.tools.calls import shown

    if not ran.errors:
        return
    try:
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(fd).st_size < _MOST_LOG:
                os.write(fd, f"[{tool.name}: {ran.why}]\n{shown(ran.errors)}\n".encode())
        finally:
            os.close(fd)
    except OSError:
        return  # a full disk stops no tool
