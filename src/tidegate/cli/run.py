"""`tidegate run`: confine one command and say afterwards what it reached.

Thin: what is asked (run_options), which policy (runtime/policy_sources), the task itself (runtime/task), what is said
at the end. Whatever happens, the exit status says whose it is (HLD-16).
"""

from __future__ import annotations

import os
import sys
import time

from tidegate.cli.main import raw, say
from tidegate.cli.run_options import USAGE, RunOptions, Share, parse_run
from tidegate.holds.hold import WITHOUT_GATE
from tidegate.model.errors import EXIT_REFUSAL, StartError, TidegateError, WithoutGateError
from tidegate.model.verdict import Phase
from tidegate.runtime.outputs import OutputFile, status_text
from tidegate.runtime.state import (
    LOG_NAME,
    cache_folder,
    config_folder,
    default_folders,
    front_socket,
    make_task_folder,
    new_task_id,
    state_folder,
    sweep_tasks,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.holds.stdio import StdioPlan
    from tidegate.runtime.link import Link
    from tidegate.runtime.secret_store import Stored
    from tidegate.runtime.server_link import ServerLink
    from tidegate.runtime.signals import SignalInbox
    from tidegate.runtime.ssh_keys import KeyUse, SshKeys
    from tidegate.runtime.task import Ended, Order

_OPEN_WARNING = "warning: --open-network: no gate and no policy; the command reaches whatever this machine reaches"

_SET_UP_BY_HAND = "with --phase install the command is the set-up, and the policy's own set-up command does not run"

_GAVE_OUT = (
    OSError,
    RecursionError,
    MemoryError,
)  # what no code can foresee at each place; never the command's own end


def run(argv: list[str]) -> int:
    """Run `tidegate run` and return its exit status.

    Raises:
        TidegateError: for what a person can mend; the status file, where one is asked for, says so too.
    """
    options = parse_run(argv)
    if options.help:
        sys.stdout.write(USAGE)
        return 0
    return conclude(options, lambda stdio: _run(options, stdio))


def conclude(options: RunOptions, act: Callable[[StdioPlan], Ended]) -> int:
    """Run something, say how it was on standard error and in the files asked for, and return the exit status.

    Raises:
        TidegateError: for what a person can mend; the status file, where one is asked for, says so too.
    """
    try:
        return _concluded(options, act)
    except _GAVE_OUT as error:
        raise _gave_out(error) from error


def _concluded(options: RunOptions, act: Callable[[StdioPlan], Ended]) -> int:
    # First of all: a closed standard stream must not become a descriptor of ours.
    from tidegate.holds.stdio import need_terminal, plan_stdio

    stdio = plan_stdio()
    status_file = OutputFile(options.status_file, "--status-file") if options.status_file else None
    try:
        report = OutputFile(options.report, "--report") if options.report else None
        if options.ask:
            need_terminal(stdio)
        _refuse_in_a_task()
        ended = act(stdio)
        status, refused = _tell(options, ended, report)
    except (TidegateError, *_GAVE_OUT) as error:
        known = error if isinstance(error, TidegateError) else _gave_out(error)
        if status_file is not None:
            try:
                status_file.write(status_text("tidegate", known.exit_status, 0, known.what))
            except TidegateError as second:  # what stopped it is what the exit status says
                say(str(second))
        raise known from error
    outcome = ended.outcome
    if status_file is not None:
        whose = "tidegate" if refused else outcome.source
        what = "something was refused" if refused else ended.not_begun
        status_file.write(status_text(whose, status, outcome.signal, what))
    if outcome.interrupted and not refused:
        from tidegate.runtime.outcome import die_like

        die_like(outcome)
    return status


def _refuse_in_a_task() -> None:
    if "TIDEGATE_TASK" in os.environ:  # first, so that no other start imports what knows why
        from tidegate.holds.messages import refuse_in_a_task

        refuse_in_a_task()


def _run(options: RunOptions, stdio: StdioPlan) -> Ended:
    server = _server(options)
    if options.hold in WITHOUT_GATE:
        try:
            return queued(lambda inbox: _without_gate(options, stdio, inbox, server))
        finally:
            if server is not None:
                server.close()
    if server is None:
        from tidegate.runtime.gate_link import GateLink

        # Before all else: the gate imports its rooms while this process imports its own, and is what a start waits for.
        link: Link = GateLink(say)
    else:
        link = server
    try:
        return queued(lambda inbox: _with_gate(options, stdio, inbox, link))
    except WithoutGateError as error:
        from tidegate.cli.run_without_gate import as_without_gate

        without = as_without_gate(options, error)
    finally:
        link.close()
    return _run(without, stdio)


def _server(options: RunOptions) -> ServerLink | None:
    """The server, where one runs and is wanted."""
    if options.wait:
        from tidegate.runtime.server_link import need_server

        return need_server(state_folder(os.environ), say, "--wait")
    if not options.server or not os.path.exists(front_socket(state_folder(os.environ))):
        return None
    from tidegate.runtime.server_link import find_server

    return find_server(state_folder(os.environ), say)


def queued(act: Callable[[SignalInbox], Ended]) -> Ended:
    """Act while the signals that would end us are queued instead."""
    from tidegate.runtime.signals import SignalInbox

    inbox = SignalInbox.install()
    try:
        return act(inbox)
    finally:
        inbox.restore()


def _without_gate(options: RunOptions, stdio: StdioPlan, inbox: SignalInbox, server: ServerLink | None) -> Ended:
    from tidegate.holds.hold import find_hold
    from tidegate.runtime.policy_sources import files_without_gate, is_strict
    from tidegate.runtime.task import run_without_gate

    warn_before(options)
    files = files_without_gate(options.files, config=config_folder(os.environ), state=state_folder(os.environ))
    order = order_of(options, new_log=False).replace(strict=is_strict(files))
    hold = find_hold(options.hold)
    return followed(order, lambda keys: run_without_gate(order, hold, stdio, inbox, keys, server))


def _with_gate(options: RunOptions, stdio: StdioPlan, inbox: SignalInbox, link: Link) -> Ended:
    from tidegate.cli.inspection_packages import ensure_for
    from tidegate.cli.run_agent import agent_of, as_looked_at, with_keys
    from tidegate.cli.run_tools import with_named_tools
    from tidegate.runtime.hold_choice import choose_hold
    from tidegate.runtime.policy_sources import is_strict, option_layer, policy_in_force
    from tidegate.runtime.task import run_behind_gate

    warn_before(options)
    order = order_of(options, new_log=True)
    agent = agent_of(options, order)
    order = as_looked_at(order, agent)
    policy = policy_in_force(
        folder=order.folder,
        config=config_folder(os.environ),
        state=state_folder(os.environ),
        options=option_layer(
            allow=options.allow,
            ask=options.ask_for,
            deny=options.deny,
            profile=options.profile,
            files=options.files,
            registries=options.registries,
        ),
        policy_file=options.policy,
        trust_folder=options.trust_folder,
        no_folder_policy=options.no_folder_policy,
        agent=agent,
    )
    if policy.setup and order.phase == Phase.INSTALL.value:
        policy = policy.replace(setup=(), notes=(*policy.notes, _SET_UP_BY_HAND))
    order = order.replace(strict=is_strict(policy.files))
    for note in (*policy.notes, agent.note(policy) if agent is not None else ""):
        if note:
            say(f"note: {note}")
    if not options.quiet:
        from tidegate.runtime.services import Services

        for line in Services(policy, Phase(order.phase), [one.port for one in order.publish]).notes(
            inside=options.hold != "landlock"
        ):
            say(f"note: {line}")
    if any(policy.index.phase(phase).denies for phase in Phase):
        from tidegate.policy.explain import shadowed

        for warning in shadowed(policy):
            say(f"warning: {warning}")
    clock = time.time  # noqa: TID251  the clock comes in here
    hold = choose_hold(options.hold, state_folder(os.environ), clock)
    ensure_for(policy, say, secrets=bool(order.secrets))
    order = with_keys(order, policy, agent, options.hold)
    order, tooled = with_named_tools(options.tools, order, policy.files, link)
    return followed(
        order, lambda keys: tooled(lambda: run_behind_gate(order, policy, hold, link, stdio, inbox, clock, keys))
    )


def followed(order: Order, act: Callable[[SshKeys | None], Ended]) -> Ended:
    """Act, and see what is new afterwards, or another than before, that could not be kept from it."""
    from tidegate.runtime.guarded import marks_of

    before = marks_of(order.guarded, order.folder)
    ended = _with_keys(order, act)
    new, now = filter(os.path.lexists, order.told), marks_of(before, order.folder)
    return ended.replace(new=tuple(new), changed=tuple(path for path in before if now.get(path) != before[path]))


def _with_keys(order: Order, act: Callable[[SshKeys | None], Ended]) -> Ended:
    """Act while what serves the order's ssh keys is there."""
    if not order.ssh_keys:
        return act(None)
    from tidegate.runtime.ssh_keys import SshKeys, shut

    keys = SshKeys(order.ssh_keys, make_task_folder(state_folder(order.environ), order.task), order.environ)
    try:
        ended = act(keys)
        return ended.replace(signed=(*keys.finish(), *shut(order.ssh_keys, ended.rows or ())))
    finally:
        keys.close()


def warn_before(options: RunOptions) -> None:
    """Refuse what the administrator of this machine forbids (POL-8), and say what has no gate.

    Raises:
        TidegateError: where it is forbidden.
    """
    from tidegate.runtime.administrator import refuse_what_is_locked

    if options.hold == "open":
        refuse_what_is_locked("open", "--open-network")
    if not options.selftest:
        refuse_what_is_locked("no-selftest", "--no-selftest")
    if options.hold == "open":
        say(_OPEN_WARNING)


def order_of(options: RunOptions, *, new_log: bool) -> Order:
    """Return what is to be run in the current folder; `new_log` makes a journal for it.

    Raises:
        StartError: when the folder, the journal or a standard stream cannot be used.
    """
    from tidegate.runtime.agent import agent_files, harness_file
    from tidegate.runtime.agent_state import agent_state
    from tidegate.runtime.caches import not_led_astray, writable_folders
    from tidegate.runtime.folder_policy import FOLDER_FILE
    from tidegate.runtime.guarded import guarded_files, homes_of
    from tidegate.runtime.installation import installation_paths, out_of_sight
    from tidegate.runtime.outputs import check_streams, is_file_in_sight
    from tidegate.runtime.policy_sources import USER_FILE
    from tidegate.runtime.task import Order

    try:
        folder = os.path.realpath(os.getcwd())
    except OSError:
        raise StartError("the current folder is gone", fix="cd to one that exists") from None
    environ = dict(os.environ)
    state = state_folder(environ)
    task = new_task_id(time.gmtime()[:6], os.urandom(4))
    log = os.path.abspath(options.log) if options.log else ""
    installed = installation_paths()
    readonly = [*installed, *agent_files(environ, folder)]
    # What this run was told must not be what the next run is told by the task: neither the file nor a link to it.
    told = (options.policy, harness_file(options.harness), FOLDER_FILE, os.path.join(config_folder(environ), USER_FILE))
    readonly += [os.path.abspath(path) for path in told if path and is_file_in_sight(path)]
    if log:
        from tidegate.journal.tasklog import open_log

        # It is there before the hold is built, which can only cover what exists.
        os.close(open_log(log))
        readonly += [log] if is_file_in_sight(log) else []
    elif new_log:
        log = os.path.join(make_task_folder(state, task), LOG_NAME)
        sweep_tasks(state)
    uses: tuple[KeyUse, ...] = ()
    ours = [state, config_folder(environ), cache_folder(environ), *default_folders(environ)]
    if options.ssh_keys:
        from tidegate.runtime.ssh_keys import private_files, read_ssh_key

        uses = tuple(read_ssh_key(text, environ.get("HOME", "")) for text in options.ssh_keys)
        ours += private_files(uses)
    secrets: tuple[Stored, ...] = ()
    if options.secrets:
        from tidegate.runtime.secret_store import load_all

        secrets = load_all(state, options.secrets)
        ours += filter(None, (one.file(os.environ) for one in secrets))
    hidden = tuple(dict.fromkeys(ours))
    home = os.path.realpath(environ["HOME"]) if os.path.isabs(environ.get("HOME", "")) else ""
    writable = writable_folders(environ, home)  # first: what it makes is there when the rest is looked at
    environ |= agent_state(environ, home, writable.values())
    later = guarded_files(environ, folder, homes_of(environ))
    check_streams((*readonly, *later.guarded, *hidden))
    return Order(
        task=task,
        phase=options.phase,
        command=options.command,
        folder=folder,
        environ=environ,
        shares=(*options.shares, *(Share(path, readonly=True) for path in out_of_sight(installed, hidden))),
        hidden=hidden,
        readonly=tuple(readonly),
        guarded=later.guarded,
        closed=later.closed,
        writable=not_led_astray(writable, later.guarded),
        told=later.told,
        selftest=options.selftest,
        log=log,
        rotate=not options.log,
        capture=options.capture,
        container=options.container,
        publish=options.publish,
        ssh_keys=uses,
        secrets=secrets,
        ask=options.asked,
        state=state,
        wait_seconds=options.wait_seconds,
        issue=options.issue,
    )


def _tell(options: RunOptions, ended: Ended, report: OutputFile | None) -> tuple[int, bool]:
    """Say what happened, and return the exit status and whether it stands for a refusal."""
    outcome = ended.outcome
    if outcome.exec_kind:
        from tidegate.runtime.outcome import exec_sentence

        raw(exec_sentence(outcome, options.command[0]))
    if ended.not_begun:
        say(ended.not_begun)
    rows = ended.rows or ()
    if rows and not options.quiet:
        from tidegate.journal.summary import net_lines

        raw("\n".join(net_lines(rows, ended.more)))
    if ended.signed and not options.quiet:
        raw("\n".join(ended.signed))
    for note in () if options.quiet else ended.notes():
        say(f"note: {note}")
    refused = False
    if rows and options.fail_on_refusal:
        from tidegate.journal.summary import is_refusal

        refused = any(is_refusal(*row[2:5]) for row in rows)
    stands = refused and outcome.exit_status == 0
    status = EXIT_REFUSAL if stands else outcome.exit_status
    if report is not None:
        from tidegate.journal.report import report_text

        report.write(report_text(rows, ended.more, exit_status=status))
    return status, stands


def _gave_out(error: BaseException) -> StartError:
    why = str(error) or "out of memory"
    if isinstance(error, OSError):
        why = os.strerror(error.errno or 0) + (f": {error.filename!r}" if error.filename else "")
    return StartError(f"this machine did not give what is needed: {why}", fix="see `ulimit -a`", code="machine")
