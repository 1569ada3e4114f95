"""`tidegate attach`: a gate for a container that somebody's own launcher started, until the container ends (HLD-4).

The policy is a task's of the server (`tidegate task create`), frozen with it. When the server goes away the container
has no route; when it is back, within `PATIENCE`, the container gets its channel back under the policy it was attached
with (HLD-8). When this command ends, however it does, the container has no route any more.
"""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING

import click

from tidegate.cli.launcher import renewed
from tidegate.cli.main import raw, say
from tidegate.model.errors import EXIT_GATE_LOST, StartError, UsageError
from tidegate.runtime.state import state_folder

if TYPE_CHECKING:
    from typing import Any, Self

    from tidegate.cli.attach_tools import AttachedTools
    from tidegate.holds.container.attaching import Attached
    from tidegate.holds.container.engine import Engine
    from tidegate.holds.inside import TaskSockets
    from tidegate.runtime.server_link import ServerLink

PATIENCE = 120.0  # seconds for a server to come back
_RETRY = 0.3
_ENDED, _GONE = -1, -2
_SERVER = "the server is gone"


@click.command()
@click.option("--container", required=True, metavar="ID", help="A running container without a network.")
@click.option("--task", required=True, metavar="TASK", help="The task whose policy decides (tidegate task create).")
@click.option(
    "--engine", type=click.Choice(("docker", "podman")), help="The engine that runs it; found by itself when left out."
)
@click.option("--capture", type=click.Choice(("on", "ports", "off")), default="on", help="As with run (on).")
@click.option("--quiet", is_flag=True, help="No net: lines.")
def attach(*, container: str, task: str, engine: str | None, capture: str, quiet: bool) -> int:
    """Put the gate into a running container that has no network, and stay until the container ends."""
    from tidegate.holds.container.attaching import Attached

    found = _engine_of(container, engine)
    attached = Attached(found, container)
    with os.fdopen(os.pidfd_open(attached.pid), "rb", buffering=0) as alive, _Beside(attached) as beside:
        again = False
        while True:
            link = _join(found, attached, task, capture, beside, again=again)
            say(f"{container[:20]} is behind the gate of {task}" + (" again" if again else ""))
            if not again and (warning := attached.warning()):
                say(f"warning: {warning}")
            ended = _wait(link, alive.fileno(), attached)
            if ended == _ENDED:
                _finish(link, beside, quiet=quiet)
                return 0
            link.close()
            if ended == EXIT_GATE_LOST:
                say("the container has no route any more")
                return EXIT_GATE_LOST
            say("the server is gone; the container has no route until it is back")
            if not _server_is_back(alive.fileno()):
                raise StartError(
                    "the server did not come back",
                    fix="tidegate serve; then start the container anew, and attach",
                    code="server",
                )
            again = True


def _engine_of(container: str, name: str | None) -> Engine:
    from tidegate.holds.container.engine import ENGINES, Engine

    silent = {}
    for one in (name,) if name else ENGINES:
        found = Engine(one)
        try:
            found.inspect(container)
        except StartError as error:
            if name or error.code not in ("no-container", "engine-missing", "engine-down"):
                raise
            if error.code != "no-container":
                silent[one] = error.what
        else:
            return found
    if not silent:
        raise UsageError(f"neither docker nor podman has a container {container!r}", fix="docker ps; podman ps")
    asked = [one for one in ENGINES if one not in silent]
    has = f"{asked[0]} has no container {container!r}, and " if asked else f"nobody can be asked for {container!r}: "
    raise UsageError(has + "; ".join(silent.values()), fix="name the engine: --engine docker, or podman")


class _Beside:
    """What answers for the tools of the container's task, once it is known that there are any (SRV-6)."""

    def __init__(self, attached: Attached) -> None:
        self._attached = attached
        self._tools: AttachedTools | None = None

    def join(self, told: dict[str, Any], link: ServerLink) -> None:
        """Have the server that `link` leads to lead to them."""
        if self._tools is None and told["tools"]:
            from tidegate.cli.attach_tools import AttachedTools

            self._tools = AttachedTools(told, self._attached)
        if self._tools is not None:
            self._tools.join(link)

    def finish(self) -> list[str]:
        """End them, and return what a person is told."""
        return self._tools.finish() if self._tools is not None else []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()


def _join(engine: Engine, attached: Attached, task: str, capture: str, beside: _Beside, *, again: bool) -> ServerLink:
    """Have the server serve the container; our end of that conversation.

    Raises:
        StartError: when it cannot be served; nothing is served then.
    """
    from tidegate.holds.container.enter import HOST
    from tidegate.holds.container.transport import Way
    from tidegate.holds.inside import PORTS
    from tidegate.holds.name_files import own_names
    from tidegate.runtime.first_message import lower
    from tidegate.runtime.server_link import need_server
    from tidegate.runtime.task import GATE_PORT

    state = state_folder(os.environ)
    link = need_server(state, say, "tidegate attach")
    try:
        told: dict[str, Any] = link.join(
            {
                "task": task,
                "command": ("attach", attached.id[:12]),
                "hold": engine.name,
                "ask": "wait",
                "own_names": lower(own_names(HOST)) if capture != "off" else (),
            }
        )
        _check_set_up(told)
        link.cover(os.environ)
        beside.join(told, link)
        lacking = renewed(attached, state, told["task"], link)
        if lacking and not again:
            say(f"note: {lacking}")
        phase = told["phase"]
        way = Way(
            name="attached",
            labels={},
            folder="/",
            port=GATE_PORT,
            capture=capture,
            capture_ports=tuple(told["ports"].get(phase, ())) if capture == PORTS else (),
            met=tuple((host, port) for host, port in told["met"].get(phase, ())),
        )

        def deliver(sockets: TaskSockets) -> None:
            link.deliver(sockets)

        try:
            attached.serve(way, deliver, again=again)
        except StartError as error:
            raise link.why_not() or error from None
        link.confirm()
        link.begin(time.time())  # noqa: TID251  the clock comes in here
    except BaseException:
        link.close()
        raise
    return link


def _check_set_up(told: dict[str, Any]) -> None:
    if told["setup"]:
        raise UsageError(
            "the task's policy has a set-up command, which cannot be run in a container of somebody else's",
            fix="tidegate task create --phase install, and tidegate task phase when that is done",
            code="set-up",
        )


def _wait(link: ServerLink, alive: int, attached: Attached) -> int:
    """Wait for the end of the container (`_ENDED`), of the server (`_GONE`), or of the task (`EXIT_GATE_LOST`).

    A server that is stopped leaves nobody waiting.
    """
    from tidegate.runtime.server_sign import ServerSign
    from tidegate.runtime.ways import LOOK, Ways, peer_of

    sign = ServerSign(state_folder(os.environ), peer_of(link.fileno()), attached.shut)
    ways = Ways(link.fileno(), link.heard, _SERVER, server=sign)
    ways.tell = _say
    poll = select.poll()
    for one in (alive, link.fileno()):
        poll.register(one, select.POLLIN)
    try:
        while True:
            ready = dict(poll.poll(LOOK * 1000))
            if alive in ready:
                return _ENDED
            why = ways.look(ready) or ways.attend(time.monotonic())
            if why:
                attached.shut(shut=False)  # nobody listens there any more
                if why != _SERVER:
                    _say(why)
                return _GONE if why == _SERVER or link.returning else EXIT_GATE_LOST
    finally:
        ways.close()


def _say(sentence: str) -> None:
    say(sentence.removeprefix("tidegate: "))


def _server_is_back(alive: int) -> bool:
    from tidegate.runtime.server_link import find_server

    poll = select.poll()
    poll.register(alive, select.POLLIN)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if poll.poll(_RETRY * 1000):
            return True  # it has ended, which the next look finds
        try:
            link = find_server(state_folder(os.environ), say)
        except StartError:
            continue
        if link is not None:
            link.close()
            return True
    return False


def _finish(link: ServerLink, beside: _Beside, *, quiet: bool) -> None:
    from tidegate.journal.summary import net_lines

    called = beside.finish()  # while the gate still hears of it
    counted = link.finish()
    lines = [*(net_lines(*counted) if counted is not None and counted[0] else ()), *called]
    if lines and not quiet:
        raw("\n".join(lines))
