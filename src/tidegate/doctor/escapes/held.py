"""The front of the trial: holds the table as `run` holds a command, with the gate, the journal and the policy of a run.

A process of its own, executed in the small internet of world.py with the rights of the user and no others. On its
channel it says `built` when the task's view is made and before the command starts, and then waits for a line; at the
end it says as JSON how it went.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from tidegate.doctor.escapes.table import CAPTURED, CAPTURING, LANDLOCK, NETNS, OFFLINE, OPEN, UID
from tidegate.holds import capabilities
from tidegate.holds.hold import Container, Share, find_hold, gate_port
from tidegate.holds.inside import OFF, ON
from tidegate.holds.stdio import plan_stdio
from tidegate.model.errors import StartError
from tidegate.model.publish import parse_publish
from tidegate.policy.layers import command_line, join
from tidegate.runtime.gate_link import GateLink
from tidegate.runtime.guarded import guarded_files
from tidegate.runtime.signals import SignalInbox
from tidegate.runtime.task import Order, run_behind_gate, run_without_gate
from tidegate.runtime.tool_link import with_tools
from tidegate.tools.declaration import Tool
from tidegate.tools.schema import normal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.holds.hold import Hold, LaunchSpec, RunningTask
    from tidegate.holds.inside import TaskSockets
    from tidegate.runtime.guarded import Guarded
    from tidegate.runtime.task import Ended

SERVER = 3000  # the port inside that is published; nobody listens there
CARRIES_THE_PROXY_ONLY = ("relay", "vm")
"""Transports of containers without ports that are published."""

HOLDS = {NETNS: NETNS, CAPTURED: NETNS, OFFLINE: OFFLINE, OPEN: OPEN, UID: UID, LANDLOCK: LANDLOCK}
ALLOWED = ("good.test", "*.wild.test")
"""What the policy of the trial lets through: names that only the small internet knows."""


TELLS = """\
import json, os, sys
fds = sorted(fd for fd in range(64) if os.path.exists(f"/proc/self/fd/{fd}"))
about = {"argv": sys.argv[1:], "env": [name for name in os.environ if name != "LC_CTYPE"], "fds": fds}
print(json.dumps(about | {"cwd": os.getcwd(), "text": json.load(sys.stdin)["text"]}))
"""
"""The program of the trial's tool. Python itself may set LC_CTYPE."""


class _Announced:
    """A hold that tells when it is built, and starts when it is told to."""

    def __init__(self, hold: Hold, built: Callable[[], None]) -> None:
        self._hold = hold
        self._built = built
        self.name = hold.name
        self.has_gate = hold.has_gate
        if hasattr(hold, "own_port"):
            self.own_port = hold.own_port

    def probe(self) -> StartError | None:
        return self._hold.probe()

    def launch(self, spec: LaunchSpec, deliver: Callable[[TaskSockets], None] | None) -> RunningTask:
        task = self._hold.launch(spec, deliver)
        self._built()
        return task

    def sweep(self) -> None:
        self._hold.sweep()


def main(wishes: dict[str, Any]) -> None:
    """Hold the command that the wishes describe."""
    capabilities.die_with_parent()
    stdio = plan_stdio()
    channel = os.fdopen(wishes["channel"], "r+b", buffering=0)

    def built() -> None:
        channel.write(b"built\n")
        channel.read(1)

    later = _later(wishes)
    order = Order(
        task="escapes",
        phase="runtime",
        command=tuple(wishes["command"]),
        folder=wishes["folder"],
        environ=wishes["environ"],
        shares=_shares(wishes),
        hidden=tuple(wishes["hidden"]),
        readonly=tuple(wishes["readonly"]),
        guarded=later.guarded,
        closed=later.closed,
        selftest=wishes["selftest"],
        log=wishes["log"],
        publish=tuple(parse_publish(f"{port}:{SERVER}") for port in _published(wishes)),
        capture=ON if wishes["hold"] in CAPTURING else OFF,
    )
    name = HOLDS[wishes["hold"]]
    if wishes["container"]:
        name = wishes["container"]["engine"]
        transport = wishes["container"].get("transport", "")
        order = order.replace(
            container=Container(wishes["container"]["image"], transport, options=_variables(order.environ)),
            state=wishes["container"].get("state", ""),
            publish=() if transport in CARRIES_THE_PROXY_ONLY else order.publish,
            environ=dict(os.environ) | order.environ,
        )
    found = find_hold(name)
    held = json.loads(order.environ["HELD"]) | {"port": gate_port(found)}
    order = order.replace(environ=order.environ | {"HELD": json.dumps(held)})
    hold = _Announced(found, built)
    if wishes["hold"] == UID:
        _be_another(json.loads(wishes["environ"]["HELD"])["tcp4"])
    answer: dict[str, Any]
    inbox = SignalInbox.install()
    try:
        ended = (
            _behind_gate(wishes, order, hold, stdio, inbox)
            if hold.has_gate
            else run_without_gate(order, hold, stdio, inbox)
        )
    except StartError as error:
        answer = {"error": error.what, "fix": error.fix}
    else:
        answer = {"status": ended.outcome.exit_status}
    channel.write(json.dumps(answer).encode() + b"\n")


def _shares(wishes: dict[str, Any]) -> tuple[Share, ...]:
    """What of this machine the table needs where nothing can run Python else: in a container, and as another user."""
    shown = wishes["container"]["shares"] if wishes["container"] else ()
    if wishes["hold"] == UID:
        shown = (sys.base_prefix,)
    return tuple(Share(path, readonly=True) for path in shown)


def _variables(environ: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"env={name}" for name in environ)


def _be_another(port: int) -> None:
    """Be another task as well: a user whose gate is a listener of this machine."""
    from tidegate.holds.uid import claim_any, prepare
    from tidegate.holds.uid_table import Ports, elements

    prepare()
    other = claim_any()
    other.enter(elements(other.uid, Ports(port)))


def _published(wishes: dict[str, Any]) -> list[int]:
    """Ports that the trial publishes; without a network of its own a task can have no server to publish."""
    return [] if wishes["hold"] in (LANDLOCK, UID) else list(wishes["publish"])


def _later(wishes: dict[str, Any]) -> Guarded:
    """What would run later, as `tidegate run` finds it for the person whose home is a folder of the trial."""
    environ = wishes["environ"] | {"HOME": wishes["person"], "PATH": ":".join(wishes["programs"])}
    return guarded_files(environ, wishes["folder"], (wishes["person"],))


def _tools() -> tuple[Tool, ...]:
    """The tool of the trial, which tells how it is run."""
    takes = normal(
        {"type": "object", "properties": {"text": {"type": "string", "maxLength": 100}}, "required": ["text"]}
    )
    command = (os.path.realpath(sys.executable), "-I", "-c", TELLS)
    return (Tool("tells", command, "Tell how it is run.", takes, "the trial", timeout_seconds=30.0),)


def _behind_gate(wishes: dict[str, Any], order: Order, hold: Hold, stdio: Any, inbox: SignalInbox) -> Ended:
    warnings: list[str] = []
    link = GateLink(warnings.append)
    try:
        allowed = (*ALLOWED, *wishes["services"])
        policy = join(command_line(allow=allowed, profile="closed"))
        clock = time.time  # noqa: TID251 (the clock comes in here)
        state = os.path.join(os.path.dirname(wishes["log"]), "state")  # where no task sees what a tool leaves
        keeps = order.replace(state=state)
        return with_tools(
            keeps, _tools(), link, lambda: run_behind_gate(order, policy, hold, link, stdio, inbox, clock)
        )
    finally:
        link.close()
