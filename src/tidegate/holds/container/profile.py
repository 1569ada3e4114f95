"""The filter of `netns` in the words of an engine: a seccomp profile as docker and podman read it (HLD-13).

The same tables as holds/seccomp.py: the same calls, families, protocols and flags are refused with the same errors.
What differs is who compares: an engine's rules know neither `else` nor jumps, so an allow-list is written as what is
below, between and above it. And it hands nothing on: that is the starter's filter (starter.py), which a worker has
besides. Until it has, the call that installs such a filter must be let through; the starter's own then refuses it.

Rules of the file: a number that the kernel reads as 32 bits is compared as 32 bits (MASKED_EQ), or so that whatever
stands in the upper half is refused. libseccomp takes one comparison of an argument in a rule: alternatives are rules
of their own. seccomp_rule_add(3), the runtime specification of the OCI, section Seccomp.
"""

from __future__ import annotations

import json
from typing import Any

from tidegate.holds import linux, seccomp
from tidegate.holds.netlink import NETLINK_NETFILTER
from tidegate.holds.seccomp import ERRNOS

_WORD = 0xFFFFFFFF
Rule = dict[str, Any]
_ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}


def profile(machine: str = linux.MACHINE, *, starts: bool = False, rules: bool = False) -> str:
    """The profile for this machine, as JSON; `starts` for a container whose first program is the starter.

    `rules` is for what makes the rules of a network: it may talk to netfilter, too.

    Raises:
        KeyError: for a machine whose numbers are not known.
    """
    found = [_rule((name,), answer) for name, answer in seccomp.REFUSED]
    found += _sockets(rules=rules) + _pairs() + _arguments() + ([] if starts else [_no_listener()])
    return json.dumps(
        {
            "defaultAction": "SCMP_ACT_ALLOW",
            "architectures": [_ARCHITECTURES[machine]],
            "syscalls": found,
        },
        indent=1,
    )


def _rule(names: tuple[str, ...], answer: str, *arguments: dict[str, Any]) -> Rule:
    return {"names": list(names), "action": "SCMP_ACT_ERRNO", "errnoRet": ERRNOS[answer], "args": list(arguments)}


def _is(index: int, value: int) -> dict[str, Any]:
    return _has(index, value, _WORD)


def _has(index: int, value: int, mask: int) -> dict[str, Any]:
    """The argument has these bits under the mask."""
    return {"index": index, "op": "SCMP_CMP_MASKED_EQ", "value": mask, "valueTwo": value}


def _above(index: int, value: int) -> dict[str, Any]:
    return {"index": index, "op": "SCMP_CMP_GT", "value": value, "valueTwo": 0}


def _not_in(index: int, allowed: tuple[int, ...]) -> list[dict[str, Any]]:
    """The comparisons of which one holds where a number is not among these; whatever has an upper half is not."""
    highest = max(allowed)
    return [*(_is(index, value) for value in range(highest) if value not in allowed), _above(index, highest)]


def _kinds(allowed: tuple[int, ...]) -> list[int]:
    return [kind for kind in range(seccomp.SOCK_TYPE_MASK + 1) if kind not in allowed]


def _kind(value: int) -> dict[str, Any]:
    return _has(1, value, seccomp.SOCK_TYPE_MASK)


_UNIX_KINDS = (seccomp.SOCK_STREAM, seccomp.SOCK_SEQPACKET)
_RAW = (seccomp.SOCK_RAW, seccomp.SOCK_PACKET)


def _sockets(*, rules: bool) -> list[Rule]:
    """socket(family, type, protocol)."""
    families = (seccomp.AF_UNIX, seccomp.AF_INET, seccomp.AF_INET6, seccomp.AF_NETLINK)
    found = [_rule(("socket",), "EAFNOSUPPORT", one) for one in _not_in(0, families)]
    unix = _is(0, seccomp.AF_UNIX)
    found += [_rule(("socket",), "ESOCKTNOSUPPORT", unix, _kind(kind)) for kind in _kinds(_UNIX_KINDS)]
    netlink = _is(0, seccomp.AF_NETLINK)
    protocols = (seccomp.NETLINK_ROUTE, *((NETLINK_NETFILTER,) if rules else ()))
    found += [_rule(("socket",), "EPROTONOSUPPORT", netlink, one) for one in _not_in(2, protocols)]
    for number in (seccomp.AF_INET, seccomp.AF_INET6):
        family = _is(0, number)
        for kind in _kinds((seccomp.SOCK_STREAM, seccomp.SOCK_DGRAM)):
            found.append(_rule(("socket",), "EPERM" if kind in _RAW else "EPROTONOSUPPORT", family, _kind(kind)))
        kinds = ((seccomp.SOCK_STREAM, seccomp.IPPROTO_TCP), (seccomp.SOCK_DGRAM, seccomp.IPPROTO_UDP))
        for kind, protocol in kinds:
            for one in _not_in(2, (0, protocol)):
                found.append(_rule(("socket",), "EPROTONOSUPPORT", family, _kind(kind), one))
    return found


def _pairs() -> list[Rule]:
    """socketpair: unix ones."""
    found = [_rule(("socketpair",), "EAFNOSUPPORT", one) for one in _not_in(0, (seccomp.AF_UNIX,))]
    return found + [_rule(("socketpair",), "ESOCKTNOSUPPORT", _kind(kind)) for kind in _kinds(_UNIX_KINDS)]


def _arguments() -> list[Rule]:
    """Calls that are fine but for some values of one argument."""
    tcp = _is(1, seccomp.IPPROTO_TCP)
    opens = (seccomp.TCP_FASTOPEN, seccomp.TCP_FASTOPEN_CONNECT)
    found = [_rule(("setsockopt",), "EOPNOTSUPP", tcp, _is(2, option)) for option in opens]
    fast = seccomp.MSG_FASTOPEN
    found.append(_rule(("sendto", "sendmmsg"), "EOPNOTSUPP", _has(3, fast, fast)))
    found.append(_rule(("sendmsg",), "EOPNOTSUPP", _has(2, fast, fast)))
    requests = (seccomp.TIOCSTI, seccomp.TIOCLINUX, *seccomp.SNAPSHOTS)
    found += [_rule(("ioctl",), "EPERM", _is(1, request)) for request in requests]
    found.append(_rule(("umount2",), "EPERM", _has(1, linux.MNT_DETACH, linux.MNT_DETACH)))
    found += _unknown("open_tree", 2, seccomp.OPEN_TREE_KNOWN)
    found += _unknown("fsmount", 1, seccomp.FSMOUNT_KNOWN)
    found += _unknown("unshare", 0, seccomp.UNSHARE_KNOWN)
    found.append(_rule(("unshare",), "EINVAL", _above(0, _WORD)))
    group = seccomp.CLONE_NEWCGROUP
    found.append(_rule(("unshare", "clone"), "EPERM", _has(0, group, group)))
    new_limit = {"index": 2, "op": "SCMP_CMP_NE", "value": 0, "valueTwo": 0}
    found.append(_rule(("prlimit64",), "EPERM", _is(0, 1), new_limit))
    return found


def _no_listener() -> Rule:
    """A listener for calls would be asked before any watcher."""
    listener = linux.SECCOMP_FILTER_FLAG_NEW_LISTENER
    return _rule(("seccomp",), "EBUSY", _has(1, listener, listener))


def _unknown(name: str, index: int, known: int) -> list[Rule]:
    bits = [1 << number for number in range(32) if not known >> number & 1]
    return [_rule((name,), "EINVAL", _has(index, bit, bit)) for bit in bits]
