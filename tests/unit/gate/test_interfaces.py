"""This machine's own addresses, kept fresh."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING

from tests.unit.gate.kit import wait
from tidegate.gate.interfaces import Interfaces, own_addresses
from tidegate.gate.reactor import Reactor
from tidegate.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]


def test_all_interfaces_are_listed(lab: Lab) -> None:
    """ADR-2: loopback and the link, both families."""
    own = own_addresses()
    assert socket.inet_aton("127.0.0.1") in own
    assert socket.inet_aton(lab.MACHINE4) in own
    if lab.ipv6:
        assert socket.inet_pton(socket.AF_INET6, lab.MACHINE6) in own
    assert socket.inet_aton("1.2.3.4") not in own


def test_the_same_object_while_nothing_changes(lab: Lab) -> None:
    """Whoever depends on it compares identities; a new address makes a new one."""
    reactor = Reactor(time.monotonic)
    watch = Interfaces(reactor, frozenset({4711}))
    first = watch.surroundings()
    assert watch.surroundings() is first
    assert first.protected_ports == {4711}
    assert os.uname().nodename.lower() in first.names
    assert socket.inet_aton("127.0.1.1") in first.own  # what the host name has in the hosts file
    lab.own_address("1.2.3.99")
    reactor.after(0.2, reactor.stop)
    reactor.run()
    assert socket.inet_aton("1.2.3.99") in watch.surroundings().own
    watch.close()
    reactor.close()


def test_an_address_that_becomes_ours_is_refused_at_once(lab: Lab, serve: Serve) -> None:
    """ADR-2: refreshed as they change, also for a destination that was admitted a moment ago."""
    lab.dns.set("a.test", A=["1.2.3.99"])
    lab.origin("banner", "1.2.3.99", 443)
    gate = serve("*")
    gate.tunnel("a.test:443").close()
    lab.own_address("1.2.3.99")

    def refused() -> bool:
        return b"own-address" in gate.raw(b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", timeout=1)

    wait(refused)
    # A tunnel that was let through before may end, and be recorded, behind it.
    assert Reason.OWN_ADDRESS in {event.reason for event in gate.recording.events}
