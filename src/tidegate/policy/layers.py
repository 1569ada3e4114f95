"""Joining the layers of a policy into one (POL-8, POL-10).

Layers come from the administrator, the user's config, the folder's file, `--policy` and the options of the command
line; each is text that was read elsewhere. `join` is the whole meaning of their order:

* Every deny stays, whatever layer it is from.
* `--policy` or a trusted folder file *replaces*: profile, presets, and what the layers before it allow or ask.
* `profile` and `default` are the last layer's that names one; naming a profile brings its default along. A replacing
  policy that names hosts or phases and no profile gets exactly its own: no preset, and what no rule names is denied.
* Phases that such a policy leaves out, or leaves empty, are closed; only the command line adds rules to them, not a
  harness or a remembered answer either.
* A locked layer takes only denies from the layers above it, `files: strict`, and harness hosts. Protected ports of all
  layers add up.
* Every other setting is the last layer's that names it, but `registries: read` of the administrator's stays.
* What the administrator's layer says of methods, paths and git holds for all that it names, whatever rule below or
  above lets it through: narrowing is never undone.

What it does not do: whether a layer may say something at all (POL-9) is judged where its text is read.
"""

from __future__ import annotations

from tidegate.model.address_class import Admission
from tidegate.model.host import bracketed
from tidegate.model.limits import DEFAULT_LIMITS
from tidegate.model.rule import Layer, Origin, Shape
from tidegate.model.value import Value
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.policy import Policy, make_policy
from tidegate.policy.presets import PRESET_PORT, UnknownPresetError, members, mirror_reads, rule_name
from tidegate.policy.presets.compiled import HOSTS, READS
from tidegate.policy.profiles import DEFAULT_PROFILE, PROFILES
from tidegate.policy.rows import KEY, LIMITS, PHASE, PORT, SHAPE, VERDICT, rule_of, rule_row
from tidegate.policy.rules import RuleError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from tidegate.policy.rows import Row

    T = TypeVar("T")

_BOTH = (Phase.INSTALL, Phase.RUNTIME)
REGISTRIES = READ, TUNNEL = ("read", "tunnel")
"""What `registries` may be: only what reads passes in presets of registries (INS-7), or they are tunnels."""
DEFAULT_REGISTRIES = READ
LOCKS = ("open", "trust-folder", "no-selftest", "audit")
"""What an administrator can forbid beside hosts (POL-8), by the names that `locked` has for it."""
_DENY = Verdict.DENY.value
_ONE_HOST = (Shape.EXACT.value, Shape.LITERAL.value)


class PresetUse(Value):
    """A preset or group named in a layer: in a list of one phase, or for every open phase (`phase` None)."""

    name: str
    verdict: Verdict = Verdict.ALLOW
    phase: Phase | None = None
    source: str = ""


class PolicyLayer(Value):
    """What one file, or the options of the command line, contribute. None and () mean that it does not say.

    `rows` are its rules (rows.rule_row). `mirrors` are hosts that stand in for a preset's, as written rules: pairs of
    the preset and its ((rule text, source), …). `locks` are names of LOCKS. `replaces` marks `--policy`, the folder's
    file and a locked one. `phases` is None
    without a `network` key, else the phases that have at least one entry. `limits` are fields of model.limits.Limits.
    """

    layer: Layer
    source: str
    rows: tuple[Row, ...] = ()
    presets: tuple[PresetUse, ...] = ()
    mirrors: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    replaces: bool = False
    phases: frozenset[Phase] | None = None
    profile: str | None = None
    default: Verdict | None = None
    default_source: str = ""
    private: Admission | None = None
    own: Admission | None = None
    tls: str | None = None
    limits: tuple[tuple[str, float], ...] = ()
    protected_ports: tuple[int, ...] = ()
    upstream_resolve: str | None = None
    locked: bool = False
    locks: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    files: str | None = None
    never_inspected: tuple[Row, ...] = ()
    registries: str | None = None
    held: tuple[Row, ...] | None = None
    guarded: tuple[tuple[str, int], ...] = ()

    @property
    def names_hosts(self) -> bool:
        """Whether it says by itself what is reached: by rules, presets or phases."""
        return bool(self.rows or self.presets) or self.phases is not None


def join(*layers: PolicyLayer) -> Policy:
    """Return the policy that these layers make together; none at all make the profile `balanced`.

    The layers are put in the order of their `layer`; within one, the order of the arguments stays.

    Raises:
        RuleError: for a profile or preset that does not exist, or a mirror that is no rule.
    """
    ordered, notes = _under_the_lock(sorted(layers, key=lambda layer: layer.layer))
    first = max((at for at, layer in enumerate(ordered) if layer.replaces), default=0)
    closed = _closed_phases(ordered[first] if ordered else None)
    profile, default, default_source = _profile_and_default(ordered)
    mirrors = dict(pair for layer in ordered for pair in layer.mirrors)
    never = tuple(row for layer in ordered for row in layer.never_inspected)
    registries, held = _registries(ordered)
    if held:
        notes += (held,)

    def of_preset(use: PresetUse, layer: Layer, shut: frozenset[Phase]) -> Iterable[Row]:
        return _preset_rows(use, layer, shut, mirrors, registries, never)

    rows: list[Row] = []
    if profile is not None:
        for name in PROFILES[profile].presets:
            rows.extend(of_preset(PresetUse(name), Layer.BUILTIN, closed))
    more, said = _rows_of(ordered, first, closed, of_preset)
    rows.extend(more)
    notes += said
    limits = {name: value for layer in ordered for name, value in layer.limits}
    set_up = [layer for layer in ordered if layer.setup]
    if len(set_up) > 1:
        notes += (f"the set-up command is that of {set_up[-1].source}; that of {set_up[-2].source} does not run",)
    if any(layer.layer is Layer.REMEMBERED for layer in ordered):
        from tidegate.policy.bounded import bounded

        rows = bounded(rows)
    return make_policy(
        rows,
        default=default,
        default_source=default_source,
        profile=profile,
        closed_phases=closed,
        private=_last([layer.private for layer in ordered], Admission.EXACT_HOST_PORT),
        own=_last([layer.own for layer in ordered], Admission.EXACT_HOST_PORT),
        protected_ports=[port for layer in ordered for port in layer.protected_ports],
        locked=any(layer.locked for layer in ordered),
        tls=_last([layer.tls for layer in ordered], "any"),
        upstream_resolve=_last([layer.upstream_resolve for layer in ordered], "check"),
        limits=DEFAULT_LIMITS.replace(**limits) if limits else DEFAULT_LIMITS,
        setup=set_up[-1].setup if set_up else (),
        notes=notes,
        files=_last([layer.files for layer in ordered], ""),
        never_inspected=never,
        bounds=tuple(_bounds(ordered)),
        guarded=tuple(dict.fromkeys(place for layer in ordered for place in layer.guarded)),
        registries=registries,
    )


def _rows_of(
    ordered: Sequence[PolicyLayer],
    first: int,
    closed: frozenset[Phase],
    of_preset: Callable[[PresetUse, Layer, frozenset[Phase]], Iterable[Row]],
) -> tuple[list[Row], tuple[str, ...]]:
    """Return the rows of all layers, and what is to be said. Of those before `first` only what they deny counts."""
    rows: list[Row] = []
    notes: tuple[str, ...] = ()
    words = {phase.value for phase in closed}
    for at, layer in enumerate(ordered):
        if layer.layer in {Layer.REMEMBERED, Layer.HARNESS}:  # they open no phase that is closed
            kept = [row for row in layer.rows if row[PHASE] not in words]
            if layer.layer is Layer.HARNESS and len(kept) < len(layer.rows):
                notes += (f"{ordered[first].source} closes the phase in which {layer.source} needs its hosts",)
            rows.extend(kept)
            continue
        replaced = at < first
        rows.extend([row for row in layer.rows if row[VERDICT] == _DENY] if replaced else layer.rows)
        shut = closed if layer.replaces or layer.layer is not Layer.COMMAND_LINE else frozenset()
        for use in layer.presets:
            if not replaced or use.verdict is Verdict.DENY:
                rows.extend(of_preset(use, layer.layer, shut))
    return rows, notes


def command_line(
    *,
    allow: Sequence[str] = (),
    ask: Sequence[str] = (),
    deny: Sequence[str] = (),
    profile: str | None = None,
    files: str | None = None,
    registries: str | None = None,
) -> PolicyLayer:
    """Return the layer of the options of these names (`ask` is `--ask-for`); each rule is for both phases.

    `@preset` stands for the hosts of a preset.

    Raises:
        RuleError: when a text is no rule, or names no preset or profile.
    """
    rows: list[Row] = []
    presets: list[PresetUse] = []
    for option, verdict, texts in (
        ("--allow", Verdict.ALLOW, allow),
        ("--ask-for", Verdict.ASK, ask),
        ("--deny", Verdict.DENY, deny),
    ):
        for text in texts:
            if text[:1] == "@":
                _known_preset(text[1:])
                presets.append(PresetUse(text[1:], verdict, None, option))
                continue
            rows.extend(
                rule_row(text, verdict, phase, "command-line", option, Origin.WRITTEN, Layer.COMMAND_LINE)
                for phase in _BOTH
            )
    if profile is not None and profile not in PROFILES:
        raise RuleError("there is no such profile", f"one of {', '.join(PROFILES)}")
    return PolicyLayer(
        Layer.COMMAND_LINE,
        "command line",
        tuple(rows),
        tuple(presets),
        profile=profile,
        files=files,
        registries=registries,
    )


def remembered_layer(rules: Iterable[tuple[str, int, Phase, str]]) -> PolicyLayer:
    """Return the layer of remembered answers: for each (canonical host, port, phase, source), exactly that is allowed.

    Such a rule lets nobody in where `ask` names the same host and port, and never admits private or own addresses.

    Raises:
        RuleError: for a host that no rule can name.
    """
    rows = []
    for host, port, phase, source in rules:
        text = f"{bracketed(host)}:{port}"
        row = rule_row(text, Verdict.ALLOW, phase, "remembered", source, Origin.REMEMBERED, Layer.REMEMBERED)
        if row[SHAPE] not in _ONE_HOST:
            raise RuleError("a remembered rule is no wildcard", "forget it")
        rows.append(row)
    return PolicyLayer(Layer.REMEMBERED, "remembered", tuple(rows))


def _under_the_lock(layers: list[PolicyLayer]) -> tuple[list[PolicyLayer], tuple[str, ...]]:
    """Cut the layers above a locked one down to their denies; also say what was cut."""
    kept: list[PolicyLayer] = []
    notes: list[str] = []
    lock: PolicyLayer | None = None
    for layer in layers:
        if lock is None or layer.layer is Layer.HARNESS:
            kept.append(layer)
        else:
            denies = PolicyLayer(
                layer.layer,
                layer.source,
                tuple(row for row in layer.rows if row[VERDICT] == _DENY),
                tuple(use for use in layer.presets if use.verdict is Verdict.DENY),
                protected_ports=layer.protected_ports,
                files=layer.files if layer.files == "strict" else None,
            )
            kept.append(denies)
            if layer.replace(default_source="") != denies:
                notes.append(f"{lock.source} is locked: of {layer.source} only what it denies counts")
        if layer.locked and lock is None:
            lock = layer
    return kept, tuple(notes)


def _closed_phases(governing: PolicyLayer | None) -> frozenset[Phase]:
    if governing is None or not governing.replaces or governing.phases is None:
        return frozenset()
    return frozenset(_BOTH) - governing.phases


def _profile_and_default(layers: list[PolicyLayer]) -> tuple[str | None, Verdict, str]:
    profile: str | None = DEFAULT_PROFILE
    default = PROFILES[DEFAULT_PROFILE].default
    source = f"profile {DEFAULT_PROFILE}"
    for layer in layers:
        if layer.profile is not None:
            if layer.profile not in PROFILES:
                raise RuleError(f"there is no profile {layer.profile!r}", f"one of {', '.join(PROFILES)}")
            profile = layer.profile
            default = PROFILES[profile].default
            source = f"profile {profile}"
        elif layer.replaces and layer.names_hosts:
            profile = None
            default = Verdict.DENY
            source = layer.source
        if layer.default is not None:
            default = layer.default
            source = layer.default_source or layer.source
    return profile, default, source


def _preset_rows(
    use: PresetUse,
    layer: Layer,
    closed: frozenset[Phase],
    mirrors: dict[str, tuple[tuple[str, str], ...]],
    registries: str,
    never: tuple[Row, ...] = (),
) -> Iterable[Row]:
    """Yield the rows of a preset in one layer; into a closed phase go only denies."""
    reads = registries == READ and use.verdict is not Verdict.DENY
    for phase in _BOTH if use.phase is None else (use.phase,):
        if phase in closed and use.verdict is not Verdict.DENY:
            continue
        for preset in _known_preset(use.name):
            name = rule_name(preset)
            mirror = mirrors.get(preset)
            if mirror is not None:
                for text, source in mirror:
                    row = rule_row(text, use.verdict, phase, name, source, Origin.WRITTEN, layer)
                    yield (*row[:LIMITS], mirror_reads(preset)) if reads and not _exempt(row, never) else row
                continue
            for host in HOSTS[preset]:
                row = (
                    f"{host}:{PRESET_PORT}",
                    "exact",
                    host,
                    PRESET_PORT,
                    use.verdict.value,
                    phase.value,
                    name,
                    f"preset {preset}",
                    int(Origin.PRESET),
                    int(layer),
                    READS[host] if reads else None,
                )
                yield (*row[:LIMITS], None) if never and _exempt(row, never) else row


def _exempt(row: Row, never: tuple[Row, ...]) -> bool:
    # `inspect: never` keeps a registry a tunnel, where nobody asked for more than the preset.
    from tidegate.model.destination import Destination
    from tidegate.model.host import canonical_host
    from tidegate.policy.decide import matches_host

    if row[SHAPE] not in _ONE_HOST:
        return any(one[0] == row[0] for one in never)
    host = canonical_host(bracketed(row[KEY]))
    return any(
        one[PORT] in {None, row[PORT]} and matches_host(rule_of(one), Destination(host, row[PORT] or PRESET_PORT))
        for one in never
    )


def _registries(layers: list[PolicyLayer]) -> tuple[str, str]:
    """Return what holds of registries, and a note where the administrator's word stands against a later one."""
    said = _last([layer.registries for layer in layers], DEFAULT_REGISTRIES)
    if said == TUNNEL and any(layer.layer is Layer.ADMINISTRATOR and layer.registries == READ for layer in layers):
        return READ, "the administrator says 'registries: read'; 'registries: tunnel' counts for nothing"
    return said, ""


def _bounds(layers: list[PolicyLayer]) -> Iterable[Row]:
    """Yield the rows of what `git` of the last layer that has it narrows, and of all that the administrator does.

    Registries are bound beside the mirrors that some layer has for them: a mirror takes nothing back.
    """
    yield from _last([layer.held for layer in layers if layer.layer is not Layer.ADMINISTRATOR], ())
    for layer in layers:
        if layer.layer is not Layer.ADMINISTRATOR:
            continue
        yield from layer.held or ()
        for row in layer.rows:
            if row[LIMITS] is not None and row[LIMITS][2] and row[VERDICT] != _DENY:
                yield row
        if layer.registries == READ:
            written = ({preset: mirror} for one in layers for preset, mirror in one.mirrors)
            for mirrors in ({}, *written):
                for preset in mirrors or HOSTS:
                    yield from _preset_rows(PresetUse(preset), layer.layer, frozenset(), mirrors, READ)


def _known_preset(name: str) -> tuple[str, ...]:
    try:
        return members(name)
    except UnknownPresetError as error:
        raise RuleError(f"there is no preset {name!r}", f"one of {', '.join(error.names)}") from None


def _last(said: list[T | None], otherwise: T) -> T:
    return next((value for value in reversed(said) if value is not None), otherwise)
