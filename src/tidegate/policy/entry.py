"""An entry of a list that is a mapping: `{host, methods, paths, git, limits}` (POL-0, GAT-6, INS-6, INS-7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.rule import GIT, NO_LIMITS, only
from tidegate.model.verdict import Verdict
from tidegate.policy.nodes import Scalar
from tidegate.policy.requests import read_git, read_limits, read_methods, read_paths

if TYPE_CHECKING:
    from tidegate.model.rule import Alternative, RuleLimits
    from tidegate.policy.nodes import Mapping
    from tidegate.policy.reading import Reader

_BOTH = "write two entries for the host; what one of them lets pass, passes"


def read_entry(read: Reader, item: Mapping, entry: str, verdict: Verdict) -> tuple[Scalar | None, RuleLimits]:
    """Return the host of an entry and its limits; None where it names no host, which has been said then.

    `entry` is how people are told of it.
    """
    host: Scalar | None = None
    limits = NO_LIMITS
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    git: tuple[Alternative, ...] = ()
    before = read.problems.count
    for key, key_node, value in read.pairs(item, entry, ("host", "methods", "paths", "git", "limits")):
        if key == "host":
            if read.text(value, "'host'") is not None and isinstance(value, Scalar):
                host = value
        elif key == "limits":
            limits = read_limits(read, value)
            if verdict is Verdict.DENY:
                read.wrong(key_node, "limits on a deny rule", key, "remove them; a denied host moves no bytes")
        elif verdict is Verdict.DENY:
            advice = "remove it; a deny rule denies all of a host. Allow what may pass instead"
            read.wrong(key_node, f"'{key}' on a deny rule", key, advice)
        elif key == "methods":
            methods = read_methods(read, value)
        elif key == "git":
            git = read_git(read, value)
        else:
            paths = read_paths(read, value)
    if git and (methods or paths):
        read.wrong(item, "'git' beside methods or paths", "", _BOTH)
    if git or methods or paths:
        limits = limits.replace(requests=(git,) if git else only(methods, paths))
    if host is None and read.problems.count == before:  # else the reason has been said, a mistyped `host` for example
        read.wrong(item, f"{entry} names no host", "", "write '{host: api.example.com:443, limits: {…}}'")
    return host, limits


def is_git(limits: RuleLimits) -> bool:
    """Whether an entry's limits come from `git`."""
    return any(one[0] == GIT for union in limits.requests for one in union)
