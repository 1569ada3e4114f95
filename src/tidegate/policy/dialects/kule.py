"""Kule: profiles, rules for the effect `net.connect`, remembered hosts and the flags of a command; its page on network.

The page shows no file, so this is the form that is read here, in YAML or JSON:

    profile: balanced                       # or careful
    rules:
      - {effect: net.connect, host: api.example.com, port: 443, verdict: pass}     # or ask, refuse
    remembered:
      - {folder: /home/me/app, host: github.com, port: 443}
    flags: [--no-network]                   # or --open-network

* `balanced` and `careful` let the registries of npm, Yarn, crates.io, NuGet, PyPI, RubyGems and Maven Central pass over
  HTTPS, and the running agent's own model; anything else asks. Go's modules are not among them, and are asked about.
* What is remembered holds on its folder alone: here for the folder that the task is in, or the one that is selected.
* Private addresses are never reached. `--no-network` is no TCP at all, `--open-network` no proxy and no policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidegate.model.verdict import Verdict
from tidegate.policy.dialects.draft import is_list, is_nothing, keys_of, value_of
from tidegate.policy.dialects.imported import BOTH, EXACTLY, Line
from tidegate.policy.dialects.patterns import NEVER, OTHER, kind_of
from tidegate.policy.nodes import Mapping, Scalar, Sequence
from tidegate.policy.positions import on_screen
from tidegate.policy.suggest import nearest

if TYPE_CHECKING:
    from tidegate.policy.dialects.draft import Draft
    from tidegate.policy.nodes import Node

TITLE: Final = "Kule"
KEYS: Final = ("profile", "rules", "remembered", "flags")
_EFFECT: Final = "net.connect"
_VERDICTS: Final = {"pass": Verdict.ALLOW, "ask": Verdict.ASK, "refuse": Verdict.DENY}
_FLAGS: Final = {"--no-network": "offline", "--open-network": "open"}
_WRITE_EFFECT: Final = f"write 'effect: {_EFFECT}'"
_ELSEWHERE: Final = "it says nothing of the network"


def recognises(root: Mapping) -> bool:
    """Whether this is a policy in the form above."""
    rules = value_of(root, "rules")
    effects = isinstance(rules, Sequence) and any("effect" in keys_of(item) for item in rules.items)
    return effects or is_list(value_of(root, "remembered")) or is_list(value_of(root, "flags"))


def read(draft: Draft, root: Node) -> None:
    """Read a whole file."""
    asked: set[str] = set()
    remembered: list[Node] = []
    flags: list[Scalar] = []
    for key, _, value in draft.pairs(root, "the file", KEYS):
        if key == "profile":
            _profile(draft, value)
        elif is_nothing(value):
            draft.read.mismatch(value, f"'{key}'", "a list", "write '[]' for none")
        elif key == "rules":
            for item in draft.read.items(value, "'rules'", "write '[]' for none"):
                _rule(draft, item, asked)
        elif key == "remembered":
            remembered = draft.read.items(value, "'remembered'", "write '[]' for none")
        else:
            flags = list(draft.items(value, "'flags'"))
    for item in remembered:
        _remembered(draft, item, asked)
    for flag in flags:
        hold = _FLAGS.get(flag.text, "")
        if not hold and nearest(flag.text, _FLAGS):
            draft.read.wrong(flag, "no flag of Kule's", flag.text, f"write {nearest(flag.text, _FLAGS)}")
        elif not hold:
            draft.aside(flag, "flags", _ELSEWHERE)
        elif draft.without_gate and draft.without_gate != hold:
            draft.read.wrong(flag, "--no-network together with --open-network", flag.text, "keep one of them")
        else:
            draft.without_gate = hold
            draft.because = f"{draft.read.source(flag.mark)} says {flag.text}"
            draft.aside(flag, "flags", f"no gate and no policy, as {flag.text} of ours has none")
    draft.settings = {"default": "deny", "private": "never", "own": "never"} | draft.settings


def _profile(draft: Draft, node: Node) -> None:
    name = draft.read.word(node, "'profile'", ("balanced", "careful"))
    if name is None:
        return
    draft.settings |= {"profile": name, "default": "ask"}
    for phase in BOTH:
        line = Line(phase, Verdict.ASK, "@go", (), node.mark.line + 1, node.mark.column + 1)
        draft.lines[phase.value, Verdict.ASK.value, "@go", ()] = line
    draft.note(node, "profile", EXACTLY, [f"profile: {name}", "default: ask", "ask @go"])


def _rule(draft: Draft, node: Node, asked: set[str]) -> None:
    effect = value_of(node, "effect")
    if isinstance(effect, Scalar) and effect.text != _EFFECT and keys_of(node).count("effect") == 1:
        if "*" in effect.text or effect.text.lower().startswith("net"):
            draft.read.wrong(effect, "what this effect says of the network would be lost", effect.text, _WRITE_EFFECT)
        else:
            draft.aside(effect, "rules", _ELSEWHERE)
        return
    host, verdict, port = None, None, ""
    before = draft.read.problems.count
    for key, _, value in draft.read.pairs(node, "a rule", ("effect", "host", "port", "verdict")):
        if key == "host":
            host = value if draft.read.text(value, "'host'") is not None else None
        elif key == "port":
            port = _port(draft, value)
        elif key == "verdict":
            verdict = draft.read.word(value, "'verdict'", _VERDICTS)
    if draft.read.problems.count > before:
        return
    if not isinstance(host, Scalar) or verdict is None or effect is None:
        draft.read.wrong(
            node, "a rule has an effect, a host and a verdict", "", "write '{effect: net.connect, host: …}'"
        )
        return
    said = _VERDICTS[verdict]
    if host.text[:1] == "*":
        draft.read.wrong(host, "a rule of Kule names one host", host.text, "write the hosts")
        return
    if said is not Verdict.DENY and kind_of(host.text) != OTHER:
        never = kind_of(host.text) == NEVER
        draft.drop(
            host, "rules", "it is never reached, by any rule" if never else "Kule keeps private addresses out of reach"
        )
        return
    if said is Verdict.ASK:
        asked.add(host.text + port)
    draft.rules(host, "rules", said, [host.text + port])


def _port(draft: Draft, node: Node) -> str:
    number = draft.read.number(node, "'port'", 1, 65535)
    return "" if number is None else f":{int(number)}"


def _remembered(draft: Draft, node: Node, asked: set[str]) -> None:
    host, folder, port = None, "", ""
    before = draft.read.problems.count
    for key, _, value in draft.read.pairs(node, "a remembered host", ("folder", "host", "port")):
        if key == "host":
            host = value if draft.read.text(value, "'host'") is not None else None
        elif key == "folder":
            folder = draft.read.text(value, "'folder'") or ""
        else:
            port = _port(draft, value)
    if draft.read.problems.count > before:
        return
    if not isinstance(host, Scalar) or not port or not folder:
        advice = "write '{folder: /home/me/app, host: github.com, port: 443}'"
        draft.read.wrong(node, "a remembered host has a folder, a host and a port", "", advice)
        return
    if host.text[:1] == "*":
        draft.read.wrong(host, "what is remembered is one host", host.text, "write the hosts")
    elif folder.rstrip("/") != (draft.wanted.select or draft.wanted.folder).rstrip("/"):
        if draft.canonical(host, host.text + port) is not None:
            draft.drop(host, "remembered", f"it is for another folder; --select {on_screen(folder)} takes it")
    else:
        text = draft.canonical(host, host.text + port)
        why = "a rule that asks about the same host wins here" if text in asked else ""
        draft.rules(host, "remembered", Verdict.ALLOW, [host.text + port], why)
