"""The container of the command: how it is asked for, and the look at what came of it before it starts (HLD-4, HLD-13).

It has no right, no network but the channel's, the files of view.py, the environment of the task (GAT-10), and as PID 1
the engine's own small init, which passes signals on and reaps; before that, where its connections are watched, the
starter (watching.py). The user is who called: files in the workspace are that user's on both sides.

Rules of the file: variables travel in a file that only this user can read, never in an argument (CASES B119). Options
that a person adds are of a short list (`OPTIONS`), none of which gives a right, a mount or a network.
"""

from __future__ import annotations

import os

from tidegate.holds.container.confinement import confining
from tidegate.holds.container.engine import LABEL_PART, PODMAN
from tidegate.holds.container.small_init import find_init
from tidegate.holds.container.view import file_mount, mounts_of, trust_mounts
from tidegate.holds.container.weakness import added_mounts, other_proxies, weaknesses
from tidegate.holds.inside import GATE4
from tidegate.model.errors import StartError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from tidegate.holds.container.engine import Engine
    from tidegate.holds.container.transport import Channel
    from tidegate.holds.container.watching import Watching
    from tidegate.holds.hold import LaunchSpec
    from tidegate.holds.plan import Plan

PART = "worker"
OPTIONS = frozenset(("runtime", "memory", "memory-swap", "cpus", "shm-size", "ulimit", "tmpfs", "platform", "env"))
"""What `--container-option NAME=VALUE` may name."""

KEPT = ("TERM", "COLORTERM", "NO_COLOR", "LANG", "LANGUAGE", "TZ")
"""Variables of the caller that mean the same in a container; others come by `--container-option env=NAME`."""

PROXIES = tuple(
    name for word in ("HTTP", "HTTPS", "FTP", "ALL", "NO") for name in (f"{word}_PROXY", f"{word}_PROXY".lower())
)
"""Those that an engine may add by itself."""

_RESOLV = "resolv.conf"
_ENVIRONMENT = "environment"


def check_options(options: Iterable[str]) -> tuple[str, ...]:
    """The options that a person adds, each `NAME=VALUE`.

    Raises:
        UsageError: for one that is not of the list.
    """
    found = tuple(options)
    for text in found:
        name, equals, value = text.partition("=")
        if name not in OPTIONS or not equals or not value:
            raise UsageError(
                f"--container-option {text!r}: this is no option that a task's container takes",
                fix=f"NAME=VALUE with one of {', '.join(sorted(OPTIONS))}",
            )
    return found


def kept_variables(environ: Mapping[str, str], options: Iterable[str] = ()) -> dict[str, str]:
    """What of the caller's environment a container gets: what means the same there, and what was named."""
    kept = {name: text for name, text in environ.items() if name in KEPT or name.startswith("LC_")}
    for text in options:
        name, _, value = text.partition("=")
        if name == "env":
            variable, given, content = value.partition("=")
            if given or variable in environ:
                kept[variable] = content if given else environ[variable]
    return kept


def image_variables(image: Mapping[str, Any]) -> dict[str, str]:
    """The variables that an image brings."""
    texts = (image.get("Config") or {}).get("Env") or ()
    return dict(text.split("=", 1) for text in texts if "=" in text)


def create_worker(
    engine: Engine,
    spec: LaunchSpec,
    plan: Plan,
    channel: Channel,
    *,
    name: str,
    labels: Mapping[str, str],
    folder: str,
    watching: Watching | None,
) -> str:
    """Make the worker's container, not started, and return its id. Without `watching` nobody answers for its sockets.

    Raises:
        StartError: when the engine cannot, or made another container than was asked for.
    """
    assert spec.container is not None
    image = spec.container.image
    options = [
        *("--name", name, "--entrypoint", "", "--interactive", "--restart", "no", "--log-driver", "none"),
        *channel.network,
        *confining(engine, folder, starts=watching is not None),
        *_user(engine, channel.network),
        *(_init(engine) if watching is None else watching.mounts),
        "--no-healthcheck",  # commands of the image's own, which the engine would run beside the task
        *("--workdir", spec.cwd),
        *mounts_of(spec, plan, engine.name),
        *trust_mounts(spec.trust, folder),
        *("--env-file", variables_file(folder, spec.env, image_variables(engine.image(image)))),
        *_proxies(spec.env),
        *(part for key, value in {**labels, LABEL_PART: PART}.items() for part in ("--label", f"{key}={value}")),
    ]
    if spec.stdio is not None and spec.stdio.terminal is not None and spec.stdio.terminal.full:
        options.append("--tty")
    if channel.name_server:
        options += file_mount(resolver_file(folder, channel.name_server), "/etc/resolv.conf")
    for text in spec.container.options:
        key, _, value = text.partition("=")
        if key != "env":
            options += [f"--{key}", value]
    container = engine.create(image, options, spec.argv if watching is None else watching.command(spec.argv))
    try:
        found = engine.inspect(container)
        weak = [*weaknesses(found), *added_mounts(found, options), *other_proxies(found, spec.env)]
    except BaseException:
        engine.remove(container)
        raise
    if weak:
        engine.remove(container)
        raise StartError(
            f"{engine.name} made the task's container otherwise than it was asked to: {'; '.join(weak)}",
            fix=f"look for defaults in the configuration of {engine.name}",
            code="container-weak",
        )
    return container


def resolver_file(folder: str, name_server: str = GATE4) -> str:
    """A resolv.conf that names the gate; its path."""
    return _write(folder, _RESOLV, f"nameserver {name_server}\noptions timeout:5 attempts:2\n", 0o644)


def variables_file(folder: str, env: Mapping[str, str], image: Mapping[str, str]) -> str:
    """The file of a worker's variables, which only this user can read; its path.

    Raises:
        StartError: for one that engines cannot take.
    """
    return _write(folder, _ENVIRONMENT, _lines(env, image))


def _proxies(env: Mapping[str, str]) -> list[str]:
    """The variables of proxies as options, too: docker's own settings (`proxies` in its config.json) overrule the file.

    They lead to the gate, or nowhere, so an argument may show them.
    """
    return [part for name in PROXIES for part in ("--env", f"{name}={env.get(name, '')}")]


def _user(engine: Engine, network: Sequence[str]) -> list[str]:
    """The options by which the worker's user is who called.

    Whose network it joins has the same users, for rootless podman: else the kernel does not let it mount its own /sys.
    """
    me = f"{os.geteuid()}:{os.getegid()}"
    if not engine.facts().rootless:
        return ["--user", me]
    if engine.name == PODMAN:
        joined = [text for text in network if text.startswith("container:")]
        return ["--user", me, *(part for text in joined for part in ("--userns", text))]
    return ["--user", "0:0"]  # in a rootless docker, root is who called


def _init(engine: Engine) -> list[str]:
    """The options for the init: docker brings its own, podman needs to be shown one."""
    if engine.name != PODMAN or engine.facts().in_vm:
        return ["--init"]
    return ["--init", "--init-path", find_init(engine)]


def _lines(env: Mapping[str, str], image: Mapping[str, str]) -> str:
    """The file of variables. What the image brings and the task must not have is emptied (a proxy of its own)."""
    whole = {name: "" for name in image if name not in env} | dict(env)
    for name, value in whole.items():
        if "\n" in value or "\r" in value:
            raise StartError(
                f"the variable {name} has more than one line, which engines cannot take",
                fix=f"leave it out: env -u {name} tidegate run ...",
                code="container-env",
            )
    return "".join(f"{name}={value}\n" for name, value in whole.items())


def _write(folder: str, name: str, text: str, mode: int = 0o600) -> str:
    path = os.path.join(folder, name)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        os.fchmod(descriptor, mode)
        os.write(descriptor, text.encode("utf-8", "surrogateescape"))
    finally:
        os.close(descriptor)
    return path
