"""The text of a policy file -> a PolicyLayer, or every error in it at once (POL-0, POL-2, POL-9).

Rules of the file:

* A key of SPEC that this version gives no effect is refused with a line that says so. Accepting and ignoring it would
  leave a person believing in a fence that is not there.
* A policy with one error loads not at all; nothing is repaired, converted or guessed.
* A folder's file lies where a task can write: it may name hosts in `network`, say `files: strict`, and nothing else
  (POL-9).
* Rules become rows (rows.py), presets and mirrors stay names: which hosts a preset has is decided by `layers.join`.

10,000 rules load in about 50 ms (300 without the C parser); its test counts the calls per rule, not the time.

It reads no file: the caller brings the bytes, and says which layer they are. Text -> tree is document.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidegate.model.address_class import Admission
from tidegate.model.rule import NO_LIMITS, Layer, Origin
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.document import parse_document
from tidegate.policy.entry import is_git, read_entry
from tidegate.policy.layers import LOCKS, REGISTRIES, PolicyLayer, PresetUse
from tidegate.policy.nodes import Mapping, Node, Scalar, Sequence
from tidegate.policy.positions import PolicyErrors, Problems
from tidegate.policy.presets import PRESET_NAMES
from tidegate.policy.presets.compiled import GROUPS, HOSTS
from tidegate.policy.profiles import PROFILES
from tidegate.policy.reading import Reader
from tidegate.policy.requests import read_held, read_never, refuse_doubles
from tidegate.policy.rows import PORT, rule_row
from tidegate.policy.rules import RuleError
from tidegate.policy.setup_command import setup_command
from tidegate.policy.suggest import nearest

if TYPE_CHECKING:
    from tidegate.policy.rows import Row

__all__ = ["LIMIT_BOUNDS", "POLICY_KEYS", "PolicyErrors", "load_policy"]

# Every key of POL-0, in the order the reference explains them.
POLICY_KEYS: Final = (
    "profile", "default", "network", "presets", "private", "own", "protected_ports", "tls", "limits", "upstream",
    "locked", "registries", "setup", "git", "inspect", "files",
)  # fmt: skip
FOLDER_KEYS: Final = ("network", "files")

# Bounds of `limits`, per field of model.limits.Limits: least, most, whole number. The most is what one gate can hold
# (descriptors, memory) or, for clocks, a day; `idle_seconds` may be 0 (off) or up to 30 days.
LIMIT_BOUNDS: Final[dict[str, tuple[float, float, bool]]] = {
    "connections": (1, 65536, True),
    "header_bytes": (1024, 1 << 20, True),
    "header_fields": (1, 10_000, True),
    "target_bytes": (256, 1 << 20, True),
    "header_seconds": (0.1, 86_400, False),
    "connect_seconds": (0.1, 86_400, False),
    "total_seconds": (0.1, 86_400, False),
    "resolve_seconds": (0.1, 86_400, False),
    "idle_seconds": (0, 30 * 86_400, False),
}

_THE_POLICY: Final = "policy"  # in the administrator's list of locks: what `locked: true` means elsewhere
SSH_PORT: Final = 22
_MAX_RULE: Final = 600  # a name has 253 bytes at most; whoever writes more has not written one

_LAYER_NAMES: Final = {
    Layer.ADMINISTRATOR: "administrator",
    Layer.USER: "user-config",
    Layer.SERVER: "server",
}
_VERDICTS: Final = {"allow": Verdict.ALLOW, "ask": Verdict.ASK, "deny": Verdict.DENY}
_PHASES: Final = {phase.value: phase for phase in Phase}
_DEFAULTS: Final = {"ask": Verdict.ASK, "deny": Verdict.DENY}
_PRIVATE: Final = {mode.value: mode for mode in Admission}
_OWN: Final = {mode.value: mode for mode in (Admission.NEVER, Admission.EXACT_HOST_PORT)}

_IN_A_PHASE: Final = "write it below a phase: 'network: {runtime: {%s: […]}}'"
TOP_HINTS: Final = {
    **{word: _IN_A_PHASE % word for word in _VERDICTS},
    "hosts": _IN_A_PHASE % "allow",
    "rules": _IN_A_PHASE % "allow",
    "install": "write it below 'network'",
    "runtime": "write it below 'network'",
    "secrets": "name them where a task starts: tidegate run --secret NAME",
    "harness": "name the agent where it starts: tidegate run --harness NAME",
    "preset": "write 'presets' to replace a preset's hosts, or \"@NAME\" in a list to use one",
}
_NETWORK_HINTS: Final = {
    word: f"write it below a phase: 'runtime: {{{word if word in _VERDICTS else 'allow'}: […]}}'"
    for word in (*_VERDICTS, "hosts", "rules")
}
_TOP_EXAMPLE: Final = "write 'network: {runtime: {allow: [api.example.com:443]}}'"
_NETWORK_EXAMPLE: Final = "write 'runtime: {allow: [api.example.com:443]}' below it"
_PHASE_EXAMPLE: Final = "write '{allow: [api.example.com:443]}'"
_LIST_EXAMPLE: Final = "write '[api.example.com:443]', or [] for none"


def load_policy(text: bytes, filename: str, layer: Layer, *, folder: bool = False) -> PolicyLayer:
    """Return what a policy's text contributes to a join. `filename` is only named, not opened.

    `folder` is set for a `tidegate.yaml` of the folder a task works in, which may hold less (POL-9).

    Raises:
        PolicyErrors: with every error of the text.
    """
    problems = Problems(filename)
    with problems:
        root = parse_document(text, problems)
        loaded = _Loader(problems, layer, folder=folder)
        if root is not None:
            loaded.root(root)
            refuse_doubles(problems, loaded.layer().rows)
        elif not problems:
            problems.add(0, 0, *_EMPTY)
    return loaded.layer()


_EMPTY: Final = ("the policy is empty", "", "write at least 'default: deny'")


class _Loader:
    """Walks one tree in the order of its text and gathers the fields of a layer."""

    def __init__(self, problems: Problems, layer: Layer, *, folder: bool) -> None:
        self._read = Reader(problems)
        self._filename = problems.filename
        self._layer = layer
        self._folder = folder
        self._name = _LAYER_NAMES.get(layer, "policy")
        self._rows: list[Row] = []
        self._uses: dict[tuple[str, Verdict, Phase], PresetUse] = {}  # naming one twice in a list is once
        self._mirrors: list[tuple[str, tuple[tuple[str, str], ...]]] = []
        self._phases: frozenset[Phase] | None = None
        self._profile: str | None = None
        self._default: Verdict | None = None
        self._default_source = ""
        self._private: Admission | None = None
        self._own: Admission | None = None
        self._tls: str | None = None
        self._limits: list[tuple[str, float]] = []
        self._ports: list[int] = []
        self._resolve: str | None = None
        self._setup: tuple[str, ...] = ()
        self._locked = False
        self._locks: tuple[str, ...] = ()
        self._files: str | None = None
        self._never_inspected: tuple[Row, ...] = ()
        self._registries: str | None = None
        self._held: tuple[Row, ...] | None = None

    def layer(self) -> PolicyLayer:
        """Return what was gathered; only meaningful without problems."""
        return PolicyLayer(
            layer=self._layer,
            source=self._read.prefix[:-1],
            rows=tuple(self._rows),
            presets=tuple(self._uses.values()),
            mirrors=tuple(self._mirrors),
            replaces=self._folder or self._locked or self._layer in {Layer.FOLDER, Layer.COMMAND_LINE},
            phases=self._phases,
            profile=self._profile,
            default=self._default,
            default_source=self._default_source,
            private=self._private,
            own=self._own,
            tls=self._tls,
            limits=tuple(self._limits),
            protected_ports=tuple(self._ports),
            upstream_resolve=self._resolve,
            locked=self._locked,
            setup=self._setup,
            locks=self._locks,
            files=self._files,
            never_inspected=self._never_inspected,
            registries=self._registries,
            held=self._held,
        )

    def root(self, node: Node) -> None:
        """Read the top level."""
        empty = (isinstance(node, Scalar) and node.meaning is None) or (isinstance(node, Mapping) and not node.pairs)
        if empty:
            self._read.wrong(node, *_EMPTY)
            return
        for key, key_node, value in self._read.pairs(node, "the policy", POLICY_KEYS, TOP_HINTS, _TOP_EXAMPLE):
            if self._folder and key not in FOLDER_KEYS:
                advice = "move it to a --policy file or your own configuration; here may be 'network' and 'files' only"
                self._read.wrong(key_node, "a folder's policy may not hold this", key, advice)
            elif key == "setup" and self._layer is Layer.ADMINISTRATOR:
                self._read.wrong(key_node, "set-up commands are the user's", key, "leave it out")
            else:
                self._value(key, value)

    def _value(self, key: str, node: Node) -> None:
        read = self._read
        of = f"'{key}'"
        if key == "network":
            self._network(node)
        elif key == "presets":
            self._presets(node)
        elif key == "limits":
            for field, _, value in read.pairs(node, of, LIMIT_BOUNDS):
                least, most, whole = LIMIT_BOUNDS[field]
                number = read.number(value, f"'limits.{field}'", least, most, whole=whole)
                if number is not None:
                    self._limits.append((field, number))
        elif key == "upstream":
            hints = dict.fromkeys(("proxy", "http", "https", "url"), "set HTTPS_PROXY in tidegate's own environment")
            for _, _, value in read.pairs(node, of, ("resolve",), hints):
                self._resolve = read.word(value, "'upstream.resolve'", ("check", "skip"))
        elif key == "protected_ports":
            for item in read.items(node, of, "write '[5432]'"):
                port = read.number(item, f"an entry of {of}", 1, 65535)
                if port is not None:
                    self._ports.append(int(port))
        elif key == "setup":
            self._setup = setup_command(read, node)
        elif key == "locked":
            self._lock(node, of)
        elif key == "profile":
            self._profile = read.word(node, of, PROFILES)
        elif key == "default":
            hints = {"allow": "write 'profile: audit' to let everything pass and record it"}
            self._default = _DEFAULTS.get(read.word(node, of, _DEFAULTS, hints) or "")
            self._default_source = read.source(node.mark)
        elif key == "private":
            self._private = _PRIVATE.get(read.word(node, of, _PRIVATE) or "")
        elif key == "own":
            hints = {"exact-host": "write 'exact-host-port'; a service of this machine is admitted by port only"}
            self._own = _OWN.get(read.word(node, of, _OWN, hints) or "")
        elif key == "tls":
            self._tls = read.word(node, of, ("any", "strict"))
        elif key == "files":
            hints = {"normal": "leave it out; a folder's policy cannot widen what a task may write"}
            self._files = read.word(node, of, ("strict",) if self._folder else ("strict", "normal"), hints)
        elif key == "inspect":
            self._never_inspected = read_never(read, node, self._name, self._layer)
        elif key == "git":
            self._held = read_held(read, node, self._name, self._layer)
        elif key == "registries":
            self._registries = read.word(node, of, REGISTRIES)

    def _lock(self, node: Node, of: str) -> None:
        if self._layer is Layer.ADMINISTRATOR and isinstance(node, Sequence):
            words = [self._read.word(item, f"an entry of {of}", (*LOCKS, _THE_POLICY)) for item in node.items]
            self._locks = tuple(word for word in words if word in LOCKS)
            self._locked = _THE_POLICY in words
        else:
            self._locked = self._read.flag(node, of) or False
            self._locks = LOCKS if self._locked and self._layer is Layer.ADMINISTRATOR else ()

    def _network(self, node: Node) -> None:
        open_phases = set()
        named = 0
        for phase_name, _, lists in self._read.pairs(node, "'network'", _PHASES, _NETWORK_HINTS, _NETWORK_EXAMPLE):
            named += 1
            of = f"'network.{phase_name}'"
            for verdict_name, _, items in self._read.pairs(lists, of, _VERDICTS, None, _PHASE_EXAMPLE):
                if self._list(items, f"'network.{phase_name}.{verdict_name}'", verdict_name, _PHASES[phase_name]):
                    open_phases.add(_PHASES[phase_name])
        # `network: {}` names no phase and is the same as no network (POL-15 says so of Kraft's; one meaning for all).
        self._phases = frozenset(open_phases) if named else None

    def _list(self, node: Node, of: str, verdict_name: str, phase: Phase) -> bool:
        """Read one list of rules; return whether it has an entry."""
        items = self._read.items(node, of, _LIST_EXAMPLE)
        verdict = _VERDICTS[verdict_name]
        name, layer, prefix, add = self._name, self._layer, self._read.prefix, self._rows.append
        for item in items:
            # The one loop that runs per rule: what is usual goes straight through.
            if isinstance(item, Scalar) and item.is_text and item.text[:1] != "@":
                mark = item.mark
                source = f"{prefix}{mark.line + 1}:{mark.column + 1}"
                if len(item.text) > _MAX_RULE:
                    self._too_long(item)
                    continue
                try:
                    add(rule_row(item.text, verdict, phase, name, source, Origin.WRITTEN, layer))
                except RuleError as error:
                    self._refuse(item, error)
            else:
                self._unusual(item, of, verdict, phase)
        return bool(items)

    def _unusual(self, item: Node, of: str, verdict: Verdict, phase: Phase) -> None:
        read = self._read
        if isinstance(item, Mapping):
            self._mapping(item, of, verdict, phase)
        elif isinstance(item, Scalar) and item.is_text:
            preset = self._preset_name(item, item.text[1:])
            if preset:
                self._use(preset, item, verdict, phase)
        elif isinstance(item, Scalar) and item.meaning is None:
            read.wrong(item, f"an empty entry in {of}", item.text, "remove it, or write a host")
        elif isinstance(item, Scalar):
            read.mismatch(item, f"an entry of {of}", "a text", "write a host such as api.example.com:443")
        else:
            advice = 'write a host; an IPv6 literal stands in quotes, "[2600::1]:443"'
            read.mismatch(item, f"an entry of {of}", "a text", advice)

    def _mapping(self, item: Mapping, of: str, verdict: Verdict, phase: Phase) -> None:
        """Read `{host, methods, paths, git, limits}`."""
        read = self._read
        if len(item.pairs) == 1:
            ((key, value),) = item.pairs
            if isinstance(key, Scalar) and key.text != "host" and isinstance(value, Scalar) and not value.is_text:
                advice = f"write '{key.text}:{value.text}' without the space" if value.text else f"write '{key.text}'"
                read.wrong(key, "a ':' at the end of a word makes this a mapping", f"{key.text}: {value.text}", advice)
                return
        host, limits = read_entry(read, item, f"an entry of {of}", verdict)
        if host is None:
            return
        if len(host.text) > _MAX_RULE:
            self._too_long(host)
            return
        if host.text[:1] == "@":
            preset = self._preset_name(host, host.text[1:])
            if limits is not NO_LIMITS:
                read.wrong(host, "a preset takes no limits", host.text, "write its hosts out, each with its limits")
            elif preset:
                self._use(preset, host, verdict, phase)
            return
        try:
            source = read.source(host.mark)
            row = rule_row(host.text, verdict, phase, self._name, source, Origin.WRITTEN, self._layer, limits)
        except RuleError as error:
            self._refuse(host, error)
        else:
            if row[PORT] == SSH_PORT and is_git(limits):
                read.wrong(
                    host, "inside ssh a push cannot be told from a fetch", host.text, "write port 443, or no 'git'"
                )
            self._rows.append(row)

    def _preset_name(self, node: Node, name: str) -> str | None:
        if name in PRESET_NAMES:
            return name
        near = nearest(name, PRESET_NAMES)
        advice = f'write "@{near}"' if near else f"write one of {', '.join('@' + known for known in PRESET_NAMES)}"
        self._read.wrong(node, "no preset has this name", "@" + name, advice)
        return None

    def _presets(self, node: Node) -> None:
        """Read `presets`: the hosts that stand for a preset from now on, a company's mirror for example (POL-11)."""
        hints = dict.fromkeys(GROUPS, f"it is a group; write its presets: {', '.join(HOSTS)}")
        example = "write '{npm: [npm.example.com:443]}'"
        for name, _, hosts in self._read.pairs(node, "'presets'", HOSTS, hints, example):
            rules = []
            for item in self._read.items(hosts, f"'presets.{name}'", "write '[npm.example.com:443]'"):
                text = self._read.text(item, f"an entry of 'presets.{name}'")
                if text is None:
                    continue
                source = self._read.source(item.mark)
                if len(text) > _MAX_RULE:
                    self._too_long(item)
                    continue
                try:
                    rule_row(text, Verdict.ALLOW, Phase.RUNTIME, name, source, Origin.WRITTEN, self._layer)
                except RuleError as error:
                    self._refuse(item, error)
                else:
                    rules.append((text, source))
            self._mirrors.append((name, tuple(rules)))

    def _use(self, preset: str, node: Node, verdict: Verdict, phase: Phase) -> None:
        use = PresetUse(preset, verdict, phase, self._read.source(node.mark))
        self._uses.setdefault((preset, verdict, phase), use)

    def _too_long(self, node: Node) -> None:
        shown = node.text if isinstance(node, Scalar) else ""
        self._read.wrong(node, "longer than any name can be", shown, "write a host such as api.example.com:443")

    def _refuse(self, node: Node, error: RuleError) -> None:
        shown = node.text if isinstance(node, Scalar) else ""
        self._read.wrong(node, error.what, shown, f"write {error.advice}")
