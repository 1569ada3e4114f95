"""The lab does what the tests believe of it."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.api import Lab


def test_a_name_resolves_through_the_script(lab: Lab) -> None:
    """A look-up asks the lab's server once per type, and the server counts."""
    lab.dns.set("a.test", A=["1.2.3.4"], AAAA=["2600:beef::1"])
    found = {item[4][0] for item in socket.getaddrinfo("a.test.", 80, type=socket.SOCK_STREAM)}  # noqa: TID251 - the resolver is under test
    assert "1.2.3.4" in found
    assert lab.dns.count("a.test") == 1


def test_an_unknown_name_is_nxdomain(lab: Lab) -> None:
    """Nothing outside the script resolves, so no test can lean on the real network."""
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("pypi.org.", 443)  # noqa: TID251 - the resolver is under test
    assert lab.dns.count("pypi.org") == 1


def test_a_sequence_answers_step_by_step(lab: Lab) -> None:
    """The second look-up sees the second step: what rebinding tests need."""
    lab.dns.set("a.test", sequence=[{"A": ["1.2.3.4"]}, {"A": ["127.0.0.1"]}])
    seen = [socket.gethostbyname("a.test.") for _ in range(3)]
    assert seen == ["1.2.3.4", "127.0.0.1", "127.0.0.1"]


@pytest.mark.parametrize("address", ["1.2.3.4", "10.9.8.7", "169.254.169.254", "2600:beef::1", "64:ff9b::102:304"])
def test_an_origin_answers_at_addresses_the_machine_does_not_own(lab: Lab, address: str) -> None:
    """The echo origin returns the request byte for byte, whole or a byte at a time."""
    if ":" in address and not lab.ipv6:
        pytest.skip("this kernel has no IPv6")
    origin = lab.origin("echo", address, 80)
    request = b"GET /x HTTP/1.0\r\nA: b\r\n\r\n"
    for by_byte in (False, True):
        assert lab.raw((address, 80), request, by_byte=by_byte).endswith(b"\r\n\r\n" + request)
    assert origin.connections == 2
    assert origin.heads == [request, request]


def test_closed_silent_and_unreachable_are_three_cases(lab: Lab) -> None:
    """A closed port refuses, the black hole says nothing, and a route to nowhere fails at once."""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("1.2.3.4", 81), timeout=5)
    with pytest.raises(TimeoutError):
        socket.create_connection((lab.BLACK_HOLE4, 80), timeout=0.3)
    with pytest.raises(OSError, match=r"unreachable|No route"):
        socket.create_connection((lab.UNREACHABLE4, 80), timeout=5)
    if lab.ipv6:
        with pytest.raises(TimeoutError):
            socket.create_connection((lab.BLACK_HOLE6, 80), timeout=0.3)
        with pytest.raises(OSError, match=r"unreachable|No route"):
            socket.create_connection((lab.UNREACHABLE6, 80), timeout=5)


def test_tls_origins_verify_against_the_labs_authority(lab: Lab) -> None:
    """The chosen certificate verifies for its name and the server name is on record."""
    origin = lab.origin("http", "1.2.3.4", 443, tls="a.test")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(lab.ca_file)
    with socket.create_connection(("1.2.3.4", 443), timeout=5) as sock:
        inner = context.wrap_socket(sock, server_hostname="a.test")
        inner.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert inner.recv(100).startswith(b"HTTP/1.1 200 OK")
        inner.close()
    assert origin.sni == ["a.test"]


def test_canaries_hear(lab: Lab) -> None:
    """A canary on the machine's loopback and the metadata canary record what reaches them, TCP and UDP."""
    ours, udp = lab.canary(), lab.canary(udp=True)
    assert lab.metadata.connections == 0
    lab.raw(("127.0.0.1", ours.port), b"hello", shut=True)
    lab.raw((lab.METADATA, 80), b"meta", shut=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"ping", ("127.0.0.1", udp.port))
    ours.wait(lambda origin: origin.received == b"hello")
    udp.wait(lambda origin: origin.received == b"ping")
    assert lab.metadata.received == b"meta"


def test_upstream_proxies_reach_origins_by_name(lab: Lab) -> None:
    """CONNECT through the HTTP proxy with a password, absolute-form, and SOCKS5 all reach the origin."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80, body="found")
    proxy = lab.http_proxy(user="u", password="p")
    where = (proxy.address, proxy.port)
    assert b" 407 " in lab.raw(where, b"CONNECT a.test:80 HTTP/1.1\r\n\r\n")
    auth = b"Proxy-Authorization: Basic dTpw\r\n\r\n"
    inside = b"GET / HTTP/1.0\r\n\r\n"
    assert lab.raw(where, b"CONNECT a.test:80 HTTP/1.1\r\n" + auth + inside, shut=True).endswith(b"found")
    assert lab.raw(where, b"GET http://a.test/ HTTP/1.0\r\n" + auth, shut=True).endswith(b"found")
    socks = lab.socks5_proxy()
    hello = b"\x05\x01\x00" + b"\x05\x01\x00\x03\x06a.test\x00\x50" + inside
    assert lab.raw((socks.address, socks.port), hello, shut=True).endswith(b"found")
    assert socks.heads == [b"a.test:80"]
    assert lab.dns.queries == []


@pytest.mark.parametrize(
    ("kind", "sent", "expected"),
    [
        ("half-close", b"12345", b"got 5 bytes\n"),
        ("half-close-first", b"", b"bye\n"),
        ("raw", b"abc", b"abc"),
        ("banner", b"abc", b"SSH-2.0-lab\r\nabc"),
        ("reset", b"x", b""),
        ("early", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n", b"HTTP/1.1 413 Content Too Large\r\n"),
        ("counting", b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"),
        ("stream", b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"),
        ("sink", b"PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", b"HTTP/1.1 200 OK\r\n"),
    ],
)
def test_each_habit(lab: Lab, kind: str, sent: bytes, expected: bytes) -> None:
    """Each kind of origin does what its docstring says, in its first bytes."""
    lab.origin(kind, "1.2.3.5", 8080)
    assert lab.raw(("1.2.3.5", 8080), sent, shut=True)[: len(expected)] == expected


def test_a_script_plays_and_a_test_can_serve_by_itself(lab: Lab) -> None:
    """Steps are played in order; a listener of the internet can be served by the test's own code."""
    lab.origin("script", "1.2.3.5", 8080, steps=[["head"], ["send", "\xff\x00"], ["shut"], ["drain"]])
    assert lab.raw(("1.2.3.5", 8080), b"GET / HTTP/1.0\r\n\r\n", shut=True) == b"\xff\x00"
    with lab.listener("1.2.3.6", 99) as listener, socket.create_connection(("1.2.3.6", 99)) as client:
        peer, _ = listener.accept()
        with peer:
            peer.sendall(b"mine")
        assert client.recv(10) == b"mine"


def test_an_ordinary_user_runs_python_from_the_environment(lab: Lab) -> None:
    """A command run by as_user has no root id, no capabilities, and a home it can write."""
    program = (
        "import os; open(os.path.expanduser('~/x'), 'w'); print(os.getuid());"
        "print([l for l in open('/proc/self/status') if l.startswith('CapEff')][0])"
    )
    argv = lab.as_user([sys.executable, "-c", program])
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30)
    uid, capabilities = done.stdout.split(maxsplit=1)
    assert int(uid) == (12345 if os.geteuid() == 0 else os.geteuid())
    assert int(capabilities.split()[1], 16) == 0


def test_the_machine_can_change_and_is_put_back(lab: Lab) -> None:
    """More addresses of its own, a search list and more lines in /etc/hosts last until the test ends."""
    addresses = ["1.2.3.66", "2600:beef::66"] if lab.ipv6 else ["1.2.3.66"]
    for address in addresses:
        lab.origin("banner", address, 99, text="theirs")
        assert lab.raw((address, 99), b"", until=b"theirs") == b"theirs"
        lab.own_address(address)
        with pytest.raises(ConnectionRefusedError):
            lab.raw((address, 99), b"")
    lab.dns.set("a.corp.test", A=["1.2.3.4"])
    lab.etc("resolv.conf", "nameserver 10.77.0.1\nsearch corp.test\n")
    lab.etc("hosts", "1.2.3.7 b.test\n")
    assert socket.gethostbyname("a") == "1.2.3.4"
    assert socket.gethostbyname("b.test") == "1.2.3.7"
    lab.clear()
    with pytest.raises(socket.gaierror):
        socket.gethostbyname("a")
    assert socket.gethostbyname("in-hosts.test") == "1.2.3.200"
    lab.origin("banner", addresses[0], 99, text="theirs")
    assert lab.raw((addresses[0], 99), b"", until=b"theirs") == b"theirs"


def test_a_file_without_permissions_is_unreadable_for_a_user(isolated: None, tmp_path: Path) -> None:  # noqa: ARG001
    """The user namespace of an ordinary user's tests does not make that user a root of files."""
    path = tmp_path / "closed"
    path.write_text("x")
    path.chmod(0)
    assert os.access(path, os.R_OK) == (os.geteuid() == 0)
