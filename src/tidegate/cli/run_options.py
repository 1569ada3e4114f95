"""The command line of `run`, read by a small parser of our own: click alone would cost 40 ms at each start.

Rules of the file: an option is `--name VALUE` or `--name=VALUE`; the first word that is no option begins the command,
and everything behind `--` belongs to the command. What is unknown is an error that names the nearest option; nothing
is ever guessed, since a guess could widen what a task may reach.
"""

from __future__ import annotations

import os

from tidegate.holds.hold import WITHOUT_GATE
from tidegate.model.errors import UsageError
from tidegate.model.issue import issue_of
from tidegate.model.value import Value
from tidegate.runtime.channel import ASK, NO_ONE, WAIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidegate.holds.hold import Container
    from tidegate.model.publish import Publish

HOLDS = ("netns", "landlock", "uid", "docker", "podman", "open", "offline")
CONTAINERS = ("docker", "podman")
CAPTURES = ("on", "ports", "off")
FILES = ("strict", "normal")

USAGE = """\
usage: tidegate run [options] [--] COMMAND [ARGUMENT ...]

Runs COMMAND behind a gate: it reaches only what the policy lets through, and every attempt is on record.
Without a policy the profile is `balanced`: package registries can be read, everything else would be asked about, and
the command line asks no one.

what it may reach
  --allow HOST[:PORT]     let this host through, beside what is in force (may be repeated)
  --deny HOST[:PORT]      never let it through; wins over every allow
  --ask-for HOST[:PORT]   a person is asked about it
  --policy FILE           this policy in place of profile, presets and your own allows; also one of Kraft, GurtOS, Kule,
                          srt, Claude Code, Codex, Smokescreen or gh-aw (see tidegate policy import)
  --profile NAME          balanced, careful, closed or audit
  --registries MODE       read (the default: what publishes to a package registry is refused) or tunnel (not read)
  --harness NAME|FILE     COMMAND is this agent (claude, codex, or as a file of yours says): let its hosts through
  --phase PHASE           install or runtime (runtime)
  --ask                   ask in this terminal about what needs approval, on a screen that COMMAND cannot reach
  --wait                  what needs approval waits for whoever watches the server
  --wait-for TIME         the same, each question for TIME: 1m to 8h (15m, or what the server's settings say); with
                          --ask it is the time that you have
  --no-server             run alone, also where a server runs
  --trust-folder          use this folder's tidegate.yaml
  --no-folder-policy      leave this folder's tidegate.yaml aside

what it may touch
  --secret NAME           let it use this secret of yours (tidegate secret set) and not have it: a variable holds a
                          stand-in, which becomes the value on the way to the secret's hosts (may be repeated)
  --tool NAME             let it call this tool of yours: a program that runs outside for it, offered as plain HTTP and
                          as MCP at http://tools.tidegate.internal/ (may be repeated)
  --ssh-key KEY:HOST      offer an ssh agent that signs with this key for logins at HOST (may be repeated); the key
                          itself stays outside
  --share PATH[:ro]       show PATH to the command (its /tmp, /run and /dev are its own)
  --files MODE            strict (the default for root): only the workspace, temporary folders, caches and what is
                          shared can be written; normal (for others): all you can write but what would run later
                          (start-up files, hooks, programs on the PATH). "Read-only file system"? --share PATH opens it
  --hold NAME             netns (the default), landlock (where no namespaces can be made: proxy only, no servers),
                          uid (for root: a user of its own), docker, podman, open or offline
  --image IMAGE           with docker and podman: what the container is made of; COMMAND is run in place of its own
  --transport NAME        with docker and podman: how the gate is reached: enter, relay or vm (the first that works;
                          found once for an engine)
  --relay-image IMAGE     with those two: the image of the relay (what tidegate relay-image build makes)
  --container-option N=V  with docker and podman: runtime, memory, memory-swap, cpus, shm-size, ulimit, tmpfs, platform
                          as the engine has them; env=NAME or env=NAME=VALUE (may be repeated)
  --no-network            the same as --hold offline: no socket but between its own processes
  --open-network          the same as --hold open: no gate and no policy; says so each time
  --capture MODE          connections that know no proxy: on (the default: they arrive at the gate too), ports (those
                          to some ports, where the kernel lacks netfilter) or off (they fail)
  --publish [PORT:]PORT   lead a port of this machine's loopback to a server of COMMAND: 8080, 8080:3000 (inside),
                          127.0.0.1:8080:3000 (may be repeated)
  --no-selftest           do not prove the fence before the command starts

what is said afterwards
  --quiet                 no net: lines
  --log FILE              write the journal there (default: under your state folder)
  --report FILE           the same as the net: lines, for machines
  --status-file FILE      whose exit status it was: the command's or tidegate's
  --issue KEY             what became of it is a comment on this issue, where a server sends its record to Jira
  --fail-on-refusal       exit 77 when the command ended with 0 but something was refused
  --help                  this text

exit status: the command's own (126 not executable, 127 not found, 128+n by signal); 2 usage or policy text;
70 the gate was lost; 77 see --fail-on-refusal; 78 cannot start as asked
"""

_VALUED = (
    "--allow", "--deny", "--ask-for", "--policy", "--profile", "--registries", "--harness", "--phase", "--share",
    "--files", "--hold", "--capture", "--publish", "--secret", "--ssh-key", "--log", "--report", "--status-file",
    "--wait-for", "--issue", "--image", "--transport", "--container-option", "--relay-image",
    "--tool",
)  # fmt: skip
_FOR_A_CONTAINER = ("--image", "--transport", "--container-option", "--relay-image")
_FOR_A_GATE = (
    "--capture", "--allow", "--deny", "--ask-for", "--policy", "--profile", "--registries", "--harness",
    "--fail-on-refusal", "--ask", "--wait", "--wait-for", "--secret", "--tool",
)  # fmt: skip
_NOT_PUBLISHED = {
    "open": "the command's servers are this machine's own: connect to them as they are",
    "offline": "the command has no network to have a server in: leave --no-network out",
    "landlock": "a command in it has no servers: use --hold netns",
}
_FLAGS = (
    "--trust-folder", "--no-folder-policy", "--no-network", "--open-network", "--no-selftest", "--quiet",
    "--fail-on-refusal", "--help", "--ask", "--wait", "--no-server",
)  # fmt: skip
_SHORT = {"-q": "--quiet", "-h": "--help"}


class Share(Value):
    """A path the task sees beside its workspace."""

    path: str
    readonly: bool


class RunOptions(Value):
    """What the command line of `run` asks for."""

    command: tuple[str, ...]
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ask_for: tuple[str, ...] = ()
    policy: str = ""
    profile: str = ""
    registries: str = ""
    harness: str = ""
    phase: str = "runtime"
    trust_folder: bool = False
    no_folder_policy: bool = False
    shares: tuple[Share, ...] = ()
    ssh_keys: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    files: str = ""
    hold: str = "netns"
    hold_is_named: bool = False
    container: Container | None = None
    capture: str = "on"
    publish: tuple[Publish, ...] = ()
    selftest: bool = True
    quiet: bool = False
    log: str = ""
    report: str = ""
    status_file: str = ""
    issue: str = ""
    fail_on_refusal: bool = False
    ask: bool = False
    wait: bool = False
    wait_seconds: int | None = None
    server: bool = True
    help: bool = False

    @property
    def asked(self) -> str:
        """Who is asked about what needs approval (ASK-4)."""
        return ASK if self.ask else WAIT if self.wait else NO_ONE


def parse_run(argv: list[str], only: frozenset[str] | None = None) -> RunOptions:
    """Return what `argv` (without `run` itself) asks for; `only` these options, where it is given.

    Raises:
        UsageError: with what is wrong and what to write instead.
    """
    given: dict[str, list[str]] = {}
    position = 0
    while position < len(argv):
        word = argv[position]
        if word == "--":
            position += 1
            break
        if not word.startswith("-") or word == "-":
            break
        name, equals, value = word.partition("=")
        if only is not None and name == "--secret":
            raise UsageError(
                "a task's secrets are named when it is created", fix="tidegate task create --secret NAME …"
            )
        if only is not None and name not in only:
            raise UsageError(f"unknown option {name!r}", fix=f"one of {', '.join(sorted(only))}")
        name = _SHORT.get(name, name)
        position += 1
        if name in _FLAGS:
            if equals:
                raise UsageError(f"{name} takes no value", fix=f"write {name} alone")
            value = ""
        elif name in _VALUED:
            if not equals:
                if position >= len(argv) or argv[position] == "--":
                    raise UsageError(f"{name} needs a value", fix=f"{name} VALUE")
                value = argv[position]
                position += 1
            if not value:
                raise UsageError(f"{name} has an empty value", fix=f"{name} VALUE")
        else:
            raise UsageError(f"unknown option {word.partition('=')[0]!r}", fix=_nearest(name))
        given.setdefault(name, []).append(value)
    return _made(given, tuple(argv[position:]))


def _made(given: dict[str, list[str]], command: tuple[str, ...]) -> RunOptions:
    def one(name: str, default: str = "") -> str:
        values = given.get(name, [])
        if len(values) > 1:
            raise UsageError(f"{name} is given twice", fix="give it once")
        return values[0] if values else default

    if "--help" in given:
        return RunOptions(command, help=True)
    if not command:
        raise UsageError("there is no command to run", fix="tidegate run [options] -- COMMAND")
    if not command[0]:
        raise UsageError("the command is empty", fix="tidegate run [options] -- COMMAND")
    if "--trust-folder" in given and "--no-folder-policy" in given:
        raise UsageError("--trust-folder and --no-folder-policy exclude each other", fix="give one of them")
    for name in () if "--ask" in given else ("--wait", "--wait-for"):
        if name in given and "--no-server" in given:
            raise UsageError(f"{name} needs the server that --no-server leaves aside", fix="give one of them")
    hold, named = _chosen_hold(given, one("--hold"))
    phase = one("--phase", "runtime")
    if phase not in ("install", "runtime"):
        raise UsageError(f"there is no phase {phase!r}", fix="install or runtime")
    capture = one("--capture", "on")
    if capture not in CAPTURES:
        raise UsageError(f"there is no capture {capture!r}", fix=f"one of {', '.join(CAPTURES)}")
    if hold == "offline" and "--ssh-key" in given:
        raise UsageError("--ssh-key has no meaning without a network", fix="leave --ssh-key or --no-network out")
    if "--ask" in given and "--wait" in given:
        raise UsageError("--ask and --wait exclude each other", fix="--ask: where a server runs, others can answer too")
    files = one("--files")
    if files and files not in FILES:
        raise UsageError(f"there is no --files {files!r}", fix=f"one of {', '.join(FILES)}")
    capture = _capture_in(hold, capture, given)
    return RunOptions(
        command,
        allow=tuple(given.get("--allow", ())),
        deny=tuple(given.get("--deny", ())),
        ask_for=tuple(given.get("--ask-for", ())),
        policy=one("--policy"),
        profile=one("--profile"),
        registries=one("--registries"),
        harness=one("--harness"),
        phase=phase,
        trust_folder="--trust-folder" in given,
        no_folder_policy="--no-folder-policy" in given,
        shares=tuple(_share(text) for text in given.get("--share", ())),
        ssh_keys=tuple(given.get("--ssh-key", ())),
        secrets=tuple(dict.fromkeys(given.get("--secret", ()))),
        tools=tuple(dict.fromkeys(given.get("--tool", ()))),
        files=files,
        hold=hold,
        hold_is_named=named,
        container=_container(given, one) if hold in CONTAINERS else None,
        capture=capture,
        publish=_published(given.get("--publish", ()), hold),
        selftest="--no-selftest" not in given,
        quiet="--quiet" in given,
        log=one("--log"),
        report=one("--report"),
        status_file=one("--status-file"),
        issue=issue_of(one("--issue")),
        fail_on_refusal="--fail-on-refusal" in given,
        ask="--ask" in given,
        wait="--wait" in given or ("--wait-for" in given and "--ask" not in given),
        wait_seconds=_wait(one("--wait-for")),
        server="--no-server" not in given,
    )


def _chosen_hold(given: dict[str, list[str]], hold: str) -> tuple[str, bool]:
    """Return the hold that is asked for, and whether it was asked for by name; `hold` is the value of --hold."""
    short = {"--no-network": "offline", "--open-network": "open"}
    chosen = {short[name] for name in short if name in given} | ({hold} if hold else set())
    if len(chosen) > 1:
        raise UsageError("more than one hold is asked for", fix="give one of --hold, --no-network and --open-network")
    if not chosen:
        return "netns", False
    (hold,) = chosen
    if hold not in HOLDS:
        raise UsageError(f"there is no hold {hold!r}", fix=f"one of {', '.join(HOLDS)}")
    return hold, True


def _capture_in(hold: str, capture: str, given: dict[str, list[str]]) -> str:
    """Return how connections are captured in this hold, once no option is given that has no meaning there."""
    for name in () if hold in CONTAINERS else _FOR_A_CONTAINER:
        if name in given:
            raise UsageError(f"{name} has no meaning with --hold {hold}", fix="--hold docker, or --hold podman")
    if hold == "landlock" and "--capture" in given and capture != "off":
        raise UsageError(
            f"--capture {capture} does not work with --hold landlock", fix="leave it out: programs use the proxy"
        )
    for name in _FOR_A_GATE if hold in WITHOUT_GATE else ():
        if name in given:
            raise UsageError(f"{name} has no meaning without a gate (--hold {hold})", fix=f"leave {name} out")
    return "off" if hold == "landlock" or hold in WITHOUT_GATE else capture


def _container(given: dict[str, list[str]], one: Callable[[str], str]) -> Container:
    from tidegate.holds.container.worker import check_options
    from tidegate.holds.hold import Container

    if not one("--image"):
        raise UsageError("a container needs an image", fix="--image IMAGE")
    if "--ssh-key" in given:
        raise UsageError("--ssh-key does not work in a container", fix="leave it out, or use --hold netns")
    return Container(
        one("--image"),
        one("--transport"),
        one("--relay-image"),
        options=check_options(given.get("--container-option", ())),
    )


def _wait(text: str) -> int | None:
    if not text:
        return None
    from tidegate.cli.terms import wait

    return wait(text)


def _share(text: str) -> Share:
    path, readonly = (text[:-3], True) if text.endswith(":ro") else (text, False)
    if not path or not os.path.lexists(path):
        raise UsageError(f"--share {text!r}: there is no such path", fix="--share PATH or --share PATH:ro")
    return Share(os.path.realpath(path), readonly)


def _published(texts: Sequence[str], hold: str) -> tuple[Publish, ...]:
    if not texts:
        return ()
    if hold in _NOT_PUBLISHED:
        raise UsageError(f"--publish has no meaning with --hold {hold}", fix=_NOT_PUBLISHED[hold])
    from tidegate.model.publish import MOST, PublishError, parse_publish

    if len(texts) > MOST:
        raise UsageError(f"--publish is given more than {MOST} times", fix="publish what is needed")
    found: dict[tuple[str, int], Publish] = {}
    for text in texts:
        try:
            one = parse_publish(text)
        except PublishError as error:
            raise UsageError(f"--publish {text!r}: {error.what}", fix=error.fix) from None
        for address in one.addresses:
            if found.setdefault((address, one.port), one) is not one:
                raise UsageError(f"--publish gives port {one.port} of this machine away twice", fix="give it once")
    return tuple(dict.fromkeys(found.values()))


def _nearest(name: str) -> str:
    """The advice for an unknown option; difflib only costs those who mistype."""
    from difflib import get_close_matches

    near = get_close_matches(name, (*_VALUED, *_FLAGS), 1, 0.5)
    return f"did you mean {near[0]}?" if near else "see tidegate run --help"
