"""Claude Code: the network lists of `sandbox` in a settings.json; its pages on settings and on sandboxing.

`sandbox.network.allowedDomains` and `deniedDomains` are those of sandbox-runtime (sandbox_runtime.py), on which its
sandbox is built. Beside them:

* `WebFetch(domain:…)` under `permissions.deny` denies a host to commands too: it becomes a deny for the name and all
  below. Under `allow` and `ask` it is left out: the lists of the sandbox are the place for what commands reach.
* A host that no list names is asked about there. A policy that does not say so asks nobody, so it is denied here;
  `default: ask` in the policy asks.
* Commands that run outside of the sandbox there do not run outside here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tidegate.model.verdict import Verdict
from tidegate.policy.dialects import sandbox_runtime
from tidegate.policy.dialects.draft import value_of
from tidegate.policy.dialects.patterns import plain, split
from tidegate.policy.nodes import Mapping, Scalar, Sequence

if TYPE_CHECKING:
    from tidegate.policy.dialects.draft import Draft
    from tidegate.policy.nodes import Node

TITLE: Final = "Claude Code"
KEYS: Final = ("sandbox", "permissions")
_ELSEWHERE: Final = "it says nothing of the network"
_INSIDE: Final = "no command runs outside of the gate here"
_SANDBOX: Final = {
    "enabled": "what runs under the policy is held to it",
    "excludedCommands": _INSIDE,
    "allowUnsandboxedCommands": _INSIDE,
    "autoAllowBashIfSandboxed": _ELSEWHERE,
}
_NETWORK: Final = {"allowManagedDomainsOnly": "only this file is read; the administrator's policy holds everywhere"}
_FETCH: Final = re.compile(r"WebFetch\(domain:([^)]*)\)")


def recognises(root: Mapping) -> bool:
    """Whether these are settings of Claude Code with a sandbox."""
    return isinstance(value_of(root, "sandbox"), Mapping)


def read(draft: Draft, root: Node) -> None:
    """Read a whole file."""
    for key, _, value in draft.pairs(root, "the file", KEYS, others=_ELSEWHERE):
        if key == "permissions":
            _permissions(draft, value)
            continue
        for _, _, network in draft.pairs(value, "'sandbox'", ("network",), _SANDBOX, others=_ELSEWHERE):
            sandbox_runtime.lists(draft, network, "sandbox.network", _NETWORK)
    sandbox_runtime.close(draft)


def _permissions(draft: Draft, node: Node) -> None:
    for key, _, value in draft.pairs(node, "'permissions'", ("allow", "ask", "deny"), others=_ELSEWHERE):
        if not isinstance(value, Sequence):
            draft.read.mismatch(value, f"'permissions.{key}'", "a list")
            continue
        for item in value.items:
            fetch = _FETCH.fullmatch(item.text) if isinstance(item, Scalar) else None
            if fetch is None or not isinstance(item, Scalar):
                draft.aside(item, f"permissions.{key}", "it is for another tool")
            elif key == "deny":
                _denied(draft, item, fetch[1].strip())
            else:
                why = "what commands reach is said by sandbox.network.allowedDomains; add it there if they need it"
                draft.drop(item, f"permissions.{key}", why)


def _denied(draft: Draft, item: Scalar, domain: str) -> None:
    host, _ = split(domain)
    name = plain(host).removeprefix("*.")
    if name in {"*", "**", ""}:
        draft.rules(item, "permissions.deny", Verdict.DENY, ["*"], "WebFetch is one tool; here no command reaches it")
        return
    why = "WebFetch is one tool; here no command reaches it, nor what is below it"
    address = draft.canonical(item, name)
    if address is None:
        return
    below = [] if name[:1] == "[" or name[-1:].isdigit() else [f"**.{name}"]
    draft.rules(item, "permissions.deny", Verdict.DENY, [name, *below], why)
