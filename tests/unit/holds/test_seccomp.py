"""The filters, read by an interpreter: every machine and kind, with neighbours of every rule."""

from __future__ import annotations

import errno
import os
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.holds.apart import apart
from tests.unit.holds.interpreter import run
from tidegate.holds import bpf, outward, seccomp
from tidegate.holds.syscalls import TABLES

KINDS = (seccomp.NETNS, seccomp.OFFLINE, seccomp.OPEN)
MACHINES = tuple(TABLES)
PROGRAMS = {(kind, machine): seccomp.program(kind, machine) for kind in KINDS for machine in MACHINES}
EVERY = pytest.mark.parametrize("machine", MACHINES)
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
WORD = st.integers(0, (1 << 64) - 1)


def ask(kind: str, machine: str, name: str, *arguments: int) -> int:
    """0 where the call is allowed, -1 where the watcher is asked, else its errno."""
    architecture, numbers = TABLES[machine]
    answer = run(PROGRAMS[kind, machine], numbers[name], architecture, arguments)
    if answer == bpf.ALLOW:
        return 0
    if answer == bpf.NOTIFY:
        return -1
    assert answer & 0xFFFF0000 == bpf.ERRNO, f"{answer:#x}"
    return answer & 0xFFFF


@EVERY
@EVERY_KIND
def test_another_architecture_is_killed(kind: str, machine: str) -> None:
    """32-bit calls, and those of any other machine, end the process whatever their number is (HLD-13, B86)."""
    for architecture in (0x40000003, 0x40000028, 0, 0xFFFFFFFF, TABLES[machine][0] ^ 1):
        for number in (0, 41, 102, 1 << 31):
            assert run(PROGRAMS[kind, machine], number, architecture) == bpf.KILL_PROCESS


@EVERY_KIND
def test_x32_calls_are_unknown(kind: str) -> None:
    """The x32 bit makes every number an unknown call; just below it there is none (HLD-13, B86)."""
    architecture = TABLES["x86_64"][0]
    for number in (0x40000000, 0x40000000 | 41, 0x40000000 | 512, 0xFFFFFFFF):
        assert run(PROGRAMS[kind, "x86_64"], number, architecture) == bpf.ERRNO | errno.ENOSYS
    assert run(PROGRAMS[kind, "x86_64"], 0x3FFFFFFF, architecture) == bpf.ALLOW


def expected_socket(family: int, kind: int, protocol: int) -> int:
    """HLD-13 in other words: the errno of socket() under netns."""
    kind &= 0xF
    if family == socket.AF_UNIX:
        return 0 if kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET) else errno.ESOCKTNOSUPPORT
    if family == 16:
        return 0 if protocol == 0 else errno.EPROTONOSUPPORT
    if family not in (socket.AF_INET, socket.AF_INET6):
        return errno.EAFNOSUPPORT
    if kind in (socket.SOCK_RAW, 10):
        return errno.EPERM
    return 0 if (kind, protocol) in ((1, 0), (1, 6), (2, 0), (2, 17)) else errno.EPROTONOSUPPORT


@EVERY
@given(
    st.one_of(st.integers(0, 50), st.integers(0, (1 << 32) - 1)),
    st.one_of(st.integers(0, 16), st.integers(0, (1 << 32) - 1)),
    st.one_of(st.integers(0, 300), st.integers(0, (1 << 32) - 1)),
    st.integers(0, (1 << 32) - 1),
)
def test_families_and_protocols_are_an_allow_list(
    machine: str, family: int, kind: int, protocol: int, junk: int
) -> None:
    """Whatever is not listed is refused, and bits that the kernel drops do not matter (HLD-13, B83, B86)."""
    high = junk << 32
    arguments = (family | high, kind | high, protocol | high)
    assert ask(seccomp.NETNS, machine, "socket", *arguments) == expected_socket(family, kind, protocol)
    assert ask(seccomp.OFFLINE, machine, "socket", *arguments) == (
        expected_socket(family, kind, protocol) if family == 1 else errno.EAFNOSUPPORT
    )
    assert ask(seccomp.OPEN, machine, "socket", *arguments) == 0


@EVERY
@pytest.mark.parametrize("flags", [0, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC])
def test_flags_of_a_type_are_no_type(machine: str, flags: int) -> None:
    """SOCK_CLOEXEC and SOCK_NONBLOCK beside a type change nothing (HLD-13)."""
    assert ask(seccomp.NETNS, machine, "socket", 2, 1 | flags, 0) == 0
    assert ask(seccomp.NETNS, machine, "socket", 2, 3 | flags, 0) == errno.EPERM


@EVERY
@EVERY_KIND
def test_socket_pairs(kind: str, machine: str) -> None:
    """Pairs are UNIX; `open` leaves families alone (HLD-13)."""
    assert ask(kind, machine, "socketpair", 1, 1, 0) == 0
    for type_ in (2, 2 | socket.SOCK_CLOEXEC, 3, 0, 4):
        assert ask(kind, machine, "socketpair", 1, type_, 0) == (0 if kind == "open" else errno.ESOCKTNOSUPPORT)
    for family in (0, 2, 16, 30, 40):
        assert ask(kind, machine, "socketpair", family, 1, 0) == (0 if kind == "open" else errno.EAFNOSUPPORT)


@EVERY
@EVERY_KIND
def test_the_watcher_is_asked_about_connections(kind: str, machine: str) -> None:
    """connect() and listen() go to the watcher whatever they say; `open` has none; accept and bind pass (HLD-14)."""
    for name in ("connect", "listen"):
        for words in ((3, 0, 16), (0, 0, 0), (1 << 63, 1, 1 << 40)):
            assert ask(kind, machine, name, *words) == (0 if kind == "open" else -1)


@EVERY
@EVERY_KIND
def test_nobody_inside_is_asked_in_its_place(kind: str, machine: str) -> None:
    """A filter with a listener is refused inside; one without is not: browsers have their own (HLD-14)."""
    for flags in (8, 8 | 0x20, 0xFFFFFFFF, 8 | 1 << 40):
        assert ask(kind, machine, "seccomp", 1, flags) == errno.EBUSY
    for flags in (0, 1, 2, 4, 0x10, 0x20, 0xFFFFFFF7):
        assert ask(kind, machine, "seccomp", 1, flags) == 0


@EVERY
@EVERY_KIND
def test_no_fast_open(kind: str, machine: str) -> None:
    """Data in a SYN is refused by option and by flag; other options and flags pass (HLD-13)."""
    for option, answer in ((22, 0), (23, errno.EOPNOTSUPP), (24, 0), (29, 0), (30, errno.EOPNOTSUPP), (31, 0)):
        assert ask(kind, machine, "setsockopt", 3, 6, option) == answer
        assert ask(kind, machine, "setsockopt", 3, 6 | 1 << 40, option | 1 << 40) == answer
        assert ask(kind, machine, "setsockopt", 3, 1, option) == 0
    for flags, answer in (
        (0x20000000, errno.EOPNOTSUPP),
        (0x20004000, errno.EOPNOTSUPP),
        (0x1FFFFFFF, 0),
        (1 << 61, 0),
    ):
        assert ask(kind, machine, "sendto", 3, 0, 0, flags) == answer
        assert ask(kind, machine, "sendmmsg", 3, 0, 0, flags) == answer
        assert ask(kind, machine, "sendmsg", 3, 0, flags) == answer


@EVERY
@EVERY_KIND
def test_requests_to_devices(kind: str, machine: str) -> None:
    """TIOCSTI, TIOCLINUX and snapshots are gone, also with the upper half set; their neighbours are not (HLD-13)."""
    for request in (0x5412, 0x541C, 0xFFFFFFFF00005412):
        assert ask(kind, machine, "ioctl", 0, request) == errno.EPERM
    for request in seccomp.SNAPSHOTS:
        assert ask(kind, machine, "ioctl", 0, request) == errno.EPERM
    for request in (0x5411, 0x50009400, 0x50009402, 0x5000940E, 0x4020BC0F, 0x5413, 0x541B, 0x541D, 0x5401):
        assert ask(kind, machine, "ioctl", 0, request) == 0


@EVERY
@EVERY_KIND
@settings(max_examples=40)
@given(WORD)
def test_mounts_stay_where_they_are(kind: str, machine: str, word: int) -> None:
    """No lazy unmount, no unknown flag, no control group namespace; the plain calls pass (HLD-13)."""
    low = word & 0xFFFFFFFF
    assert ask(kind, machine, "umount2", 0, word) == (errno.EPERM if low & 2 else 0)
    known = 0x80001 | 0x8000 | 0x1000 | 0x800 | 0x100
    assert ask(kind, machine, "open_tree", 0, 0, word) == (errno.EINVAL if low & ~known else 0)
    assert ask(kind, machine, "fsmount", 0, word) == (errno.EINVAL if low & ~1 else 0)
    assert ask(kind, machine, "clone", word) == (errno.EPERM if low & 0x02000000 else 0)


@EVERY
@EVERY_KIND
def test_namespaces_inside_stay_possible(kind: str, machine: str) -> None:
    """User, mount, PID, network, IPC, UTS and time namespaces pass, one by one and together (HLD-13)."""
    flags = (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x08000000, 0x04000000, 0x80, 0x400, 0x200, 0x40000)
    for flag in (*flags, sum(flags)):
        assert ask(kind, machine, "unshare", flag) == 0
        assert ask(kind, machine, "clone", flag | 17) == 0
    assert ask(kind, machine, "unshare", 0x02000000) == errno.EPERM
    for unknown in (0x00100000, 0x1000, 1 << 31, 1 << 37, 0x10000000 | 1 << 32):
        assert ask(kind, machine, "unshare", unknown) == errno.EINVAL


@EVERY
@EVERY_KIND
@settings(max_examples=20)
@given(st.lists(WORD, min_size=6, max_size=6))
def test_refused_calls_are_refused_whatever_they_ask(kind: str, machine: str, words: list[int]) -> None:
    """io_uring, keys, bpf, modules, handles and the like never pass (HLD-13, B86)."""
    for name, answer in seccomp.REFUSED:
        assert ask(kind, machine, name, *words) == getattr(errno, answer)


@EVERY
@EVERY_KIND
def test_everything_else_passes(kind: str, machine: str) -> None:
    """A number that no rule names is allowed: the filter is for what leads around the hold, not for less (HLD-13)."""
    architecture, numbers = TABLES[machine]
    ruled = set(numbers.values())
    for number in range(600):
        if number not in ruled:
            assert run(PROGRAMS[kind, machine], number, architecture) == bpf.ALLOW


def test_the_kernel_takes_the_filters() -> None:
    """Every filter of this machine is loaded by the kernel, and answers as the interpreter does."""
    code = """
    from tidegate.holds import capabilities, seccomp
    import _socket
    capabilities.no_new_privileges()
    for kind in ('open', 'netns', 'offline'):
        seccomp.install(seccomp.program(kind))
        print(attempt(_socket.socket, 1), attempt(_socket.socket, 2), attempt(_socket.socket, 40))
        print(attempt(linux.call, 'bpf', 0), attempt(linux.call, 'fsmount', -1, 4))
    print(status('Seccomp'))
    """
    lines = apart(code).splitlines()
    assert lines[0].split()[:2] == ["done", "done"]
    assert lines[1::2] == ["EPERM EINVAL"] * 3 or lines[1:6:2] == ["EPERM EINVAL"] * 3
    assert lines[2] == "done done EAFNOSUPPORT"
    assert lines[4] == "done EAFNOSUPPORT EAFNOSUPPORT"
    assert lines[6] == "2"


LANDLOCK = {machine: seccomp.program(seccomp.LANDLOCK, machine) for machine in MACHINES}


def ask_landlock(machine: str, name: str, *arguments: int) -> int:
    """As `ask`, of the filter of the hold without namespaces."""
    architecture, numbers = TABLES[machine]
    answer = run(LANDLOCK[machine], numbers[name], architecture, arguments)
    return {bpf.ALLOW: 0, bpf.NOTIFY: -1}.get(answer, answer & 0xFFFF)


@EVERY
def test_without_namespaces_there_are_streams_and_nothing_else(machine: str) -> None:
    """TCP, unix streams and netlink to look; no datagrams, no other family or protocol (HLD-2, B83)."""
    for family in (socket.AF_INET, socket.AF_INET6):
        assert ask_landlock(machine, "socket", family, 1, 0) == ask_landlock(machine, "socket", family, 1, 6) == 0
        for kind, protocol in ((2, 0), (2, 17), (3, 1), (10, 0)):
            assert ask_landlock(machine, "socket", family, kind, protocol) == errno.EPERM
        assert ask_landlock(machine, "socket", family, 1, 262) == errno.EPROTONOSUPPORT
    assert ask_landlock(machine, "socket", 1, 1, 0) == ask_landlock(machine, "socket", 16, 3, 0) == 0
    assert ask_landlock(machine, "socket", 1, 2, 0) == errno.ESOCKTNOSUPPORT
    assert ask_landlock(machine, "socket", 40, 1, 0) == errno.EAFNOSUPPORT


@EVERY
def test_what_changes_files_and_names_is_handed_on(machine: str) -> None:
    """Every call by path, and opening where it is to write; reading is the kernel's alone (HLD-15)."""
    numbers = TABLES[machine][1]
    for name in seccomp.HANDED:
        assert name not in numbers or ask_landlock(machine, name, 1, 2, 3) == -1, name
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_TMPFILE, os.O_WRONLY | os.O_CLOEXEC):
        assert ask_landlock(machine, "openat", 0, 0, flags) == -1, oct(flags)
    for flags in (os.O_RDONLY, os.O_CLOEXEC | os.O_NONBLOCK, os.O_PATH | os.O_NOFOLLOW):
        assert ask_landlock(machine, "openat", 0, 0, flags) == 0, oct(flags)
    assert ask_landlock(machine, "openat2") == errno.ENOSYS


@EVERY
def test_nothing_of_other_processes_is_changed(machine: str) -> None:
    """Namespaces, shared memory of System V, and scheduling of others are refused; one's own is one's own (HLD-13)."""
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert ask_landlock(machine, "unshare", flag) == ask_landlock(machine, "clone", flag | 17) == errno.EPERM
    assert ask_landlock(machine, "unshare", 0x400) == ask_landlock(machine, "clone", 0x3D0F00) == 0
    for name in ("shmget", "semget", "msgget", "mq_open"):
        assert ask_landlock(machine, name) == errno.ENOSYS
    assert ask_landlock(machine, "setns") == errno.EPERM
    for name in ("sched_setaffinity", "sched_setscheduler", "sched_setattr"):
        assert (ask_landlock(machine, name, 0), ask_landlock(machine, name, 7)) == (0, errno.EPERM)
    assert (ask_landlock(machine, "setpriority", 0, 0), ask_landlock(machine, "setpriority", 0, 7)) == (0, errno.EPERM)
    assert ask_landlock(machine, "setpriority", 2, 0) == errno.EPERM
    assert ask_landlock(machine, "prlimit64", 0, 7, 1) == ask_landlock(machine, "prlimit64", 9, 7, 0) == 0
    assert ask_landlock(machine, "prlimit64", 9, 7, 1) == -1


@EVERY
def test_a_connection_takes_no_other_way(machine: str) -> None:
    """Options that name a way for packets, or that the kernel tells the network of, are refused; others not (HLD-2)."""
    for level, options in outward.OPTIONS.items():
        assert {ask_landlock(machine, "setsockopt", 3, level, option) for option in options} == {errno.EPERM}
    assert ask_landlock(machine, "setsockopt", 3, 1, 2) == 0
    assert ask_landlock(machine, "setsockopt", 3, 0, 4) == ask_landlock(machine, "setsockopt", 3, 41, 57) == errno.EPERM
    assert ask_landlock(machine, "setsockopt", 3, 0, 1) == ask_landlock(machine, "setsockopt", 3, 41, 26) == 0
    assert ask_landlock(machine, "setsockopt", 3, 6, 30) == errno.EOPNOTSUPP
    assert ask_landlock(machine, "setsockopt", 3, 6, 1) == 0
