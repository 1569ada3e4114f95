"""Every address is a place inside."""

from __future__ import annotations

from tests.unit.holds.apart import apart

LOOK = """
    from tidegate.holds import network, routes
    import _socket
    def source(address):
        wire = _socket.socket(10 if ':' in address else 2, _socket.SOCK_DGRAM)
        wire.connect((address, 9))
        return wire.getsockname()[0]
"""


def test_every_address_has_a_route_from_a_global_one() -> None:
    """From the task's own address, which is a global one, so AI_ADDRCONFIG finds both families (HLD-6)."""
    code = (
        LOOK
        + """
    inside(linux.CLONE_NEWNET)
    network.raise_loopback()
    print(routes.capture_everything())
    print(*(source(one) for one in ('1.2.3.4', '10.0.0.1', '169.254.169.254', '198.18.0.2', '127.0.0.1')))
    print(*(source(one) for one in ('2600:beef::1', 'fd00:ec2::254', '::1')))
    import socket
    found = socket.getaddrinfo('127.0.0.1', 80, flags=socket.AI_ADDRCONFIG)
    print(len(found) > 0, {one[4][0] for one in socket.getaddrinfo('::1', 80, flags=socket.AI_ADDRCONFIG)})
    """
    )
    assert apart(code).splitlines() == [
        "True",
        "198.18.0.1 198.18.0.1 198.18.0.1 198.18.0.1 127.0.0.1",
        "fd74:6467:6174:6500::1 fd74:6467:6174:6500::1 ::1",
        "True {'::1'}",
    ]


def test_without_ipv6_there_is_none_and_that_is_said() -> None:
    """Where IPv6 is switched off it stays so: no route, no address, and IPv4 is captured all the same (HLD-7)."""
    code = (
        LOOK
        + """
    inside(linux.CLONE_NEWNET)
    network.raise_loopback()
    for name in ('all', 'lo'):
        with open(f'/proc/sys/net/ipv6/conf/{name}/disable_ipv6', 'w') as file:
            file.write('1')
    print(routes.capture_everything(), source('1.2.3.4'), attempt(source, '2600:beef::1'))
    """
    )
    assert apart(code) in (
        "False 198.18.0.1 ENETUNREACH\n",
        "False 198.18.0.1 EADDRNOTAVAIL\n",
    )


def test_without_the_right_it_fails() -> None:
    """Routes of a namespace that is not ours are refused, and told (HLD-7)."""
    code = (
        LOOK
        + """
    inside(linux.CLONE_NEWNET)
    network.raise_loopback()
    linux.unshare(linux.CLONE_NEWUSER)
    print(attempt(routes.capture_everything))
    """
    )
    assert apart(code) == "EPERM\n"


def test_ipv6_is_found_again() -> None:
    """Whether a namespace was given its IPv6 address can be seen by who comes again (HLD-8)."""
    code = (
        LOOK
        + """
    inside(linux.CLONE_NEWNET)
    network.raise_loopback()
    before = routes.have_ipv6()
    print(before, routes.capture_everything() == routes.have_ipv6())
    """
    )
    assert apart(code) == "False True\n"
