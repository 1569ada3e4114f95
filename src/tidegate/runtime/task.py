"""One task from start to end: gate, hold and front put together (DESIGN: `run` is three processes).

The order matters. The standard streams are looked at before anything is opened, so that a closed one cannot become a
socket of ours. The gate is forked before any policy text is read, so that it stays small. The journal is open and the
gate serves before the fence is proven, and the fence is proven before the command's first instruction.
"""

from __future__ import annotations

import gc

from tidegate.holds.inside import OFF, OWN4, OWN6, PORTS, SSH_AGENT
from tidegate.holds.name_files import own_names
from tidegate.model.errors import StartError
from tidegate.model.value import Value
from tidegate.model.verdict import Phase, Verdict
from tidegate.runtime.channel import ASK, NO_ONE
from tidegate.runtime.container_task import (
    comeback_of,
    engine_of,
    in_container,
    node_name,
    server_of,
)
from tidegate.runtime.early_hold import EarlyHold, spec_of
from tidegate.runtime.environment import task_environment, without_proxies
from tidegate.runtime.first_message import about, first_message
from tidegate.runtime.inspection import need_readable
from tidegate.runtime.outcome import Outcome
from tidegate.runtime.signals import AskedToEndError
from tidegate.runtime.task_roots import roots_for, trust_files_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tidegate.holds.hold import Container, Hold, LaunchSpec
    from tidegate.holds.inside import TaskSockets
    from tidegate.holds.stdio import StdioPlan
    from tidegate.journal.summary import Row
    from tidegate.model.publish import Publish
    from tidegate.policy.policy import Policy
    from tidegate.runtime.alone import AloneBook
    from tidegate.runtime.link import Link
    from tidegate.runtime.secret_store import Stored
    from tidegate.runtime.server_link import ServerLink
    from tidegate.runtime.signals import SignalInbox
    from tidegate.runtime.ssh_keys import KeyUse, SshKeys

GATE_HOST = "127.0.0.1"
SHARES_LOOPBACK = ("landlock",)
"""Holds whose tasks have this machine's loopback, and nothing on it but their gate."""
GATE_PORT = 3128  # squid's, and HLD-4's: what people expect of a proxy


class Order(Value):
    """What is to be run, and how it is confined. Paths are absolute.

    `setup`, and `ports` and `met` by phase, are for a command whose policy the server has. `keys` are those of an
    agent's model services, which are in no store (model_keys.py).
    """

    task: str
    phase: str
    command: tuple[str, ...]
    folder: str
    environ: dict[str, str]
    shares: tuple[Any, ...]
    hidden: tuple[str, ...]
    readonly: tuple[str, ...]
    selftest: bool
    log: str
    guarded: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    rotate: bool = True
    capture: str = OFF
    container: Container | None = None
    publish: tuple[Publish, ...] = ()
    ssh_keys: tuple[KeyUse, ...] = ()
    secrets: tuple[Stored, ...] = ()
    keys: tuple[Stored, ...] = ()
    strict: bool = False
    ask: str = NO_ONE
    state: str = ""
    tools: tuple[str, ...] = ()
    wait_seconds: int | None = None
    issue: str = ""
    setup: tuple[str, ...] = ()
    ports: Mapping[str, tuple[int, ...]] = {}
    met: Mapping[str, tuple[tuple[str, int], ...]] = {}


class Ended(Value):
    """How it went: the front's outcome and what the gate counted (None where there was no gate).

    `not_begun` says what kept the command from being run, where the set-up command did; `signed` are lines about the
    ssh keys it was offered; `new` are files that were not there before and would run outside later (HLD-15), `changed`
    those of the workspace that were protected, and that somebody outside replaced.
    """

    outcome: Outcome
    rows: tuple[Row, ...] | None
    more: int = 0
    not_begun: str = ""
    signed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def notes(self) -> list[str]:
        """What is said of such files."""
        return [
            f"{what}, and may run later: " + ", ".join(path if path.isprintable() else ascii(path) for path in paths)
            for what, paths in (("new", self.new), ("changed meanwhile", self.changed))
            if paths
        ]


def run_behind_gate(
    order: Order,
    policy: Policy | None,
    hold: Hold,
    link: Link,
    stdio: StdioPlan,
    inbox: SignalInbox,
    clock: Callable[[], float],
    keys: SshKeys | None = None,
) -> Ended:
    """Run the command behind its gate and return how it ended. `clock` gives Unix time in seconds.

    Without a `policy` the server has it, and has been told of the command. `keys` serve the ssh agent that the order
    asks for.

    Raises:
        StartError: when it cannot start as asked; nothing of it has run and nothing is left behind.
    """
    early = EarlyHold(hold)
    try:
        return _behind_gate(order, policy, hold, link, stdio, inbox, clock, keys, early)
    finally:
        early.end()


def _behind_gate(
    order: Order,
    policy: Policy | None,
    hold: Hold,
    link: Link,
    stdio: StdioPlan,
    inbox: SignalInbox,
    clock: Callable[[], float],
    keys: SshKeys | None,
    early: EarlyHold,
) -> Ended:
    from tidegate.holds.hold import gate_port
    from tidegate.runtime.front import Front

    setup = policy.setup if policy is not None else order.setup
    first = Phase.INSTALL.value if setup else order.phase
    captured = order.capture != OFF
    port = gate_port(hold)
    if order.container is not None:
        engine_of(hold).expect(order.container.image)
    met = _met(order, policy, hold.name, first)
    names = own_names(node_name(order.container)) if captured else ()
    own = (OWN4, OWN6, *names) if captured else ()

    def spec_for(command: tuple[str, ...], phase: str, environment: dict[str, str], streams: StdioPlan) -> LaunchSpec:
        spec = spec_of(order, environment, streams).replace(argv=command, met=met[phase], port=port)
        if command is order.command:
            spec = spec.replace(published=tuple(one.inside for one in order.publish))
        if order.capture == PORTS:
            spec = spec.replace(capture_ports=order.ports[phase] if policy is None else ports_of(policy, Phase(phase)))
        return spec

    if policy is not None and not setup and not (order.secrets or order.keys):  # nothing else is still to be found out
        early.begin(spec_for(order.command, order.phase, _environment_of(order, hold, link, port, own), stdio))
    try:
        inbox.heed(at_once=True)  # a bundle may be a pipe, at whose other end nobody is
        pool = roots_for(order, policy, link)
    except AskedToEndError as asked:
        return Ended(Outcome(128 + asked.number, asked.number, started=False), None)
    finally:
        inbox.heed(at_once=False)
    roots = pool.pem if pool is not None else ""
    if policy is not None:
        need_readable(policy, order.secrets)
        early.look()
        link.configure(first_message(order, policy, hold.name, first, names=names, met=met, roots=roots))
    asking = None
    if order.ask == ASK:
        from tidegate.runtime.ask_screen import AskScreen

        asking = AskScreen(link, " ".join(order.command), clock)
    trusted, files = roots, None
    if pool:
        files = trust_files_for(pool, order, hold)  # while the gate makes its authority
        trusted = files.roots
        early.look()
        try:
            inbox.heed(at_once=True)  # a secret's source may take its time
            link.confirm_known()
            link.cover(order.environ)
        except AskedToEndError as asked:
            return Ended(Outcome(128 + asked.number, asked.number, started=False), None)
        finally:
            inbox.heed(at_once=False)
    environment = _environment_of(order, hold, link, port, own)
    if link.tell_tools is not None:
        link.tell_tools(roots, link.authority if files is not None else ())
    trust: tuple[tuple[str, bytes], ...] = ()
    if files is not None:
        from tidegate.runtime.trust import trusting

        trust, environment = files.of(link.authority), trusting(environment)

    def launch(command: tuple[str, ...], phase: str, streams: StdioPlan) -> Front:
        spec = spec_for(command, phase, environment, streams).replace(trust=trust)
        follows = phase != first

        def deliver(sockets: TaskSockets) -> None:
            if keys is not None and sockets.roles == (SSH_AGENT,):
                keys.serve(sockets)
            elif follows:
                link.follow(phase, sockets)
            else:
                link.deliver(sockets)

        try:
            running = early.launch(spec, deliver)
        except StartError as error:
            raise link.why_not() or error from None
        try:
            (link.confirm_next if follows else link.confirm)()
        except StartError:
            running.kill()
            running.wait()
            raise
        # What came before this was the self-test, not the task.
        link.begin(clock())
        return Front(
            running,
            streams,
            gate_fd=link.fileno(),
            gate_pid=link.pid,
            inbox=inbox,
            last=phase == order.phase,
            on_gate_message=link.heard,
            gone=link.gone,
            asking=asking,
            comeback=comeback_of(link, running, order, trusted) if phase == order.phase else None,
            server=server_of(link, running, order.state),
            note=link.note,
        )

    kept_from = None
    if setup:
        from tidegate.runtime.setup import look_again, set_up

        places = (order.folder, order.environ.get("HOME", "/"), *(share.path for share in order.shares))
        kept_from = set_up(lambda on: launch(setup, first, on), setup, places, stdio, inbox)
        stdio = look_again(stdio)
    if kept_from is None:
        front = launch(order.command, order.phase, stdio)
        gc.freeze()  # what is here now stays to the end: the first look for garbage would go through all of it
        gc.enable()
        kept_from = front.run(), ""
    outcome, not_begun = kept_from
    return _ended(order, link, outcome, not_begun, clock)


def _met(order: Order, policy: Policy | None, hold: str, first: str) -> Mapping[str, tuple[tuple[str, int], ...]]:
    """Return, for each phase of the run, the services of this machine that it meets on its own loopback."""
    if hold in SHARES_LOOPBACK:  # they are met at the proxy only
        return dict.fromkeys((first, order.phase), ())
    if policy is None:
        return order.met
    from tidegate.runtime.services import Services

    ports = [one.port for one in order.publish]
    return {phase: Services(policy, Phase(phase), ports).met for phase in {first, order.phase}}


def _environment_of(order: Order, hold: Hold, link: Link, port: int, own: tuple[str, ...]) -> dict[str, str]:
    """Return the variables of the command; `own` are the addresses and names that lead to the task itself."""
    caller = order.environ | link.variables
    if order.container is not None:
        given = (*order.secrets, *order.keys)
        stand_ins = {name: link.variables[name] for name in link.own or (secret.variable for secret in given)}
        caller = in_container(hold, order.container, caller) | stand_ins
    if order.tools:
        from tidegate.model.tools import URL, VARIABLE

        caller |= {VARIABLE: URL}
    return task_environment(
        caller,
        task=order.task,
        host=GATE_HOST,
        port=port,
        own_loopback=hold.name not in (*SHARES_LOOPBACK, "uid"),  # GAT-10: there it is the machine's
        capture=order.capture != OFF,
        own_names=own,
    )


def _ended(order: Order, link: Link, outcome: Outcome, not_begun: str, clock: Callable[[], float]) -> Ended:
    """Return how the run went, with what its gate counted; where that was lost, with what is in the journal."""
    if link.end_tools is not None:
        link.end_tools()
    counted = link.finish()
    if counted is None:
        if link.left_open:
            from tidegate.journal.open_lines import write_left

            write_left(order.log, link.left_open, clock())
        rows, more = _rows_from_log(order.log)
        from tidegate.runtime.outcome import gone_late

        outcome = gone_late(outcome, link.gone_late)
    elif link.gap and order.log:
        rows, more = _rows_from_log(order.log)
    else:
        rows, more = counted
    return Ended(outcome, tuple(rows), more, not_begun)


def run_without_gate(
    order: Order,
    hold: Hold,
    stdio: StdioPlan,
    inbox: SignalInbox,
    keys: SshKeys | None = None,
    link: ServerLink | None = None,
) -> Ended:
    """Run the command in a hold that has no gate: `open` or `offline` (HLD-5).

    Where a server runs it knows of it through `link`, and can end it; the command does not need the server.

    Raises:
        StartError: as `run_behind_gate`.
    """
    from tidegate.runtime.front import Front

    if link is not None and not link.known:
        link.configure(
            {"task": order.task, "phase": order.phase, "policy": None, "log": "", "rotate": True, "own_names": ()}
            | about(order, hold.name)
        )
        link.confirm_known()
    book = None
    if link is None and hold.name == "open":
        book = _book(order, hold.name)
    environment = dict(order.environ) if hold.name == "open" else without_proxies(order.environ)
    environment["TIDEGATE_TASK"] = order.task
    try:
        running = hold.launch(spec_of(order, environment, stdio), keys.serve if keys is not None else None)
        if link is None:
            return Ended(Front(running, stdio, gate_fd=None, inbox=inbox).run(), None)
    finally:
        if book is not None:
            book.close()
    outcome = Front(running, stdio, gate_fd=link.fileno(), inbox=inbox, on_gate_message=link.heard, gone="").run()
    link.finish()
    return Ended(outcome, None)


def _book(order: Order, hold: str) -> AloneBook:
    """A network without a gate is an event (HLD-5): it is in the action log before the command begins."""
    import time

    from tidegate.runtime.alone import AloneBook
    from tidegate.runtime.outcome import say

    shown = {"task": order.task, "phase": order.phase, "state": order.state, **about(order, hold)}
    book = AloneBook(shown, clock=time.time, warn=say)  # noqa: TID251  the clock comes in here
    book.begin()
    return book


def ports_of(policy: Policy, phase: Phase) -> tuple[int, ...]:
    """Return the ports that a policy names, for `--capture ports`; those of this machine's loopback are met without."""
    from tidegate.policy.rows import PHASE, PORT, VERDICT
    from tidegate.runtime.services import is_loopback

    rows = [row for row in policy.index.rows if row[PHASE] == phase.value and row[VERDICT] != Verdict.DENY.value]
    return tuple(sorted({row[PORT] for row in rows if row[PORT] is not None and not is_loopback(row)}))


def _rows_from_log(path: str) -> tuple[list[Row], int]:
    """The gate was lost: what it wrote down is what is known."""
    from tidegate.journal.readback import rows_of

    try:
        return rows_of(path)
    except OSError:
        return [], 0
