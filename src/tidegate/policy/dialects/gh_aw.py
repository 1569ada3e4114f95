"""gh-aw (GitHub Agentic Workflows): `network` of a workflow's frontmatter, and the firewall's list of domains.

As its page on network permissions has it, and the firewall's on domain filtering:

* A domain is itself and everything below it, over HTTP and HTTPS: ports 80 and 443. `https://x` and `http://x` are one
  of them. `*.x` is everything below x, and by one page x too: here it is not x.
* `blocked` wins, and covers what is below. `network: {}` is no network, `network: defaults` and ecosystems (`node`,
  `python`) are lists that come with the product. What nothing allows is denied.
* With `--dialect gh-aw` a text of domains, one a line or with commas, comments behind `#`, is a list for the firewall.

An ecosystem becomes the presets of ours whose hosts are among its own, for reading over HTTPS; others are left out by
name. One under `blocked` can only be said where all that is allowed are presets: otherwise the file is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidegate.model.verdict import Verdict
from tidegate.policy.dialects.draft import is_nothing, keys_of, value_of
from tidegate.policy.dialects.patterns import OTHER, is_address, kind_of, plain
from tidegate.policy.nodes import Mapping, Scalar, Sequence

if TYPE_CHECKING:
    from tidegate.policy.dialects.draft import Draft
    from tidegate.policy.nodes import Node

TITLE: Final = "gh-aw"
KEYS: Final = ("network",)
# Ecosystems, as pkg/workflow/data/ecosystem_domains.json of github/gh-aw has them: each holds the presets' hosts.
ECOSYSTEMS: Final = {
    "dotnet": ("nuget",),
    "go": ("go",),
    "java": ("maven",),
    "node": ("npm", "yarn"),
    "python": ("pypi",),
    "python-native": ("pypi", "crates"),
    "ruby": ("rubygems",),
    "rust": ("crates",),
}
_ELSEWHERE: Final = "it says nothing of which hosts a command reaches"
_ASIDES: Final = {
    "hosted-web": "what a model's own tools reach is looked at by the model guard",
    "allowed-input": "a policy is not added to by who calls",
}
_OF_A_WORKFLOW: Final = ("on", "engine", "safe-outputs", "tools", "jobs")
_PORTS: Final = (":443", ":80")
_SCHEMES: Final = {"https://": (":443",), "http://": (":80",)}
_PRESETS: Final = "only its package registries, for reading; name the other hosts"


def recognises(root: Mapping) -> bool:
    """Whether this has the `network` of a workflow."""
    network = value_of(root, "network")
    if isinstance(network, Scalar):
        return network.text == "defaults"
    workflow = any(key in _OF_A_WORKFLOW for key in keys_of(root))
    if isinstance(network, Mapping) and not network.pairs:
        return workflow
    keys = keys_of(network)
    if any(key in {"blocked", "firewall", *_ASIDES} for key in keys):
        return True
    # `network: {allowed: […]}` alone could be a policy of ours with a slip, and would be wider as one of theirs.
    allowed = value_of(network, "allowed") if network is not None else None
    items = allowed.items if isinstance(allowed, Sequence) else []
    words = any(isinstance(item, Scalar) and item.text in {"defaults", "github", *ECOSYSTEMS} for item in items)
    return "allowed" in keys and (workflow or words)


def read(draft: Draft, root: Node) -> None:
    """Read a whole file: a mapping with `network`, or a list of domains."""
    draft.settings |= {"default": "deny", "private": "never", "own": "never"}
    if isinstance(root, Sequence):
        for item in draft.items(root, "the list"):
            _allowed(draft, item, "domains")
        return
    found = False
    for _, _, value in draft.pairs(root, "the file", KEYS, others=_ELSEWHERE):
        found = True
        if isinstance(value, Scalar):
            if draft.read.word(value, "'network'", ("defaults",)):
                _set(draft, value, "network")
        else:
            _network(draft, value)
    if not found and not draft.read.problems:
        draft.read.wrong(root, "there is no 'network'", "", "write 'network: {allowed: [api.example.com]}'")


def _network(draft: Draft, node: Node) -> None:
    blocked: list[Scalar] = []
    for key, _, value in draft.pairs(node, "'network'", ("allowed", "blocked", "firewall"), _ASIDES):
        if key == "firewall":
            _firewall(draft, value)
        elif not is_nothing(value):
            for item in draft.items(value, f"'network.{key}'"):
                if key == "allowed":
                    _allowed(draft, item, "network.allowed")
                else:
                    blocked.append(item)
    for item in blocked:
        _blocked(draft, item)


def _firewall(draft: Draft, node: Node) -> None:
    if isinstance(node, Scalar):
        draft.aside(node, "network.firewall", "the gate is always there")
        return
    for key, _, value in draft.pairs(node, "'network.firewall'", ("allow-urls", "ssl-bump"), others=_ELSEWHERE):
        if key == "ssl-bump":
            draft.aside(value, "network.firewall.ssl-bump", "rules with paths are read inside TLS here")
        else:
            advice = 'write the hosts with paths in a policy: {host: api.example.com:443, paths: ["/v1/**"]}'
            draft.read.wrong(value, "'allow-urls' narrows hosts by their paths, which would be lost", "", advice)


def _is_set(text: str) -> bool:
    return "." not in text and ":" not in text and "*" not in text and text != "localhost"


def _set(draft: Draft, item: Scalar, where: str) -> None:
    presets = ECOSYSTEMS.get(item.text)
    if presets:
        draft.rules(item, where, Verdict.ALLOW, [], _PRESETS, presets=presets)
    else:
        draft.drop(item, where, "it is a list that comes with gh-aw and not with the file; name the hosts you need")


def _allowed(draft: Draft, item: Scalar, where: str) -> None:
    text = item.text
    if _is_set(text):
        if draft.canonical(item, text) is not None:
            _set(draft, item, where)
        return
    ports: tuple[str, ...] = _PORTS
    for scheme, only in _SCHEMES.items():
        if text.startswith(scheme):
            text, ports = text.removeprefix(scheme), only
    name = plain(text).removeprefix("*.")
    if "*" in name or (plain(text) != name and "." not in name):
        draft.read.wrong(item, "a wildcard is '*.' before a domain, once", item.text, "write '*.example.com'")
    elif draft.canonical(item, name) is None:
        return
    elif ":" in text:
        draft.drop(item, where, "what a port means there is not said; the firewall lets ports 80 and 443 pass")
    elif is_address(name) or kind_of(name) != OTHER:
        draft.drop(item, where, "whether the firewall lets addresses pass is not said; write it into the policy")
    elif plain(text) != name:
        why = f"not {name} itself, which one page of gh-aw counts in and the other does not; list it"
        draft.rules(item, where, Verdict.ALLOW, [f"**.{name}{port}" for port in ports], why)
    else:
        texts = [f"{prefix}{name}{port}" for prefix in ("", "**.") for port in ports]
        draft.rules(item, where, Verdict.ALLOW, texts)


def _blocked(draft: Draft, item: Scalar) -> None:
    where = "network.blocked"
    text = item.text
    for scheme in _SCHEMES:
        text = text.removeprefix(scheme)
    name = plain(text).removeprefix("*.")
    if _is_set(text):
        presets = ECOSYSTEMS.get(text)
        named = any(line.text[:1] != "@" and line.verdict is Verdict.ALLOW for line in draft.lines.values())
        if presets and not named:
            draft.rules(
                item, where, Verdict.DENY, [], "its package registries; nothing else of it is allowed", presets=presets
            )
        else:
            what = "which hosts this denies is known to gh-aw only"
            draft.read.wrong(item, what, item.text, "write the hosts that are to be denied")
    elif "*" in name:
        draft.read.wrong(item, "a wildcard is '*.' before a domain, once", item.text, "write '*.example.com'")
    else:
        why = "on every port" if text != item.text else f"{name} itself too" if plain(text) != name else ""
        below = [] if is_address(name) else [f"**.{name}"]
        draft.rules(item, where, Verdict.DENY, [name, *below], why)
