"""Which agent the command of a run is, and what that adds to its policy (POL-10, POL-12).

Two ways, and they differ in what they are worth:

* Named: `--harness NAME|FILE` is a person's word that this command is that agent. All hosts of the harness join.
* Recognised: the command has the file name of a known agent. That alone would let whatever a task leaves behind under
  such a name reach the agent's model, so it counts only where no task can have written what runs: the program, the
  names and links that lead to it, the node_modules around it and its interpreter lie outside the workspace and what is
  shared, and belong to root or to this user; and it must be what PATH finds, for `agent_files` names that for the hold
  of every task, which shows it read-only. A run with another PATH does not know of it. Then only the verified model
  API joins, and only under a profile that says so.

Either way the harness is for its own command; nothing else in the line gets its hosts. What the agent itself starts is
in its hands: the gate cannot tell a process of a task from another.
"""

from __future__ import annotations

import os
import stat

from tidegate.model.errors import StartError, UsageError
from tidegate.model.value import Value
from tidegate.model.verdict import Phase
from tidegate.policy.harnesses import HARNESS_NAMES, Harness, built_in, built_in_for, harness_layer
from tidegate.policy.harnesses.compiled import HARNESSES
from tidegate.policy.profiles import PROFILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidegate.policy.layers import PolicyLayer
    from tidegate.policy.policy import Policy

_FILE_ENDS = (".yaml", ".yml", ".json")
_COMMANDS = tuple(found[1] for found in HARNESSES.values())
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"  # as holds.command searches
_MODULES = "/node_modules/"
_FIRST_LINE = 256  # bytes of `#!`, BINPRM_BUF_SIZE of linux/binfmts.h


class Agent(Value):
    """An agent that is the command itself. `program` is the file that runs it, '' where a person named the harness.

    `doubt` says why a command with an agent's name is not taken for it; such an agent adds nothing.
    """

    harness: Harness
    program: str = ""
    doubt: str = ""

    @property
    def named(self) -> bool:
        """Whether a person said that this is the agent."""
        return not self.program

    def layer(self, profile: str | None) -> PolicyLayer | None:
        """Return what it adds to a policy that has this profile; None for nothing."""
        if self.named:
            return harness_layer(self.harness)
        if self.doubt or profile is None or not PROFILES[profile].own_model_api or not self.harness.own_model_api:
            return None
        return harness_layer(self.harness, self.harness.own_model_api)

    def note(self, policy: Policy) -> str:
        """Return what to tell a person about it, given the policy that came of it; '' for nothing."""
        harness = self.harness
        who = harness.about or harness.name
        if self.named:
            unverified = ", ".join(host.rule for host in harness.hosts if not host.verified)
            hosts = ", ".join(host.rule for host in harness.hosts) or "no host"
            return f"harness {harness.name} adds {hosts}" + (f" (unverified: {unverified})" if unverified else "")
        from tidegate.model.destination import parse_authority
        from tidegate.model.reason import Reason
        from tidegate.policy.decide import decide

        api = [parse_authority(host.rule, 443) for host in harness.own_model_api]
        passing = [decide(policy, target, Phase.RUNTIME) for target in api]
        by_harness = ", ".join(str(said.destination) for said in passing if said.name == harness.rule_name)
        if by_harness:
            return (
                f"{self.program} is taken for {who}, which reaches its model: {by_harness} ({harness.rule_name}); "
                f"--harness {harness.name} adds its other hosts"
            )
        if all(said.allowed for said in passing):
            return ""
        if self.doubt:
            return f"{self.doubt}, so it is not taken for {who}; --harness {harness.name} says that it is"
        why = f"{self.program} is {who}, whose model this policy does not let through"
        denied = any(said.reason is Reason.DENY_RULE for said in passing)
        return why if denied else f"{why}; --harness {harness.name} adds it"


def harness_file(text: str) -> str:
    """Return the path that `--harness` names, '' where it names a harness that comes with tidegate."""
    return text if "/" in text or text.endswith(_FILE_ENDS) else ""


def find_harness(text: str) -> Harness:
    """Return the harness that `--harness NAME|FILE` means.

    Raises:
        UsageError: when there is none of this name, or the file cannot be read or is wrong.
    """
    path = harness_file(text)
    if path:
        from tidegate.policy.harnesses.harness_file import load_harness
        from tidegate.runtime.policy_sources import read_policy_file

        return load_harness(read_policy_file(path, what="harness file"), path)
    known = built_in(text)
    if known is None:
        raise UsageError(
            f"--harness {ascii(text)[:80]}: there is no such harness",
            fix=f"one of {', '.join(HARNESS_NAMES)}, or a file such as ./my-agent.yaml",
        )
    return known


def with_held_keys(harness: Harness, environ: Mapping[str, str]) -> Harness:
    """Return the harness without the hosts that need another set of keys than the caller has."""
    from tidegate.runtime.model_keys import variables_of

    others = tuple(host for host in harness.hosts if not host.only_key)
    if len(others) == len(harness.hosts):
        return harness
    taken = any(environ.get(name) for name in variables_of(harness_layer(harness, others).guarded))
    kept = tuple(host for host in harness.hosts if not host.only_key or (environ.get(host.only_key) and not taken))
    rules = {host.rule for host in kept}
    return harness.replace(hosts=kept, model_api=tuple(rule for rule in harness.model_api if rule in rules))


def named_agent(text: str, command: str, phase: str, environ: Mapping[str, str]) -> Agent:
    """Return the agent that `--harness` says this command is.

    Raises:
        UsageError: for a harness that is not there or wrong, another command, or a phase that no agent runs in.
    """
    harness = find_harness(text)
    if os.path.basename(command) != harness.command:
        raise UsageError(
            f"--harness {harness.name} is for the command {harness.command!r}, not for {command!r}",
            fix=f"its hosts are for that program alone; run {harness.command}, or use --allow HOST[:PORT]",
        )
    if phase != Phase.RUNTIME.value:
        raise UsageError("--harness has no meaning in the phase install", fix="leave --harness or --phase out")
    return Agent(with_held_keys(harness, environ))


def recognised_agent(
    command: str, phase: str, environ: Mapping[str, str], folder: str, writable: Iterable[str]
) -> Agent | None:
    """Return the agent that this command is by its name, None where it is none.

    `writable` are the real paths that tasks may write by design: the workspace and what is shared.
    """
    if phase != Phase.RUNTIME.value or os.path.basename(command) not in _COMMANDS:
        return None
    harness = built_in_for(os.path.basename(command))
    files = what_runs(command, environ, folder)
    if harness is None or not files:
        return None
    doubt = _doubt_of(files, writable)
    if not doubt and os.path.realpath(files[0]) != os.path.realpath(_installed(harness.command, environ, folder)):
        doubt = f"{files[0]} is not the one that every task sees read-only, on PATH"
    return Agent(harness, files[0], doubt)


def agent_files(environ: Mapping[str, str], folder: str) -> Iterator[str]:
    """Yield the files of each known agent on PATH that no task may change, also where they lie in its workspace.

    One that a project brings along (`node_modules/.bin`) is not among them, so that the project can be worked on.
    """
    for command in _COMMANDS:
        program = _installed(command, environ, folder)
        if program:
            yield from what_runs(program, environ, folder)


def require_way_out(agent: Agent, capture: str) -> None:
    """Refuse an agent that would not find the gate.

    Raises:
        StartError: when it knows no proxies and nothing is captured (POL-12).
    """
    if not agent.harness.proxy_aware and not agent.doubt and capture == "off":
        raise StartError(
            f"the harness {agent.harness.name!r} is not proxy aware, and without capture it has no way to the gate",
            fix="run it with --capture on, in a hold that has it (netns, uid)",
            code="harness-proxy",
        )


def what_runs(command: str, environ: Mapping[str, str], folder: str) -> tuple[str, ...]:
    """Return the absolute paths of what this command would run: its program, the package around that, interpreters.

    Empty where there is no such program.
    """
    program = _program(command, environ, folder)
    if not program:
        return ()
    found = [program, *_package(os.path.realpath(program))]
    words = _first_line(program)
    if words:
        found.append(words[0])
        if os.path.basename(words[0]) == "env":
            name = next((word for word in words[1:] if word[:1] != "-" and "=" not in word), "")
            interpreter = _program(name, environ, folder)
            found += [interpreter] if interpreter else []
    return tuple(found)


def _program(command: str, environ: Mapping[str, str], folder: str) -> str:
    """The file that a shell would run for this word, as holds.command finds it; '' for none."""
    if not command:
        return ""
    if "/" in command:
        candidates = [command]
    else:
        candidates = [f"{where or '.'}/{command}" for where in environ.get("PATH", _DEFAULT_PATH).split(":")]
    for candidate in candidates:
        path = os.path.join(folder, candidate)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return ""


def _installed(command: str, environ: Mapping[str, str], folder: str) -> str:
    """The program of this name that PATH finds wherever one is: by no relative entry, and no project's own; else ''."""
    entries = [where for where in environ.get("PATH", _DEFAULT_PATH).split(":") if where.startswith("/")]
    program = _program(command, {"PATH": ":".join(entries)}, folder) if entries else ""
    return "" if "/node_modules/.bin/" in program else program


def _package(program: str) -> list[str]:
    """The outermost `node_modules` that a program lies in: what it loads or starts lies there too."""
    before, mark, rest = program.partition(_MODULES)
    return [before + mark.rstrip("/")] if rest else []


def _first_line(path: str) -> list[str]:
    """The words behind `#!` of a script; none of what is no script."""
    try:
        with open(path, "rb", buffering=0) as file:
            head = file.read(_FIRST_LINE)
    except OSError:
        return []
    return os.fsdecode(head.partition(b"\n")[0][2:]).split() if head[:2] == b"#!" else []


def _doubt_of(files: tuple[str, ...], writable: Iterable[str]) -> str:
    """Why a task, or somebody else, may have written something of what runs; '' where neither can."""
    for path in files:
        why = _doubt(path, writable)
        if why:
            return why
    try:
        return f"{files[0]} has another name (a hard link)" if _has_other_names(files[0]) else ""
    except OSError as error:
        return f"{files[0]} cannot be looked at ({error.strerror})"


def _has_other_names(program: str) -> bool:
    """Whether a program that this user may write has names that no hold covers: pnpm and bun link to their caches.

    npm's agents have a second name in a package beside them, which lies in the same `node_modules`.
    """
    real = os.path.realpath(program)
    found = os.stat(real)
    if found.st_nlink == 1 or not os.access(real, os.W_OK):
        return False
    before, mark, rest = real.partition(_MODULES)
    around = before + mark + rest.partition("/")[0] if rest else real
    names = (os.path.join(where, name) for where, _, files in os.walk(around) for name in files)
    return sum(os.path.samestat(os.lstat(name), found) for name in names) < found.st_nlink


def _doubt(path: str, writable: Iterable[str]) -> str:
    """Why a task, or somebody else, may have written what this path leads to; '' where neither can."""
    from tidegate.holds.mountinfo import is_within
    from tidegate.holds.pins import names_on_the_way

    mine = {0, os.geteuid()}
    try:
        for where, name in names_on_the_way(path):
            if any(is_within(os.path.join(where, name), root) for root in writable):
                return f"{path} lies where a task can write"
            if _open_to_others(os.stat(where), folder=True) or os.lstat(os.path.join(where, name)).st_uid not in mine:
                return f"{path} leads through what other users can write"
        return f"{path} can be written by other users" if _open_to_others(os.stat(path), folder=False) else ""
    except OSError as error:
        return f"{path} cannot be looked at ({error.strerror})"


def _open_to_others(found: os.stat_result, *, folder: bool) -> bool:
    """Whether somebody but root and this user could replace what is here."""
    if found.st_uid not in {0, os.geteuid()}:
        return True
    return bool(found.st_mode & stat.S_IWOTH) and not (folder and found.st_mode & stat.S_ISVTX)
