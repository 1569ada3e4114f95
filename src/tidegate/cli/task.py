"""`tidegate task`: tasks that live until somebody ends them; their commands come with `tidegate exec`."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import click

from tidegate.cli.main import say
from tidegate.cli.once import once
from tidegate.model.errors import UsageError
from tidegate.model.host import bracketed
from tidegate.model.issue import issue_of
from tidegate.runtime.state import config_folder, state_folder

if TYPE_CHECKING:
    from typing import Any

    from tidegate.policy.policy import Policy

_SET_UP_LATER = "note: the policy's set-up command runs once, before the task's first command"
_SET_UP_BY_HAND = (
    "note: with --phase install the first commands are the set-up, and the policy's own set-up command does not run; "
    "then: tidegate task phase TASK runtime"
)


@click.group()
def task() -> None:
    """Tasks of a running server that live until they are ended."""


def _ask(verb: str, **order: Any) -> Any:
    from tidegate.runtime.server_link import need_server

    link = need_server(state_folder(os.environ), say, f"tidegate task {verb}")
    try:
        return link.do(verb, **order)
    finally:
        link.close()


@task.command()
@click.option("--name", default="", metavar="NAME", help="What people call it.")
@click.option("--issue", default="", metavar="KEY", help="Its end is a comment on this issue (docs/sinks.md).")
@click.option("--folder", default=".", metavar="FOLDER", help="Where its commands run; this folder when left out.")
@once("--policy", metavar="FILE", help="This policy in place of profile, presets and your own allows.")
@once("--profile", metavar="NAME", help="balanced, careful, closed or audit.")
@once("--registries", metavar="MODE", help="As of `run`.")
@click.option("--allow", multiple=True, metavar="HOST[:PORT]", help="Let this host through.")
@click.option("--deny", multiple=True, metavar="HOST[:PORT]", help="Never let it through.")
@click.option("--ask-for", multiple=True, metavar="HOST[:PORT]", help="A person is asked about it.")
@click.option("--phase", default="runtime", type=click.Choice(["install", "runtime"]), help="The phase it begins in.")
@click.option("--wait-for", default="", metavar="TIME", help="How long a question waits: 1m to 8h.")
@click.option("--trust-folder", is_flag=True, help="Use the folder's tidegate.yaml.")
@click.option("--no-folder-policy", is_flag=True, help="Leave the folder's tidegate.yaml aside.")
@click.option(
    "--secret", "secrets", multiple=True, metavar="NAME", help="Its commands use this secret (may be repeated)."
)
@click.option(
    "--tool",
    "tools",
    multiple=True,
    metavar="NAME",
    help="Its commands can call this tool, of those that the server offers (serve --tool; may be repeated).",
)
@click.option(
    "--hold",
    type=click.Choice(("docker", "podman", "uid")),
    help="Its commands run in containers of this engine; with uid, as users of their own (root's server).",
)
@click.option("--image", default="", metavar="IMAGE", help="The image of those containers.")
@click.option("--transport", default="", metavar="NAME", help="As with run.")
@click.option("--container-option", multiple=True, metavar="NAME=VALUE", help="As with run.")
@click.option(
    "--print-args",
    type=click.Choice(("docker", "podman")),
    help="Also print what to add to your own `docker run` or `podman run`; then use tidegate attach.",
)
def create(
    *,
    name: str,
    issue: str,
    folder: str,
    policy: str,
    profile: str,
    registries: str,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    ask_for: tuple[str, ...],
    phase: str,
    wait_for: str,
    trust_folder: bool,
    no_folder_policy: bool,
    secrets: tuple[str, ...],
    tools: tuple[str, ...],
    hold: str | None,
    image: str,
    transport: str,
    container_option: tuple[str, ...],
    print_args: str | None,
) -> None:
    """Make a task, and print its id."""
    from tidegate.cli.inspection_packages import ensure_for
    from tidegate.cli.terms import wait
    from tidegate.policy.snapshot import to_plain
    from tidegate.runtime.inspection import wants_inspection
    from tidegate.runtime.policy_sources import option_layer, policy_in_force

    seconds = wait(wait_for) if wait_for else None
    real = os.path.realpath(folder)
    if not os.path.isdir(real):
        raise UsageError(f"--folder {folder!r} is not a folder", fix="name one")
    joined: Policy = policy_in_force(
        folder=real,
        config=config_folder(os.environ),
        state=state_folder(os.environ),
        options=option_layer(allow=allow, ask=ask_for, deny=deny, profile=profile, registries=registries),
        policy_file=policy,
        trust_folder=trust_folder,
        no_folder_policy=no_folder_policy,
    )
    for note in joined.notes:
        say(f"note: {note}")
    if joined.setup:
        by_hand = phase == "install"
        say(_SET_UP_BY_HAND if by_hand else _SET_UP_LATER)
        joined = joined.replace(setup=()) if by_hand else joined
    ensure_for(joined, say, secrets=bool(secrets))
    made = _ask(
        "create",
        folder=real,
        name=name,
        issue=issue_of(issue),
        phase=phase,
        policy=to_plain(joined),
        wait_seconds=seconds,
        hold=hold or "",
        container=_container(hold, image, transport, container_option),
        secrets=secrets,
        tools=tools,
    )
    lines = []
    if print_args:
        from tidegate.cli.launcher import options_for

        named = image if hold == print_args else ""
        reads = bool(secrets) or wants_inspection(joined)
        try:
            lines = options_for(
                print_args, made["id"], image=named, reads=reads, secrets=len(secrets), tools=bool(tools)
            )
        except BaseException:
            _ask("end", task=made["id"])  # nobody is told its id
            raise
    click.echo("\n".join((made["id"], *lines)))


def _container(hold: str | None, image: str, transport: str, options: tuple[str, ...]) -> dict[str, Any] | None:
    """What the commands of the task run in, as the server keeps it; None for what `exec` says."""
    if hold == "uid" and not (image or transport or options):
        return None
    if bool(hold) != bool(image) or hold == "uid" or (not hold and (transport or options)):
        raise UsageError("--hold and --image go together", fix="--hold docker --image IMAGE")
    if not hold:
        return None
    from tidegate.holds.container.worker import check_options

    return {"image": image, "transport": transport, "options": check_options(options)}


@task.command("list")
@click.option("--all", "everything", is_flag=True, help="Ended ones too.")
@click.option("--limit", default=100, metavar="N", type=click.IntRange(1, 10000), help="At most so many.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def list_(*, everything: bool, limit: int, as_json: bool) -> None:
    """List the living tasks, the newest first."""
    tasks = _ask("list", all=everything, limit=limit)
    if as_json:
        click.echo(json.dumps(tasks, indent=1))
        return
    if not tasks:
        say("there is no task: tidegate task create" if everything else "no task lives: --all shows those that ended")
    for one in tasks:
        click.echo(_line(one))


@task.command()
@click.argument("task_id", metavar="TASK")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def show(*, task_id: str, as_json: bool) -> None:
    """Show one task: what it is, what runs in it, what it did."""
    found = _ask("show", task=task_id)
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for key, value in found.items():
        if key in ("created_at", "ended_at"):
            shown = "" if value is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(value))
        elif key == "secrets":
            shown = "; ".join(f"{one['name']} for {', '.join(one['hosts'])}" for one in value)
        elif key == "execs":
            shown = "; ".join(_printable(" ".join(one["command"])) for one in value)
        else:
            shown = _printable(" ".join(value) if isinstance(value, list) else str(value))
        if shown:
            click.echo(f"{key.replace('_', ' ')}: {shown}")


@task.command()
@click.argument("task_id", metavar="TASK")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def connections(*, task_id: str, as_json: bool) -> None:
    """List the open connections of a living task. `tidegate cut --connection N` closes one."""
    found = _ask("connections", task=task_id)
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    now = time.time()  # noqa: TID251  for a person to read
    for one in found["open"]:
        click.echo(_open_line(one, now))
    if found["more"]:
        click.echo(f"... and {found['more']} more")


@task.command()
@click.argument("task_id", metavar="TASK")
@click.argument("phase", type=click.Choice(["install", "runtime"]))
@click.option("--cut", is_flag=True, help="Close what is open; otherwise it stays open and is marked so.")
def phase(*, task_id: str, phase: str, cut: bool) -> None:
    """Move a task to another phase. Its new connections are judged by the rules of that phase."""
    moved = _ask("phase", task=task_id, phase=phase, cut=cut)
    say(f"{moved['id']} is in the phase {phase}" + (f"; {moved['cut']} connections were closed" if cut else ""))


@task.command("wait")
@click.argument("task_id", metavar="TASK")
@click.argument("time_", metavar="TIME")
def wait_(*, task_id: str, time_: str) -> None:
    """Have questions of a living task wait for TIME (1m to 8h) from now on. Those that are open keep their time."""
    from tidegate.cli.terms import wait

    changed = _ask("wait", task=task_id, wait_seconds=wait(time_))
    say(f"{changed['id']}: questions wait for {time_} from now on")


@task.command()
@click.argument("task_id", metavar="TASK")
def end(*, task_id: str) -> None:
    """End a task, and every command that runs in it."""
    ended = _ask("end", task=task_id)
    say(f"{ended['id']} has ended")


def _line(one: dict[str, Any]) -> str:
    what = one["name"] or " ".join(one["command"]) or "-"
    state = "paused" if one["paused"] else one["state"]
    running = f"{len(one['execs'])} running" if one["execs"] else "idle"
    if one["ended_at"] is not None:
        running = f"{one['connections']} connections, {one['refused']} refused"
    return f"{one['id']}  {state}  {one['phase']}  {running}  {_printable(what)}  {_printable(one['folder'])}"


def _open_line(one: dict[str, Any], now: float) -> str:
    where = f"{bracketed(one['host'])}:{one['port']}"
    state = one["how"] or {"waiting": "waits for an answer"}.get(one["state"], one["state"])
    size = f"{one['bytes_up']} bytes up, {one['bytes_down']} down"
    return f"{one['id']}  {where}  {state} ({one['rule'] or one['name']})  {max(0, now - one['since']):.0f} s  {size}"


def _printable(text: str) -> str:
    """A text as a person may see it (ASK-6)."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
