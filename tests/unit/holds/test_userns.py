"""Who the task is inside."""

from __future__ import annotations

import pytest

from tests.unit.holds.apart import apart
from tidegate.holds import linux, userns


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ("         0          0 4294967295\n", "0 0 4294967295\n"),
        ("0 100000 65536\n", "0 0 65536\n"),
        ("0 1000 1\n1 100000 65536\n", "0 0 1\n1 1 65536\n"),
    ],
)
def test_every_id_keeps_its_name(outer: str, inner: str) -> None:
    """The map for root holds exactly the ids that exist here, each as itself, also inside a container (HLD-1)."""
    assert userns.identity_map(outer) == inner


@pytest.mark.parametrize(
    ("uid", "capabilities", "may"),
    [
        ("0\t0\t0\t0", "000001ffffffffff", True),
        ("0\t0\t0\t0", "00000000800000c0", True),
        ("0\t0\t0\t0", "0000000080000040", False),
        ("0\t0\t0\t0", "00000000000000c0", False),
        ("1000\t1000\t1000\t1000", "000001ffffffffff", False),
        ("1000\t0\t1000\t1000", "000001ffffffffff", True),
        ("0\t0\t0\t0", "0000000000000000", False),
    ],
)
def test_who_may_map_everything(uid: str, capabilities: str, may: bool) -> None:
    """Root with CAP_SETUID, CAP_SETGID and CAP_SETFCAP; one missing and root is mapped alone (HLD-1)."""
    assert userns.may_map_all(f"Name:\tx\nUid:\t{uid}\nCapEff:\t{capabilities}\n") is may


def test_which_namespaces() -> None:
    """`open` keeps the machine's network; all else is new (HLD-1, HLD-5)."""
    assert userns.namespaces(network=True) & ~userns.namespaces(network=False) == linux.CLONE_NEWNET
    for flag in (linux.CLONE_NEWUSER, linux.CLONE_NEWNS, linux.CLONE_NEWPID, linux.CLONE_NEWIPC):
        assert userns.namespaces(network=False) & flag


def test_maps_written_from_outside_are_identities() -> None:
    """The same uid and gid, and the same supplementary rights: none more (HLD-1)."""
    code = """
    import time
    reading, writing = os.pipe()
    back, forth = os.pipe()
    before = os.getuid(), os.getgid()
    child = os.fork()
    if child == 0:
        linux.unshare(linux.CLONE_NEWUSER)
        os.write(writing, b'x')
        os.read(back, 1)
        print((os.getuid(), os.getgid()) == before, open('/proc/self/setgroups').read().strip())
        sys.stdout.flush()
        os._exit(0)
    os.read(reading, 1)
    userns.write_maps(child)
    os.write(forth, b'x')
    os.waitpid(child, 0)
    print(userns.may_map_all(open('/proc/self/status').read()))
    """
    same, setgroups, everything = apart(code).split()
    assert same == "True"
    assert setgroups == ("allow" if everything == "True" else "deny")
