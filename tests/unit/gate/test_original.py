"""Proves the ways to find where a captured connection was going, with the kernel's own answers (HLD-6)."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.captive import CAPTURE, Captive
from tidegate.gate.original import ADDRESSED, CARRIED, REDIRECTED, addressed, finder, redirected
from tidegate.model.destination import Destination
from tidegate.model.host import Host

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.lab.api import Lab


def packed(text: str) -> bytes:
    """Return the bytes of an address."""
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


@pytest.fixture
def captive(lab: Lab) -> Iterator[Captive]:
    """A namespace that redirects, with nobody listening yet."""
    with Captive(ipv6=lab.ipv6) as made:
        yield made


@pytest.mark.parametrize("address", ["198.18.1.1", "1.2.3.4", "255.1.2.3", "2600:beef::1", "fd74:6467:6174:6500::101"])
@pytest.mark.parametrize("port", [1, 443, 65535])
def test_a_redirected_connection_remembers_its_destination(captive: Captive, address: str, port: int) -> None:
    """SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST, asked from outside the namespace."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with captive.socket(family, bind=("::1" if ":" in address else "127.0.0.1", CAPTURE)) as listener:
        client = captive.socket(family)
        client.connect((address, port))
        accepted, _ = listener.accept()
        with client, accepted:
            assert redirected(accepted) == (packed(address), port)  # type: ignore[arg-type]


def test_a_connection_to_the_listener_itself_says_so(captive: Captive) -> None:
    """A task that finds the port: the destination is its own loopback, which the policy then judges."""
    with captive.socket(bind=("127.0.0.1", CAPTURE)) as listener, captive.socket() as client:
        client.connect(("127.0.0.1", CAPTURE))
        with listener.accept()[0] as accepted:
            assert redirected(accepted) == (packed("127.0.0.1"), CAPTURE)  # type: ignore[arg-type]


def test_where_nothing_redirects_there_is_no_answer() -> None:
    """A Unix socket has no address: an error, never a guess."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for find in (redirected, addressed):
            with pytest.raises(OSError, match=r"."):
                find(ours)  # type: ignore[arg-type]


@pytest.mark.parametrize("address", ["198.18.1.1", "1.2.3.4", "2600:beef::1"])
def test_an_address_of_the_socket_itself(lab: Lab, address: str) -> None:
    """Every address is local: getsockname is the destination, also of a listener for both families."""
    with Captive(redirect=False, ipv6=lab.ipv6) as captive:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        wild = "::" if ":" in address else "0.0.0.0"
        with captive.socket(family, bind=(wild, 443)) as listener, captive.socket(family) as client:
            client.connect((address, 443))
            with listener.accept()[0] as accepted:
                assert addressed(accepted) == (packed(address), 443)  # type: ignore[arg-type]


def test_a_mapped_address_is_its_ipv4_address() -> None:
    """ADR-3: a listener for both families sees ::ffff:127.0.0.1."""
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), listener.accept()[0] as accepted:
            assert addressed(accepted) == (packed("127.0.0.1"), port)  # type: ignore[arg-type]


def test_a_listener_for_one_place() -> None:
    """HLD-10: whatever its own address is; and no other word is a way."""
    place = Destination(Host("localhost"), 5432)
    with socket.socket() as sock:
        assert finder(place)(sock) is place  # type: ignore[arg-type]
    assert finder(REDIRECTED) is redirected
    assert finder(ADDRESSED) is addressed
    with pytest.raises(ValueError, match="no way"):
        finder("guessed")


def test_a_relays_connection_says_where_it_was_going_by_its_name(tmp_path: Path) -> None:
    """HLD-4: the abstract name of the other end; one without such a name is an error, never a guess."""
    from tidegate.model.caught import name_of

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "caught.sock"))
        server.listen(4)
        for place in ((packed("1.2.3.4"), 443), (packed("2600:beef::1"), 65535)):
            with socket.socket(socket.AF_UNIX) as client:
                client.bind(name_of(*place, os.urandom(8)))
                client.connect(server.getsockname())
                with server.accept()[0] as accepted:
                    assert finder(CARRIED)(accepted) == place
        for name in (b"", b"\0another-%d" % os.getpid()):
            with socket.socket(socket.AF_UNIX) as client:
                if name:
                    client.bind(name)
                client.connect(server.getsockname())
                with server.accept()[0] as accepted, pytest.raises(OSError, match="no name"):
                    finder(CARRIED)(accepted)
