"""A network namespace with the table of the hold `uid`, and processes of its users: for root's tests of the fence."""

from __future__ import annotations

import os

import pytest

from tests.unit.holds.apart import apart

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="the hold uid is root's: nftables and other users' processes")

PRELUDE = """
    import encodings.idna, socket, tempfile
    from tidegate.holds import network, uid_claims, uid_fence, uid_routes, uid_table, uid_watch
    from tidegate.holds.uid_table import Ports, elements
    linux.unshare(linux.CLONE_NEWNET)
    network.raise_loopback()
    uid_claims.FOLDER = tempfile.mkdtemp(prefix='tidegate-uid-', dir='/run')
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
    def remove():
        import shutil
        shutil.rmtree(uid_claims.FOLDER, ignore_errors=True)
    import atexit
    atexit.register(remove)
"""


def fenced(code: str, *arguments: str, patience: int = 60) -> str:
    """What the code prints, run by root in such a namespace; the table is loaded, the routes are not."""
    from textwrap import dedent

    body = dedent(PRELUDE) + "uid_fence.ensure()\n" + dedent(code) + "\nremove()\n"
    return apart(body, *arguments, patience=patience)
