"""A tool that says `apply_task_hosts`: its program in a hold of its own, behind the task's own gate (SRV-6).

    worker ── fork ──► this front ── hold `netns` ──► the program
                           │
                           └── roles + descriptors, over the keeper's channel ──► the task's gate (tool_holds.py)

Whatever hold the task has, the tool's is `netns`, with capture: the program is of this machine. Where that cannot be
made, or the gate does not serve it, the program does not start: nothing falls back to running it with every host in
reach.

Rules of the file: the front of a tool is the front of any command; standard input, output and error are the pipes of
the worker. It sees the machine as a task does whose files are strict, without a workspace: its folder is the hold's own
/tmp, which is there for it alone.
"""

from __future__ import annotations

import os
import time
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socketpair
from struct import pack

from tidegate.model.errors import StartError
from tidegate.runtime.tool_holds import BEGIN, SERVED
from tidegate.tools.program import NOT_STARTED, environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from socket import socket

    from tidegate.holds.inside import TaskSockets
    from tidegate.runtime.task import Order
    from tidegate.tools.declaration import Tool

_GONE = "the task's gate is gone"
_FOLDER = "/tmp"  # noqa: S108 - the hold's own


def be_front(
    order: Order, tool: Tool, more: Mapping[str, str], channel: socket, trusted: tuple[str, Sequence[str]]
) -> int:
    """Run the tool's program in its hold to its end, and return its exit status. In a child of its own.

    `trusted` are the roots, as PEM, and the task's own authority; both are empty where nothing is read inside TLS.

    Raises:
        StartError: where the hold cannot be made, or the gate does not serve it; nothing of the program has run.
    """
    from tidegate.holds import linux
    from tidegate.holds.control import close_all_but
    from tidegate.holds.hold import LaunchSpec, find_hold, gate_port
    from tidegate.holds.inside import ON, OWN4, OWN6
    from tidegate.holds.name_files import own_names
    from tidegate.holds.stdio import plan_stdio
    from tidegate.runtime.environment import task_environment
    from tidegate.runtime.first_message import lower
    from tidegate.runtime.front import Front
    from tidegate.runtime.signals import SignalInbox
    from tidegate.runtime.task import GATE_HOST
    from tidegate.runtime.trust import trust_files, trusting

    # Who has secrets is looked into by nobody (tool_secrets.py), but then no user namespace can be mapped; the program
    # has the same values, and can be looked into as every program.
    linux.prctl(linux.PR_SET_DUMPABLE, 1)
    close_all_but((channel.fileno(),))
    inbox = SignalInbox.install()
    stdio = plan_stdio()
    hold = find_hold("netns")
    port = gate_port(hold)
    names = lower(own_names(os.uname().nodename))
    env = task_environment(
        environment(tool.env, order.environ, _FOLDER, more),
        task=order.task,
        host=GATE_HOST,
        port=port,
        own_loopback=True,
        capture=True,
        own_names=(OWN4, OWN6, *names),
    )
    trust: tuple[tuple[str, bytes], ...] = ()
    if trusted[1]:
        trust, env = trust_files(*trusted), trusting(env)
    ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)

    def deliver(sockets: TaskSockets) -> None:
        from json import dumps

        fds = (theirs.fileno(), *sockets.descriptors)
        message = dumps({"hold": sockets.roles}).encode("ascii")
        channel.sendmsg([message], [(SOL_SOCKET, SCM_RIGHTS, pack(f"{len(fds)}i", *fds))])
        theirs.close()

    spec = LaunchSpec(
        argv=tool.command,
        env=env,
        cwd=_FOLDER,
        hidden=order.hidden,
        readonly=order.readonly,
        strict=True,
        port=port,
        selftest=True,
        run_id=order.task,
        stdio=stdio,
        capture=ON,
        trust=trust,
    )
    running = hold.launch(spec, deliver)
    if ours.recv(1) != SERVED:
        running.kill()
        running.wait()
        raise StartError("the task's gate does not serve it", code="tools")
    ours.send(BEGIN + b"%f" % time.time())  # noqa: TID251 - it is now that the program is behind the gate
    outcome = Front(running, stdio, gate_fd=ours.fileno(), inbox=inbox, gone=_GONE).run()
    if not outcome.started or outcome.gate_lost:
        return NOT_STARTED
    return outcome.exit_status
