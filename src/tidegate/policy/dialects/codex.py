"""Codex: the network part of a config.toml; its configuration reference and its network proxy.

* `[permissions.NAME.network]` with `domains` (`"host" = "allow"|"deny"`), and the older `allowed_domains` and
  `denied_domains`, there or in `[network_proxy.policy]`. `default_permissions` says which NAME, and
  Codex does not start where it names none of them, or there are profiles and it is not there.
* A host is exact; `*.x` is any depth below x and never x itself; `**.x` is x too; `*` is every host, in allows only.
  Denies win; what nothing allows is denied. A port in a pattern is dropped there: every pattern is for any port.
* Without `enabled = true` there is no network. `mode = "limited"`: GET, HEAD and OPTIONS alone.
* Without `allow_local_binding = true` no name leads to a private address or to this machine.

A glob inside a label (`region*.x`) has no rule of ours: an allow is left out, a deny covers all below x. What a profile
inherits (`extends`) from another of the file would be lost, so that is refused; built-in ones name no hosts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidegate.model.errors import UsageError
from tidegate.model.verdict import Verdict
from tidegate.policy.dialects.draft import keys_of, value_of
from tidegate.policy.dialects.patterns import NEVER, OTHER, OWN, PRIVATE, kind_of, plain, split
from tidegate.policy.nodes import Mapping, Scalar
from tidegate.policy.positions import on_screen

if TYPE_CHECKING:
    from tidegate.policy.dialects.draft import Draft
    from tidegate.policy.nodes import Node

TITLE: Final = "Codex"
KEYS: Final = ("permissions", "default_permissions", "network_proxy")
LIMITED: Final = ("GET", "HEAD", "OPTIONS")
_ELSEWHERE: Final = "it says nothing of which hosts are reached"
_PROXY: Final = "the gate is the proxy"
_ASIDES: Final = {
    **dict.fromkeys(
        ("proxy_url", "admin_url", "enable_socks5", "socks_url", "enable_socks5_udp", "allow_upstream_proxy",
         "dangerously_allow_non_loopback_proxy", "dangerously_allow_non_loopback_admin"),
        _PROXY,
    ),
    "dangerously_allow_all_unix_sockets": "sockets of the machine are shown by --share PATH",
    "allow_unix_sockets": "sockets of the machine are shown by --share PATH",
    "unix_sockets": "sockets of the machine are shown by --share PATH",
    "mitm": "what is read inside TLS is said by rules with methods, and by secrets",
}  # fmt: skip
_KNOWN: Final = ("enabled", "mode", "domains", "allowed_domains", "denied_domains", "allow_local_binding")
_WHY: Final = {
    NEVER: "it is never reached, by any rule",
    OWN: "no name must lead to this machine there, which 'own: never' keeps; no address of it is reached either",
    PRIVATE: "no name must lead to one there, which 'private: never' keeps; no private address is reached either",
}
_GLOB: Final = frozenset("*?[]{}!\\")


def recognises(root: Mapping) -> bool:
    """Whether this is a configuration of Codex that says something of the network."""
    keys = keys_of(root)
    if "network_proxy" in keys or "default_permissions" in keys:
        return True
    profiles = value_of(root, "permissions")
    return any(value_of(profiles, name, "network") is not None for name in keys_of(profiles)) if profiles else False


def read(draft: Draft, root: Node) -> None:
    """Read a whole file."""
    found: dict[str, tuple[Node, Draft]] = {}
    default = ""
    for key, key_node, value in draft.pairs(root, "the file", KEYS, others=_ELSEWHERE):
        if key == "default_permissions":
            default = draft.read.text(value, "'default_permissions'") or ""
            draft.aside(value, key, "it says which profile counts")
        elif key == "network_proxy":
            part = draft.part()
            _proxy(part, value)
            found[key] = (key_node, part)
        else:
            for name, name_node, profile in draft.pairs(value, "'permissions'", keys_of(value)):
                part = draft.part()
                _profile(part, name, profile)
                found[name] = (name_node, part)
    if draft.read.problems:
        return
    draft.settings |= {"default": "deny", "private": "never", "own": "never"}
    if default[:1] == ":" and not draft.wanted.select:
        for name, (node, _) in found.items():
            draft.drop(
                node, f"permissions.{name}", f"default_permissions is {on_screen(default)}; --select NAME takes it"
            )
        return
    if not found:
        return
    names = {name: name for name in found}
    if not draft.wanted.select:
        _refuse_unchosen(draft, root, default, [name for name in names if name != "network_proxy"])
    chosen = default if default in found and not draft.wanted.select else draft.choose("profile", "profiles", names)
    for name, (node, part) in found.items():
        if name == chosen:
            draft.take(part)
        else:
            draft.drop(node, f"permissions.{name}", "it is another profile; --select NAME takes it")


def _refuse_unchosen(draft: Draft, root: Node, default: str, profiles: list[str]) -> None:
    """Refuse what Codex does not start with: profiles of which none is chosen, and a choice that is none of them.

    Raises:
        UsageError: for that.
    """
    if default in profiles or not (default or profiles) or draft.wanted.first:
        return
    place = draft.read.source((value_of(root, "default_permissions") or root).mark)
    named = f"default_permissions names no profile of the file, {on_screen(default)!r}"
    what = named if default else "no default_permissions says which profile counts"
    shown = ", ".join(on_screen(name) for name in profiles[:8]) or "NAME"
    file = on_screen(draft.read.problems.filename, 200)
    fix = f"write 'default_permissions = \"NAME\"', or tidegate policy import {file} --select NAME, one of: {shown}"
    raise UsageError(f"{place}: {what}, and Codex does not start with that", fix=fix)


def _profile(draft: Draft, name: str, node: Node) -> None:
    for key, _, value in draft.pairs(node, f"'permissions.{name}'", ("network", "extends"), others=_ELSEWHERE):
        if key == "network":
            _network(draft, value, f"permissions.{name}.network")
        elif isinstance(value, Scalar) and value.text[:1] == ":":
            draft.aside(value, "extends", "built-in profiles name no hosts")
        else:
            shown = value.text if isinstance(value, Scalar) else ""
            draft.read.wrong(value, "what a profile inherits would be lost", shown, "write its domains into this one")


def _proxy(draft: Draft, node: Node) -> None:
    """Read the older table: its lists are in `policy`, the rest beside it."""
    merged = Mapping(node.mark)
    for key_node, value in node.pairs if isinstance(node, Mapping) else ():
        inner = isinstance(key_node, Scalar) and key_node.text == "policy" and isinstance(value, Mapping)
        merged.pairs += value.pairs if inner and isinstance(value, Mapping) else [(key_node, value)]
    _network(draft, merged if isinstance(node, Mapping) else node, "network_proxy")


def _network(draft: Draft, node: Node, of: str) -> None:
    enabled, methods = False, tuple[str, ...]()
    patterns: list[tuple[Scalar, str, Verdict]] = []
    for key, _, value in draft.pairs(node, f"'{of}'", _KNOWN, _ASIDES):
        where = f"{of}.{key}"
        if key == "enabled":
            enabled = draft.read.flag(value, f"'{where}'") or False
            draft.note(value, where, "exactly", ["the lists count" if enabled else "nothing is reached"])
        elif key == "mode":
            mode = draft.read.word(value, f"'{where}'", ("limited", "full"))
            methods = LIMITED if mode == "limited" else ()
            draft.note(value, where, "exactly", [f"methods: {', '.join(methods)}" if methods else "any method"])
        elif key == "allow_local_binding":
            if draft.read.flag(value, f"'{where}'"):
                why = "only hosts that are named exactly, and never this machine"
                draft.set(value, where, "private", "exact-host", "narrower", why)
            else:
                draft.note(value, where, "exactly", ["private: never"])
        elif key == "domains":
            for domain, domain_node, said in draft.pairs(value, f"'{where}'", keys_of(value)):
                word = draft.read.word(said, f"'{where}.{domain}'", ("allow", "deny"))
                if word is not None:
                    patterns.append((domain_node, where, Verdict(word)))
        else:
            verdict_of_list = Verdict.ALLOW if key == "allowed_domains" else Verdict.DENY
            patterns += [(item, where, verdict_of_list) for item in draft.items(value, f"'{where}'")]
    for item, where, verdict in patterns:
        part = draft.part()
        _pattern(part, item, where, verdict, methods, private="private" in draft.settings)
        if enabled or verdict is Verdict.DENY:
            draft.take(part)
        else:
            draft.drop(item, where, f"'{of}.enabled' is not true, so nothing is reached")


def _pattern(
    draft: Draft, item: Scalar, where: str, verdict: Verdict, methods: tuple[str, ...], *, private: bool
) -> None:
    text = item.text.strip()
    allows = verdict is Verdict.ALLOW
    written, port = split(text) if text.count(":") < 2 or text[:1] == "[" else (f"[{text}]", "")
    host = plain(written)
    prefix = "**." if host.startswith("**.") else "*." if host.startswith("*.") else ""
    name = host.removeprefix(prefix)
    if host == "*":
        if allows:
            draft.rules(item, where, verdict, [f"*{port}"], _port_kept(port), methods=methods)
        else:
            draft.read.wrong(item, "Codex refuses '*' in a deny", item.text, "leave the allows out")
        return
    if name[:1] != "[" and not _GLOB.isdisjoint(name):
        _glob(draft, item, where, name, allows=allows)
        return
    if allows and kind_of(name) != OTHER and not (kind_of(name) == PRIVATE and private):
        if draft.canonical(item, name + port) is not None:
            draft.drop(item, where, _WHY.get(kind_of(name), _WHY[OWN]))
        return
    tail = port if allows else ""
    texts = [f"**.{name}{tail}"] if prefix else []
    texts += [f"{name}{tail}"] if prefix != "*." else []
    draft.rules(item, where, verdict, texts, _port_kept(tail), methods=methods if allows else ())


def _port_kept(port: str) -> str:
    return "Codex leaves the port out of account; here it counts" if port else ""


def _glob(draft: Draft, item: Scalar, where: str, name: str, *, allows: bool) -> None:
    if allows:
        draft.drop(item, where, "a glob inside a label has no rule of ours; write the hosts out")
        return
    labels = name.split(".")
    last = max(at for at, label in enumerate(labels) if not _GLOB.isdisjoint(label))
    rest = ".".join(labels[last + 1 :])
    if not rest:
        draft.read.wrong(item, "what this denies cannot be said", item.text, "write the hosts out")
        return
    draft.rules(item, where, Verdict.DENY, [rest, f"**.{rest}"], "a glob inside a label: all of the domain is denied")
