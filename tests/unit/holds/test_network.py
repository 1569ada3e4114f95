"""The task's loopback and its listener."""

from __future__ import annotations

from tests.unit.holds.apart import apart


def test_loopback_comes_up_and_twice_is_fine() -> None:
    """A new loopback is raised; one that is up, and has its address, is a success (B92)."""
    code = """
    from tidegate.holds import network
    import _socket
    inside(linux.CLONE_NEWNET)
    def connect(family, address):
        with_it = _socket.socket(family, _socket.SOCK_DGRAM)
        with_it.connect((address, 9))
    print(attempt(connect, 2, '127.0.0.1'))
    network.raise_loopback()
    network.raise_loopback()
    network.give_address()
    network.give_address()
    print(attempt(connect, 2, '127.0.0.1'), attempt(connect, 2, '127.9.9.9'), attempt(connect, 2, '1.2.3.4'))
    """
    assert apart(code) == "ENETUNREACH\ndone done ENETUNREACH\n"


def test_the_listener_is_on_loopback_only_and_not_inherited() -> None:
    """It listens on 127.0.0.1 and that port, queues many, and is closed at exec; a taken port is an error (HLD-1)."""
    code = """
    from tidegate.holds import network
    import _socket
    inside(linux.CLONE_NEWNET)
    network.raise_loopback()
    listener = network.listen(3128)
    wire = _socket.socket(fileno=listener)
    print(wire.getsockname(), os.get_inheritable(listener), attempt(network.listen, 3128))
    """
    assert apart(code) == "('127.0.0.1', 3128) False EADDRINUSE\n"


def test_without_the_right_it_fails() -> None:
    """Raising the loopback of a namespace that is not ours is refused, and told (HLD-7)."""
    code = """
    from tidegate.holds import network
    inside(linux.CLONE_NEWNET)
    linux.unshare(linux.CLONE_NEWUSER)
    print(attempt(network.raise_loopback))
    """
    assert apart(code) == "EPERM\n"


def test_moulds_are_unbound_sockets_of_this_network() -> None:
    """HLD-10: two of each family, not inherited, bound to nothing."""
    code = """
    from tidegate.holds import network
    import _socket
    for one in network.moulds():
        wire = _socket.socket(fileno=one)
        print(wire.family, wire.type, wire.getsockname()[1], os.get_inheritable(one))
    """
    expected = "2 1 0 False\n" * 2 + "10 1 0 False\n" * 2
    assert apart(code) in (expected, expected[: len(expected) // 2 - 2])
