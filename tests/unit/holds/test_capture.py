"""The sockets of capture: what is made, where it listens, and what `ports` does without netfilter."""

from __future__ import annotations

from tests.unit.holds.apart import apart
from tidegate.holds import capture

MADE = """
    import socket
    from tidegate.holds import capture, inside as addresses, network
    inside(linux.CLONE_NEWNET)
    network.raise_loopback()
    proxy = network.listen(3128)
    def made(*arguments, **more):
        return [(role, socket.socket(fileno=fd)) if role != addresses.TURNED_AWAY else (role, fd)
                for role, fd in capture.capture(*arguments, **more)]
    def reach(address, port):
        return socket.create_connection((address, port), 5)
"""


def test_what_is_made_by_netfilter() -> None:
    """HLD-6: a listener and a resolver for each family beside the proxy's own port, and the log; closed at exec."""
    code = (
        MADE
        + """
    for role, wire in made('on', 3128):
        fd = wire if isinstance(wire, int) else wire.fileno()
        print(role, *(wire.getsockname()[:2] if fd is not wire else ()), os.get_inheritable(fd))
    """
    )
    assert apart(code).splitlines() == [
        "redirected 198.18.0.2 3128 False",
        "redirected fd74:6467:6174:6500::2 3128 False",
        "datagrams 198.18.0.2 53 False",
        "streams 198.18.0.2 53 False",
        "datagrams fd74:6467:6174:6500::2 53 False",
        "streams fd74:6467:6174:6500::2 53 False",
        "turned-away False",
    ]


def test_without_a_resolv_conf_loopback_is_asked() -> None:
    """B88: a C library that finds no resolv.conf asks 127.0.0.1, and is answered there, too."""
    code = (
        MADE
        + """
    print(*(wire.getsockname()[0] for role, wire in made('on', 3128, loopback=True) if role == addresses.DATAGRAMS))
    """
    )
    assert apart(code) == "198.18.0.2 fd74:6467:6174:6500::2 127.0.0.1 ::1\n"


def test_no_port_is_taken_from_the_tasks_servers() -> None:
    """The neighbour of `ports`: with netfilter a task may listen on any port but the proxy's, on every address."""
    code = (
        MADE
        + """
    kept = made('on', 3128)
    for port in (443, 3129, 5432, 8080):
        for family, address in ((2, '0.0.0.0'), (10, '::')):
            socket.create_server((address, port), family=family).close()
    print('all')
    """
    )
    assert apart(code) == "all\n"


def test_ports_need_no_netfilter() -> None:
    """HLD-7: --capture ports: the common ports and the policy's, of any address, both families; the rest refuses."""
    code = (
        MADE
        + """
    listeners = {wire.getsockname()[1]: wire for role, wire in made('ports', 3128, (8443, 53, 3128, 443))
                 if role == addresses.ADDRESSED}
    print(set(listeners) == {*capture.COMMON_PORTS, 8443})
    for address in ('1.2.3.4', '169.254.169.254', '2600:beef::1'):
        for port in (22, 443, 8443):
            with reach(address, port):
                wire, _ = listeners[port].accept()
                assert wire.getsockname()[0].removeprefix('::ffff:') == address and wire.getsockname()[1] == port
        print(attempt(reach, address, 81))
    wire = socket.socket(2, 2)
    wire.connect(('1.2.3.4', 443))
    wire.settimeout(5)
    print(attempt(wire.send, b'x'), attempt(wire.recv, 1))
    """
    )
    assert apart(code).splitlines() == ["True", *["ECONNREFUSED"] * 3, "done ECONNREFUSED"]


def test_without_ipv6_ipv4_is_captured_all_the_same() -> None:
    """HLD-6: where IPv6 is switched off there are sockets of IPv4 alone, in both modes."""
    code = (
        MADE
        + """
    for name in ('all', 'lo'):
        with open(f'/proc/sys/net/ipv6/conf/{name}/disable_ipv6', 'w') as file:
            file.write('1')
    mode = sys.argv[1]
    families = {wire.family.name for role, wire in made(mode, 3128) if role != addresses.TURNED_AWAY}
    print(families, attempt(reach, '2600:beef::1', 80))
    """
    )
    for mode in ("on", "ports"):
        assert apart(code, mode).split()[0] == "{'AF_INET'}"
        assert apart(code, mode).split()[1] in ("ENETUNREACH", "EADDRNOTAVAIL")


def test_there_is_a_bound_on_ports() -> None:
    """One message carries 253 descriptors: more ports than that are refused before anything is made."""
    assert not capture.too_many(range(1000, 1000 + capture.MOST_PORTS - len(capture.COMMON_PORTS)))
    assert capture.too_many(range(1000, 1001 + capture.MOST_PORTS - len(capture.COMMON_PORTS)))
    assert not capture.too_many((443,) * 1000)


def test_ports_that_the_gate_has_inside() -> None:
    """HLD-10: what cannot be published because the task cannot listen there; `on` takes the proxy's port only."""
    assert capture.taken("on", 3128, (8000,)) == {3128}
    assert capture.taken("off", 3128) == {3128}
    assert capture.taken("ports", 3128, (8000,)) == {3128, 8000, *capture.COMMON_PORTS}
