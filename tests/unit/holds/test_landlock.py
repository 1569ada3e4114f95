"""Scoping of abstract sockets in the hold `open`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.holds.apart import apart
from tidegate.holds import landlock

if TYPE_CHECKING:
    from pathlib import Path


def test_abstract_sockets_of_others_are_out_of_reach() -> None:
    """After it a foreign abstract name is refused, an own one is not, and paths are untouched (HLD-14, B85)."""
    if landlock.abi() < landlock.SCOPE_ABI:
        pytest.skip("this kernel has no scoping")
    code = """
    from tidegate.holds import capabilities, landlock
    import _socket
    def listen(name):
        wire = _socket.socket(1)
        wire.bind(name)
        wire.listen()
        return wire
    name = b'\\0landlock-%d' % os.getpid()
    before = listen(name)
    capabilities.no_new_privileges()
    print(landlock.close_abstract_sockets())
    after = listen(name + b'-own')
    print(attempt(_socket.socket(1).connect, name), attempt(_socket.socket(1).connect, name + b'-own'))
    open('/dev/null', 'w').close()
    """
    assert apart(code) == "True\nEPERM done\n"


def test_only_what_is_given_is_left(tmp_path: Path) -> None:
    """Files, one port to connect to and none to bind; what is no longer there, or is a link, is left out (HLD-2)."""
    if landlock.abi() < landlock.SCOPE_ABI:
        pytest.skip("this kernel has no scoping")
    code = """
    from tidegate.holds import capabilities, landlock
    import _socket
    base = sys.argv[1]
    for name in ('own', 'seen', 'hidden'):
        os.mkdir(f'{base}/{name}')
        with open(f'{base}/{name}/file', 'w') as file: file.write('x')
    os.symlink('hidden', f'{base}/way')
    server = _socket.socket(); server.bind(('127.0.0.1', 0)); server.listen()
    port = server.getsockname()[1]
    everything = landlock.READ | landlock.CHANGE
    given = [(f'{base}/own', everything), (f'{base}/seen', landlock.READ), (f'{base}/way', everything)]
    capabilities.no_new_privileges()
    parent = os.getppid()
    landlock.confine([*given, (f'{base}/gone', everything)], port)
    own, seen = f'{base}/own', f'{base}/seen/file'
    print(attempt(open, f'{own}/new', 'w'), attempt(open, seen), attempt(open, seen, 'a'))
    print(attempt(open, base + '/hidden/file'), attempt(os.listdir, base), end=' ')
    print(attempt(os.rename, own + '/file', own + '/x'))
    print(*(attempt(_socket.socket().connect, ('127.0.0.1', where)) for where in (port, 9)))
    print(attempt(_socket.socket().bind, ('127.0.0.1', 0)), *(attempt(os.kill, p, 0) for p in (parent, os.getpid())))
    """
    out = apart(code, str(tmp_path)).splitlines()
    assert out == ["done done EACCES", "EACCES EACCES done", "done EACCES", "EACCES EPERM done"]
