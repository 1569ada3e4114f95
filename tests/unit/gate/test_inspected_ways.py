"""Inspection whatever the way in and the way out: SOCKS, and proxies that see and play all they can."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.gate.inside import Inside, get, inside, read_all
from tests.unit.gate.kit import read_exactly
from tests.unit.gate.test_secrets_inside import BEARER, NONE, STANDS, TOKEN, VALUE
from tests.unit.gate.test_socks import HELLO, request
from tidegate.gate.upstream import Proxy, UpstreamConfig
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab, Origin

    Start = Callable[..., Inside]

__all__ = ["inside"]

WAYS = [
    ("connect", ""),
    ("socks", ""),
    ("connect", "http"),
    ("connect", "socks5h"),
    ("socks", "http"),
    ("socks", "socks5h"),
]


@pytest.fixture(autouse=True)
def _names(lab: Lab) -> None:
    lab.dns.set("a.test", A=["1.2.3.4"])


def begun(lab: Lab, inside: Start, out: str) -> tuple[Inside, Origin | None]:
    """A gate with a secret of a.test, and the proxy that it goes out through."""
    if not out:
        return inside("a.test:443", limit=NONE, secrets=TOKEN), None
    upstream = lab.http_proxy() if out == "http" else lab.socks5_proxy()
    proxy = Proxy(out, parse_authority(f"{upstream.address}:{upstream.port}").host, upstream.port)
    return inside("a.test:443", limit=NONE, secrets=TOKEN, upstream=UpstreamConfig(proxy, proxy)), upstream


def asked(gate: Inside, way: str) -> bytes:
    """Ask a.test, with the stand-in where it belongs."""
    if way == "connect":
        sock = gate.gate.tunnel("a.test:443")
    else:
        sock = gate.gate.connect()
        sock.sendall(HELLO + request("a.test", 443))
        assert read_exactly(sock, 12)[:4] == b"\x05\x00\x05\x00"
    with gate.context().wrap_socket(sock, server_hostname="a.test") as tls:
        tls.sendall(get("a.test", "/", BEARER, "Connection: close"))
        return read_all(tls)


@pytest.mark.parametrize(("way", "out"), WAYS)
def test_the_value_gets_to_its_host_alone(lab: Lab, inside: Start, way: str, out: str) -> None:
    """INS-5, GAT-8: in SOCKS as with CONNECT; a proxy on the way out carries TLS, and sees no value."""
    origin = lab.origin("echo", "1.2.3.4", 443, tls="a.test")
    gate, proxy = begun(lab, inside, out)
    got = asked(gate, way)
    assert got.startswith(b"HTTP/1.1 200 ")
    assert (VALUE in origin.heads[0], VALUE in got, STANDS in got) == (True, False, True)
    assert gate.gate.event().how is How.INSPECTED
    if proxy is not None:
        assert proxy.connections == 1
        assert VALUE not in proxy.received + b"".join(proxy.heads)


@pytest.mark.parametrize(("way", "out"), WAYS)
@pytest.mark.parametrize("shows", ["another-name", "unknown-root"])
def test_who_plays_the_host_gets_nothing(lab: Lab, inside: Start, way: str, out: str, shows: str) -> None:
    """INS-3, INS-5: whoever answers in its place, behind a proxy or a name that was changed, hears no request."""
    name = "b.test" if shows == "another-name" else "a.test"
    origin = lab.origin("http", "1.2.3.4", 443, tls=name, untrusted=shows == "unknown-root")
    gate, _ = begun(lab, inside, out)
    got = asked(gate, way)
    assert got.startswith(b"HTTP/1.1 502 "), got
    assert gate.gate.event().reason is Reason.UPSTREAM_CERTIFICATE
    assert origin.requests == 0
    assert VALUE not in origin.received
