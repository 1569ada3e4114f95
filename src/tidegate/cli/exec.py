"""`tidegate exec`: one more command of a task that a running server has, in namespaces of its own (HLD-5).

The policy is the task's, and so is the record; what is said at the end is what `run` says. Its command line is read by
the parser of `run`, of which it has a part.
"""

from __future__ import annotations

import os
import sys
import time

from tidegate.cli.main import say
from tidegate.cli.run import conclude, followed, order_of, queued, warn_before
from tidegate.cli.run_options import parse_run
from tidegate.model.errors import StartError, UsageError
from tidegate.runtime.state import state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tidegate.cli.run_options import RunOptions
    from tidegate.holds.stdio import StdioPlan
    from tidegate.runtime.server_link import ServerLink
    from tidegate.runtime.signals import SignalInbox
    from tidegate.runtime.task import Ended

USAGE = """\
usage: tidegate exec TASK [options] [--] COMMAND [ARGUMENT ...]

Runs COMMAND in a task of the server (tidegate task create): in the task's folder, under its policy and in its phase,
with a network and processes of its own.

  --no-network            no socket but between its own processes
  --open-network          no gate and no policy; says so each time
  --hold NAME             as with run; with docker and podman its options for containers, too
  --capture MODE          as with run
  --share PATH[:ro]       as with run
  --tool NAME             as with run: a tool of yours, for this command, beside those that its task was created with
  --ask                   as with run
  --wait                  what needs approval waits for whoever watches the server
  --no-selftest           do not prove the fence before the command starts
  --quiet                 no net: lines
  --report FILE           the same as the net: lines, for machines
  --status-file FILE      whose exit status it was: the command's or tidegate's
  --fail-on-refusal       exit 77 when the command ended with 0 but something was refused
  --help                  this text

exit status: as with run
"""

_OPTIONS = frozenset((
    "--no-network", "--open-network", "--hold", "--image", "--transport", "--relay-image",
    "--container-option", "--capture",
    "--share", "--tool", "--ask", "--wait", "--no-selftest", "--quiet", "-q", "--report", "--status-file",
    "--fail-on-refusal", "--help", "-h",
))  # fmt: skip


def exec_(argv: list[str]) -> int:
    """Run `tidegate exec` and return its exit status.

    Raises:
        TidegateError: for what a person can mend.
    """
    if not argv or argv[0] in ("--help", "-h"):
        sys.stdout.write(USAGE)
        return 0 if argv else 2
    task, *rest = argv
    if task.startswith("-"):
        raise UsageError(f"the task comes first, not {task}", fix="tidegate exec TASK [options] -- COMMAND")
    options = parse_run(rest, only=_OPTIONS)
    if options.help:
        sys.stdout.write(USAGE)
        return 0
    return conclude(options, lambda stdio: _run(task, options, stdio))


def _run(task: str, options: RunOptions, stdio: StdioPlan) -> Ended:
    from tidegate.holds.name_files import own_names
    from tidegate.runtime.container_task import node_name
    from tidegate.runtime.first_message import lower
    from tidegate.runtime.server_link import need_server
    from tidegate.runtime.trust import extra_roots

    link = need_server(state_folder(os.environ), say, "tidegate exec")
    try:
        if not options.hold_is_named:
            options = _as_created(options, link.do("container", task=task))
        told = link.join(
            {
                "task": task,
                "command": options.command,
                "hold": options.hold,
                "ask": options.asked,
                "own_names": lower(own_names(node_name(options.container))) if options.capture != "off" else (),
                "roots": extra_roots(os.environ),
            }
        )
        _enter(told["folder"], told["dev"], told["ino"])
        return queued(lambda inbox: _held(told, options, stdio, inbox, link))
    finally:
        link.close()


def _as_created(options: RunOptions, found: dict[str, Any] | None) -> RunOptions:
    """The options with the hold and the container that the task was created with, where it was."""
    if found is None:
        return options
    if "image" not in found:
        return options.replace(hold=found["hold"])
    from tidegate.holds.hold import Container

    container = Container(image=found["image"], transport=found["transport"], options=tuple(found["options"]))
    return options.replace(hold=found["hold"], container=container)


def _enter(folder: str, dev: int, ino: int) -> None:
    """Go to the task's folder: the one it was created in, and not another in its place, which it was never given."""
    from tidegate.state.folders import folder_key

    fix = "tidegate task create makes a task for a folder as it is now"
    try:
        os.chdir(folder)
        found = folder_key(".")
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise StartError(f"the task's folder {folder!r} cannot be entered: {why}", fix=fix, code="folder") from None
    if (found.path, found.dev, found.ino) != (folder, dev, ino):
        raise StartError(f"{folder!r} is another folder than when the task was created", fix=fix, code="folder")


def _held(told: dict[str, Any], options: RunOptions, stdio: StdioPlan, inbox: SignalInbox, link: ServerLink) -> Ended:
    from tidegate.cli.run_tools import with_named_tools
    from tidegate.runtime.hold_choice import choose_hold
    from tidegate.runtime.policy_sources import is_strict
    from tidegate.runtime.task import run_behind_gate, run_without_gate

    warn_before(options)
    options = options.replace(secrets=tuple(told["secrets"]))  # their files are not to be seen
    order = order_of(options, new_log=False).replace(
        task=told["task"],
        phase=told["phase"],
        setup=tuple(told["setup"]),
        ports={phase: tuple(ports) for phase, ports in told["ports"].items()},
        strict=is_strict(told["files"]),
        met={phase: tuple((host, port) for host, port in places) for phase, places in told["met"].items()},
    )
    clock = time.time  # noqa: TID251  the clock comes in here
    hold = choose_hold(options.hold, state_folder(os.environ), clock)
    if not hold.has_gate:
        return followed(order, lambda keys: run_without_gate(order, hold, stdio, inbox, keys, link))
    names = tuple(dict.fromkeys((*told["tools"], *options.tools)))
    order, tooled = with_named_tools(names, order, told["files"], link)
    return followed(
        order, lambda keys: tooled(lambda: run_behind_gate(order, None, hold, link, stdio, inbox, clock, keys))
    )
