"""The calls that the hold `uid` refuses beside those of every hold."""

from __future__ import annotations

import pytest

from tests.unit.holds.apart import apart
from tidegate.holds import uid_filter
from tidegate.holds.syscalls import TABLES

CODE = """
    import tempfile
    from tidegate.holds import capabilities, seccomp, uid_filter
    folder = tempfile.mkdtemp(dir='/var/tmp')
    os.chdir(folder)
    open('a', 'w').close()
    capabilities.no_new_privileges()
    seccomp.install(uid_filter.program())
    descriptor = os.open('a', os.O_RDWR)
    def make(name, mode):
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, mode))
    print(attempt(os.chmod, 'a', 0o4755), attempt(os.chmod, 'a', 0o2755), attempt(os.fchmod, descriptor, 0o6755),
          attempt(make, 'b', 0o4755), attempt(os.mknod, 'c', 0o102644), os.path.exists('b'))
    print(attempt(os.chmod, 'a', 0o1755), attempt(make, 'd', 0o755), attempt(os.mknod, 'e', 0o100644),
          attempt(os.open, 'a', os.O_RDONLY, 0o6777))
    print(attempt(os.setxattr, 'a', 'user.x', b'1'), attempt(linux.call, 'openat2', -100, b'a\\0', bytes(24), 24))
    import shutil
    shutil.rmtree(folder)
"""


def test_no_file_gets_a_set_id_bit_or_an_attribute() -> None:
    """By chmod, while it is made, or by a call that hides its mode; other modes are fine (HLD-13)."""
    assert apart(CODE).splitlines() == [
        "EPERM EPERM EPERM EPERM EPERM False", "done done done done", "ENOTSUP ENOSYS",
    ]  # fmt: skip


def test_no_socket_option_leads_around_the_table() -> None:
    """No interface, no route, and no group that the kernel would tell the network of; others can be set (HLD-3)."""
    code = """
    import socket
    from tidegate.holds import capabilities, outward, seccomp, uid_filter
    capabilities.no_new_privileges()
    seccomp.install(uid_filter.program())
    def attempts(level, option):
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as wire:
            return attempt(wire.setsockopt, level, option, bytes(136))
    print({attempts(level, option) for level, options in outward.OPTIONS.items() for option in options})
    with socket.socket() as wire:
        print(attempt(wire.setsockopt, 1, 2, 1), attempt(wire.setsockopt, 0, 1, 16), attempt(wire.setsockopt, 6, 1, 1))
    """
    assert apart(code) == "{'EPERM'}\ndone done done\n"


@pytest.mark.parametrize("machine", TABLES)
def test_there_is_one_for_each_machine(machine: str) -> None:
    """It is a whole number of instructions, and every call that sets a mode there is in it."""
    assert uid_filter.program(machine)
    assert len(uid_filter.program(machine)) % 8 == 0
    numbers = TABLES[machine][1]
    assert {"fchmod", "fchmodat", "fchmodat2", "openat", "mknodat", *uid_filter.REFUSED} <= set(numbers)
