"""GurtOS: a task's JSON (`hosts`) and the settings of a box (`networkDefault`, `defaultHosts`); its page on policy.

* A host is exact, on any port or one; `*.x` is any depth below x, never x itself, and takes no port: with one it is
  accepted and matches nothing. There are no denies.
* A rule must name a site. Refused when a task is created: `*`, a wildcard over a public suffix (`*.com`, `*.co.uk`),
  `localhost`, and addresses that begin with 127., 0. or 169.254.
* A private address, or one of the box, needs an exact host:port. The box's own ports are never reached: its API's,
  3000, and 8800 to 8899.
* A task that names no hosts reaches nothing, unless the settings say `networkDefault: allowlist`: then `defaultHosts`.
  A task that names hosts has exactly those.

The public suffix list is asked for its ICANN part: the page's own example, `*.githubusercontent.com`, is a suffix of
the private part. The page has no form for IPv6 addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidegate.model.verdict import Verdict
from tidegate.policy.dialects.draft import keys_of
from tidegate.policy.dialects.patterns import below, plain, split

if TYPE_CHECKING:
    from tidegate.policy.dialects.draft import Draft
    from tidegate.policy.nodes import Mapping, Node, Scalar

TITLE: Final = "GurtOS"
KEYS: Final = ("hosts", "networkDefault", "defaultHosts")
BOX_PORTS: Final = (3000, *range(8800, 8900))
_REFUSED: Final = "GurtOS refuses it when the task is created"
_NOT_PUBLIC: Final = (
    "every address that is not public needs host:port here, reserved and documentation ranges too; GurtOS names fewer"
)
_ELSEWHERE: Final = "it says nothing of the network"


def recognises(root: Mapping) -> bool:
    """Whether this is a task or settings of GurtOS."""
    return any(key in KEYS for key in keys_of(root))


def read(draft: Draft, root: Node) -> None:
    """Read a whole file."""
    task, defaults = draft.part(), draft.part()
    mode, mode_node = "none", None
    default_nodes: list[Node] = []
    for key, _, value in draft.pairs(root, "the file", KEYS, others=_ELSEWHERE):
        if key == "networkDefault":
            mode, mode_node = draft.read.word(value, "'networkDefault'", ("none", "allowlist")) or mode, value
        else:
            part = task if key == "hosts" else defaults
            for item in part.items(value, f"'{key}'"):
                _host(part, item, key)
                if part is defaults:
                    default_nodes.append(item)
    draft.take(task)
    own = any(entry.text for entry in task.entries)
    taken = mode == "allowlist" and not own
    if mode_node is not None:
        why = "a task that names hosts has exactly those" if own else ""
        said = "the default hosts" if taken else "a task that names no hosts reaches nothing"
        draft.note(mode_node, "networkDefault", "exactly", [why or said])
    if taken:
        draft.take(defaults)
    else:
        why = "a task that names hosts has exactly those" if own else "'networkDefault' is not 'allowlist'"
        for node in default_nodes:
            draft.drop(node, "defaultHosts", why)
    draft.notes.append(_NOT_PUBLIC)
    ports = f"[{', '.join(map(str, BOX_PORTS))}]"
    draft.settings |= {
        "default": "deny",
        "private": "exact-host-port",
        "own": "exact-host-port",
        "protected_ports": ports,
    }


def _host(draft: Draft, item: Scalar, where: str) -> None:
    written, port = split(item.text)
    host = plain(written)
    if host in {"*", "**"}:
        draft.read.wrong(item, f"a rule must name a site ({_REFUSED})", item.text, "write the hosts")
    elif host == "localhost" or host.startswith(("127.", "0.", "169.254.")):
        advice = (
            "write a name of the box with its port, such as shop.localhost:8081" if host[:3] != "169" else "remove it"
        )
        draft.read.wrong(item, f"it leads to the box itself or to link-local ({_REFUSED})", item.text, advice)
    elif host[:2] == "*.":
        name = draft.canonical(item, below(host))
        if name is None:
            return
        if port and draft.canonical(item, below(host) + port) is None:
            return
        if draft.is_public_suffix(name.removeprefix("**.")):
            what = f"a wildcard over a public suffix ({_REFUSED})"
            draft.read.wrong(item, what, item.text, "write the sites below it")
        elif port:
            why = (
                "a wildcard of GurtOS takes no port: it is accepted and matches nothing; write each host with its port"
            )
            draft.drop(item, where, why)
        else:
            draft.rules(item, where, Verdict.ALLOW, [name])
    elif host[:1] == "*":
        draft.read.wrong(item, "a wildcard of GurtOS is '*.NAME'", item.text, "write '*.example.com' or the host")
    elif host[:1] == "[":
        if draft.canonical(item, item.text) is not None:
            draft.drop(item, where, "GurtOS has no form for IPv6 addresses, so what it allows cannot be said")
    else:
        draft.rules(item, where, Verdict.ALLOW, [item.text])
