"""tidegate.holds.namespaces: descriptors that lead into the network of a process, after it has ended, too."""

from __future__ import annotations

import os

import pytest

from tests.unit.holds.apart import apart
from tidegate.holds.namespaces import close_namespaces, open_network


def test_a_child_comes_into_the_network_of_a_process_that_has_ended() -> None:
    """HLD-4, HLD-7: through its user namespace, by whoever made that one; the descriptors are let go of."""
    code = """
    from tidegate.holds import namespaces
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNET)
        os.write(ready[1], os.readlink('/proc/self/ns/net').encode())
        os.read(go[0], 1)
        os._exit(0)
    there = os.read(ready[0], 100).decode()
    found = namespaces.open_network(child, through_user=True)
    os.write(go[1], b'.')
    os.waitpid(child, 0)
    child = os.fork()
    if child == 0:
        namespaces.go_into(found)
        held = any(os.path.exists('/proc/self/fd/%d' % descriptor) for descriptor, _ in found)
        print(os.readlink('/proc/self/ns/net') == there, held, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print(os.readlink('/proc/self/ns/net') == there)
    """
    assert apart(code) == "True False\nFalse\n"


def test_a_process_that_is_not_there_leaves_nothing_open() -> None:
    """The neighbour of the one above: an error of the kernel's, and one's own network as ever."""
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        open_network(2**22 + 1, through_user=True)
    own = open_network(os.getpid(), through_user=False)
    assert os.path.samestat(os.fstat(own[0][0]), os.stat("/proc/self/ns/net"))
    close_namespaces(own)
    assert len(os.listdir("/proc/self/fd")) == before
