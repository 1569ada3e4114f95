"""profile.py: the filter as engines read it."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tidegate.holds import seccomp
from tidegate.holds.bpf import ALLOW, NOTIFY
from tidegate.holds.container.profile import profile
from tidegate.holds.syscalls import TABLES

MACHINE = "x86_64"
WATCHED = ("connect", "listen")


def holds(comparison: dict[str, Any], arguments: tuple[int, ...]) -> bool:
    """What libseccomp means by one comparison."""
    value, given, wanted = comparison["value"], arguments[comparison["index"]], comparison["valueTwo"]
    return {
        "SCMP_CMP_MASKED_EQ": given & value == wanted,
        "SCMP_CMP_GT": given > value,
        "SCMP_CMP_NE": given != value,
    }[comparison["op"]]


def answer(name: str, arguments: tuple[int, ...]) -> int:
    """The errno that the profile gives a call, 0 where it passes."""
    found = {
        rule["errnoRet"]
        for rule in json.loads(profile(MACHINE))["syscalls"]
        if name in rule["names"] and all(holds(one, arguments) for one in rule["args"])
    }
    return min(found, default=0)


def run(program: bytes, name: str, arguments: tuple[int, ...]) -> int:
    """Run the kernel's filter on a call: its errno, 0 where it passes."""
    architecture, numbers = TABLES[MACHINE]
    data = numbers[name].to_bytes(4, "little") + architecture.to_bytes(4, "little") + bytes(8)
    data += b"".join(one.to_bytes(8, "little") for one in arguments)
    accumulator, at = 0, 0
    while True:
        code, yes, no, k = (int.from_bytes(program[at * 8 + i : at * 8 + j], "little") for i, j in SPLIT)
        at += 1
        if code == 0x06:
            return 0 if k == ALLOW else k & 0xFFFF
        if code == 0x20:
            accumulator = int.from_bytes(data[k : k + 4], "little")
        elif code == 0x54:
            accumulator &= k
        elif code == 0x05:
            at += k
        else:
            met = {0x15: accumulator == k, 0x25: accumulator > k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}
            at += yes if met[code] else no


SPLIT = ((0, 2), (2, 3), (3, 4), (4, 8))


def interesting(chance: random.Random) -> int:
    """A number as calls have them, or as somebody would try."""
    low = chance.choice([*range(50), 262, 132, 0x8931, 0x5412, 0x541C, 1 << chance.randrange(32), 0xFFFFFFFF])
    return low | chance.choice([0, 0, 0, 1 << 32, 1 << 63])


CALLS = (
    *("socket", "socketpair", "setsockopt", "sendto", "sendmsg", "sendmmsg", "ioctl", "umount2", "open_tree"),
    *("fsmount", "unshare", "clone", "prlimit64", "seccomp", "setns", "io_uring_setup", "clone3", "bpf", "keyctl"),
)


@pytest.mark.parametrize("name", CALLS)
def test_both_filters_give_the_same_answers(name: str) -> None:
    """For what calls look like and for what somebody would try: what `netns` refuses a container is refused (HLD-13).

    Numbers with something in the half that the kernel does not read may be refused by the one and not by the other.
    """
    chance = random.Random(name)
    program = seccomp.program(seccomp.NETNS, MACHINE)
    for _ in range(1500):
        arguments = tuple(interesting(chance) for _ in range(6))
        kernel, engine = run(program, name, arguments), answer(name, arguments)
        if kernel:
            assert engine, (name, arguments)
        if all(one < 1 << 32 for one in arguments):
            assert bool(kernel) == bool(engine), (name, arguments, kernel, engine)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((2, 1, 0), 0),
        ((10, 2, 17), 0),
        ((1, 5, 0), 0),
        ((16, 3, 0), 0),
        ((40, 1, 0), 97),
        ((2, 1, 262), 93),
        ((2, 3, 1), 1),
    ],
)
def test_a_socket_gets_the_errno_of_netns(arguments: tuple[int, int, int], code: int) -> None:
    """TCP, UDP, unix streams and route netlink pass; vsock, MPTCP and raw sockets fail as in `netns` (HLD-13)."""
    whole = (*arguments, 0, 0, 0)
    assert answer("socket", whole) == code
    assert run(seccomp.program(seccomp.NETNS, MACHINE), "socket", whole) == code


def test_only_this_machines_calls_are_known() -> None:
    """One architecture: calls of another ABI do not get past the filter (HLD-13)."""
    found = json.loads(profile("aarch64"))
    assert found["architectures"] == ["SCMP_ARCH_AARCH64"]
    assert WATCHED[0] not in str(found)


def test_a_container_with_a_starter_may_have_one_listener() -> None:
    """All else is the same; the starter's own filter then refuses another listener, and hands calls on (HLD-14)."""
    whole, starts = (json.loads(profile(MACHINE, starts=one))["syscalls"] for one in (False, True))
    assert [rule["names"] for rule in whole if rule not in starts] == [["seccomp"]]
    assert [rule for rule in starts if rule not in whole] == []
    own = seccomp.watched(MACHINE)
    assert run(own, "seccomp", (1, 8, 0, 0, 0, 0)) == run(own, "seccomp", (1, 0x28, 0, 0, 0, 0)) == 16
    assert run(own, "seccomp", (1, 1, 0, 0, 0, 0)) == run(own, "socket", (1, 1, 0, 0, 0, 0)) == 0
    assert run(own, "connect", (3, 0, 0, 0, 0, 0)) == run(own, "listen", (3, 0, 0, 0, 0, 0)) == NOTIFY & 0xFFFF
    assert NOTIFY.to_bytes(4, "little") in own
