"""Smokescreen: an ACL in YAML, version v1; its acl/v1 package.

* `services`: each has a `name`, an `action` and `allowed_domains`; `default` is for a service that is not named.
* A domain is exact or `*.x`, any depth below x and never x itself, on any port. Refused: `*`, `*x`, a `*` inside, and
  names that are not in canonical form.
* The order: what the service allows passes, then `global_deny_list` denies, then `global_allow_list` allows, then the
  action decides: `enforce` denies, `report` and `open` let everything pass.
* Private addresses are refused unless its own configuration, which is no ACL, says otherwise.

Here a deny wins over every allow: a service's domain that the global list denies is denied, and its entry says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidegate.model.verdict import Verdict
from tidegate.policy.dialects.draft import is_list, keys_of, value_of
from tidegate.policy.dialects.patterns import Meeting, below, is_address, split

if TYPE_CHECKING:
    from tidegate.policy.dialects.draft import Draft
    from tidegate.policy.nodes import Mapping, Node, Scalar

TITLE: Final = "Smokescreen"
KEYS: Final = ("services", "default", "version", "global_deny_list", "global_allow_list")
ACTIONS: Final = ("enforce", "report", "open")
_OF_NO_HOST: Final = "it says nothing of which hosts are reached"
_ASIDES: Final = {
    "project": _OF_NO_HOST,
    "mitm_domains": "what is read inside TLS is said by rules with methods, and by secrets",
    "allowed_external_proxies": "the gate dials what it is asked for, and no proxies of the task",
}
_DEFAULT: Final = "default"


def recognises(root: Mapping) -> bool:
    """Whether this is an ACL of Smokescreen."""
    keys = keys_of(root)
    return is_list(value_of(root, "services")) or "global_deny_list" in keys or "global_allow_list" in keys


def read(draft: Draft, root: Node) -> None:
    """Read a whole file."""
    found: dict[str, tuple[Node, Draft]] = {}
    denied, allowed = draft.part(), draft.part()
    denies: list[str] = []
    services: Node | None = None
    default: tuple[Node, Node] | None = None
    for key, key_node, value in draft.pairs(root, "the file", KEYS):
        if key == "services":
            services = value
        elif key == "default":
            default = key_node, value
        elif key == "version":
            draft.read.word(value, "'version'", ("v1",))
            draft.aside(value, "version", _OF_NO_HOST)
        elif key == "global_deny_list":
            for item in denied.items(value, f"'{key}'"):
                _domain(denied, item, key, Verdict.DENY)
                denies.append(below(item.text))
        else:
            for item in allowed.items(value, f"'{key}'"):
                _domain(allowed, item, key, Verdict.ALLOW)
    meeting = Meeting(denies)
    for at, one in enumerate(draft.read.items(services, "'services'", "write '[]' for none") if services else ()):
        part = draft.part()
        name = _rule(part, one, f"services[{at}]", meeting)
        if name in found:
            draft.read.wrong(one, "a service twice", name, "keep one of them")
        elif name is not None:
            found[name] = (one, part)
    if default is not None:
        part = draft.part()
        _rule(part, default[1], _DEFAULT, meeting, named=False)
        found.setdefault(_DEFAULT, (default[0], part))
    if draft.read.problems:
        return
    draft.take(denied)
    draft.take(allowed)
    if found:
        chosen = draft.choose("service", "services", dict(zip(found, found, strict=True)))
        for name, (node, part) in found.items():
            if name == chosen:
                draft.take(part)
            else:
                draft.drop(node, f"services: {name}", "it is another service; --select NAME takes it")
    draft.settings |= {"default": "deny", "private": "never", "own": "never"}


def _rule(draft: Draft, node: Node, of: str, denies: Meeting, *, named: bool = True) -> str | None:
    """Read one service or the default; return its name, None where it has none, which is noted."""
    name, action = None if named else "", None
    before = draft.read.problems.count
    for key, _, value in draft.pairs(node, f"'{of}'", ("name", "action", "allowed_domains"), _ASIDES):
        if key == "name":
            name = draft.read.text(value, "'name'")
        elif key == "action":
            action = draft.read.word(value, "'action'", ACTIONS)
            if action == "enforce":
                draft.note(value, f"{of}.action", "exactly", ["default: deny"])
            elif action is not None:
                # What the global list denies is denied in Smokescreen too, unless the service names it.
                draft.rules(value, f"{of}.action", Verdict.ALLOW, ["*"])
        else:
            where = f"{of}.allowed_domains"
            for item in draft.items(value, f"'{where}'"):
                _domain(draft, item, where, Verdict.ALLOW, denies)
    if draft.read.problems.count == before:
        if name is None:
            draft.read.wrong(node, "a service without a name", "", "write 'name: SERVICE'")
        if action is None:
            draft.read.wrong(node, "a service without an action", "", "write 'action: enforce'")
    return name


def _domain(draft: Draft, item: Scalar, where: str, verdict: Verdict, denies: Meeting | None = None) -> None:
    text = item.text
    host, port = split(text)
    if text in {"*", "*."}:
        draft.read.wrong(item, "a domain must not match everything", text, "write the domains, or 'action: open'")
    elif host[:1] == "*" and host[:2] != "*.":
        draft.read.wrong(item, "a wildcard stands for whole labels", text, "write '*.example.com'")
    elif port:
        draft.read.wrong(item, "a domain has no port", text, f"write {host}")
    else:
        canonical = draft.canonical(item, below(text))
        if canonical is None:
            return
        if canonical != below(text) and not is_address(text):
            draft.read.wrong(item, "the domain is not in canonical form", text, f"write {canonical.removeprefix('*')}")
            return
        shadowed = denies is not None and denies.meets(canonical)
        draft.rules(
            item, where, verdict, [canonical], "a deny of global_deny_list wins over it here" if shadowed else ""
        )
