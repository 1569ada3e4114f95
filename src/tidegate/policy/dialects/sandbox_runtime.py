"""sandbox-runtime (srt): the settings file's `network`; its README and the schema of its configuration.

* `allowedDomains`: a host, `*.x` for every depth below x and never x itself, each on any port or on one; addresses.
  Refused: `*`, a wildcard over one label (`*.com`), one label that is not `localhost`, IPv6 without brackets.
* `deniedDomains`: the same, and `*` or `*:22`. They are checked first and win. What nothing allows is denied.
* A name that leads to this machine, link-local or metadata is refused; private addresses are not, and
  `deniedResolvedAddresses` lists more.

Claude Code has the same lists with the same meaning (claude.py).
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final

from tidegate.model.verdict import Verdict
from tidegate.policy.dialects.draft import keys_of, value_of
from tidegate.policy.dialects.patterns import NEVER, OWN, PRIVATE, below, kind_of, plain, split
from tidegate.policy.nodes import Sequence
from tidegate.policy.suggest import nearest

if TYPE_CHECKING:
    from tidegate.policy.dialects.draft import Draft
    from tidegate.policy.nodes import Mapping, Node, Scalar

TITLE: Final = "sandbox-runtime"
KEYS: Final = ("network",)
LISTS: Final = ("allowedDomains", "deniedDomains", "deniedResolvedAddresses")
_NOT_OURS: Final = "it says nothing of which hosts are reached"
_SOCKETS: Final = "sockets of the machine are shown by --share PATH"
_INSPECTED: Final = "what is read inside TLS is said by rules with methods, and by secrets"
ASIDES: Final = {
    "strictAllowlist": "what no rule names is denied here anyway",
    "deniedDomainReasons": "a refusal says which rule denied",
    "allowUnixSockets": _SOCKETS,
    "allowAllUnixSockets": _SOCKETS,
    "allowMachLookup": _NOT_OURS,
    "allowLocalBinding": "a task has a loopback of its own, where it may listen",
    "httpProxyPort": "the gate is the proxy",
    "socksProxyPort": "the gate is the proxy",
    "mitmProxy": _INSPECTED,
    "tlsTerminate": _INSPECTED,
    "parentProxy": "set HTTPS_PROXY in tidegate's own environment",
}
_WHY: Final = {
    NEVER: "it is never reached, by any rule",
    OWN: "no name must lead to this machine there, which 'own: never' keeps; no address of it is reached either",
}
# Everything here is private or never reached: `private: never` covers it.
_PRIVATE: Final = tuple(
    map(
        ip_network,
        ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "0.0.0.0/8",
         "224.0.0.0/3", "fc00::/7", "fe80::/10", "ff00::/8", "::1/128"),
    )
)  # fmt: skip


def recognises(root: Mapping) -> bool:
    """Whether these are settings of sandbox-runtime, or nearly: a slip in the name of a list is theirs."""
    return any(key in (*LISTS, *ASIDES) or nearest(key, LISTS) for key in keys_of(value_of(root, "network")))


def read(draft: Draft, root: Node) -> None:
    """Read a whole file."""
    for _, _, value in draft.pairs(root, "the file", KEYS, others=_NOT_OURS):
        lists(draft, value, "network")
    close(draft)


def close(draft: Draft) -> None:
    """Set and note what holds whatever the lists say."""
    if any(line.text[:1] == "*" and line.verdict is Verdict.ALLOW for line in draft.lines.values()):
        draft.notes.append("a wildcard reaches public addresses only; there it reaches private ones too")
    draft.settings = {"default": "deny", "private": "exact-host", "own": "never"} | draft.settings


def lists(draft: Draft, node: Node, where: str, asides: dict[str, str] | None = None) -> None:
    """Read the mapping of the lists."""
    ranges = value_of(node, LISTS[2])
    private = not isinstance(ranges, Sequence) or not ranges.items
    for key, _, value in draft.pairs(node, f"'{where}'", LISTS, ASIDES | (asides or {})):
        place = f"{where}.{key}"
        for item in draft.items(value, f"'{place}'"):
            if key == "deniedResolvedAddresses":
                _range(draft, item, place)
            else:
                pattern(draft, item, place, Verdict.ALLOW if key == LISTS[0] else Verdict.DENY, private=private)


def pattern(draft: Draft, item: Scalar, where: str, verdict: Verdict, *, private: bool) -> None:
    """Note what a pattern of one of the lists becomes; `private` says whether private addresses may be named."""
    text = item.text
    written, port = split(text)
    host = plain(written)
    denies = verdict is Verdict.DENY
    if written == "*" and denies:
        draft.rules(item, where, verdict, [f"*{port}"])
        return
    name = host.removeprefix("*.")
    if "*" in name:
        what = "it allows everything, or is no wildcard of one name"
        draft.read.wrong(item, what, item.text, "write '*.example.com', or the hosts")
    elif host != name and "." not in name:
        draft.read.wrong(item, "a wildcard over a single label is too wide", item.text, "write '*.example.com'")
    elif written.endswith(".") or (
        "." not in host and host[:1] != "[" and host != "localhost" and ":" not in text.replace(port, "")
    ):
        draft.read.wrong(item, "no name of a site", item.text, "write a host such as api.example.com")
    elif not denies and (kind_of(host) in _WHY or (kind_of(host) == PRIVATE and not private)):
        if draft.canonical(item, text) is not None:
            draft.drop(
                item, where, _WHY.get(kind_of(host), "private addresses are refused for 'deniedResolvedAddresses'")
            )
    else:
        draft.rules(item, where, verdict, [below(text)])


def _range(draft: Draft, item: Scalar, where: str) -> None:
    try:
        network = ip_network(item.text)
    except ValueError:
        draft.read.wrong(item, "no address and no range of addresses", item.text, "write it as 10.0.0.0/8")
        return
    if any(network.version == one.version and network.subnet_of(one) for one in _PRIVATE):  # type: ignore[arg-type]
        draft.settings["private"] = "never"
        draft.note(item, where, "narrower", ["private: never"], "ranges cannot be named; all of them are refused")
    elif network.num_addresses == 1:
        address = ip_address(network.network_address)
        address = getattr(address, "ipv4_mapped", None) or address
        draft.rules(item, where, Verdict.DENY, [f"[{address}]" if address.version == 6 else str(address)])
    else:
        draft.read.wrong(
            item, "a range of public addresses cannot be denied here", item.text, "write its addresses, or names"
        )
