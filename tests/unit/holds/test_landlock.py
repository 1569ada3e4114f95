"""Scoping of abstract sockets in the hold `open`."""

from __future__ import annotations

import pytest

from tests.unit.holds.apart import apart
from tidegate.holds import landlock


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
