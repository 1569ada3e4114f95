"""For root's tests of the hold `uid`: a machine whose network, table, processes and claims are nobody else's.

A uid is given to nobody while *any* process of the machine has it (uid_remains.py). Tests that run at the same time and
use the same few uids would take them from one another.
"""

from __future__ import annotations

import os

import pytest

from tests.unit.holds.apart import apart

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="the hold uid is root's: nftables and other users' processes")

PRELUDE = """
    import encodings.idna, socket, tempfile
    from tidegate.holds import capabilities, network, uid_claims, uid_fence, uid_routes, uid_table, uid_watch
    from tidegate.holds.uid_table import Ports, elements
    linux.unshare(linux.CLONE_NEWNET | linux.CLONE_NEWNS | linux.CLONE_NEWPID)
    first = os.fork()
    if first:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 0xFF)
    capabilities.die_with_parent()
    mounts.set_attributes('/', 0, recursive=True, propagation=linux.MS_PRIVATE)
    for kind, place in (('proc', '/proc'), ('tmpfs', '/run')):
        mounts.attach(mounts.new_file_system(kind), place)
    network.raise_loopback()
    def server(address='127.0.0.1', port=0):
        made = socket.create_server((address, port), family=10 if ':' in address else 2)
        return made, made.getsockname()[1]
    def as_user(uid, act, *arguments):
        # What `act` returns when a process of this user does it, or the name of the errno.
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            try:
                said = str(act(*arguments))
            except TimeoutError:
                said = 'silence'
            except OSError as error:
                said = errno.errorcode[error.errno]
            os.write(writing, said.encode())
            os._exit(0)
        os.close(writing)
        with open(reading) as file:
            said = file.read()
        os.waitpid(child, 0)
        return said
    def connect(address, port):
        with socket.create_connection((address, port), 5) as wire:
            return '%s %d' % wire.getpeername()[:2]
    def datagram(address, port):
        with socket.socket(10 if ':' in address else 2, 2) as wire:
            wire.settimeout(2)
            wire.connect((address, port))
            wire.send(b'x')
            return wire.recv(9)
"""


def fenced(code: str, *arguments: str, patience: int = 180) -> str:
    """What the code prints, run by root in such a namespace; the table is loaded, the routes are not."""
    from textwrap import dedent

    body = dedent(PRELUDE) + "uid_fence.ensure()\n" + dedent(code)
    return apart(body, *arguments, patience=patience)
