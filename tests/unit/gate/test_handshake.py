"""Out through an upstream proxy, over real sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.gate.kit import read_exactly, read_head, small
from tidegate.gate.upstream import upstream_from_environment
from tidegate.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.unit.gate.kit import Serving

    Serve = Callable[..., Serving]

CONNECT = b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"
GET = b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"


def through(serve: Serve, url: str, *allow: str, **options: Any) -> Serving:
    """Return a gate that goes out through a proxy."""
    config = upstream_from_environment({"ALL_PROXY": url, "NO_PROXY": options.pop("no_proxy", "")})
    return serve(*(allow or ("a.test", "1.2.3.4")), upstream=config, **options)


@pytest.mark.parametrize("kind", ["http", "socks5", "socks5h"])
@pytest.mark.parametrize("credentials", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_tunnels_and_plain_requests_go_through(lab: Lab, serve: Serve, kind: str, credentials: bool, own: bool) -> None:
    """GAT-8: each kind, with and without a password, elsewhere or on this machine's loopback."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443, text="hi")
    lab.origin("http", "1.2.3.4", 80)
    options: dict[str, Any] = {"user": "u", "password": "p"} if credentials else {}
    where = "127.0.0.1" if own else "1.2.3.80"
    if kind == "http":
        proxy = lab.http_proxy(where, 3128, machine=own, **options)
    else:
        proxy = lab.socks5_proxy(where, 3128, machine=own, **options)
    gate = through(serve, f"{kind}://{'u:p@' if credentials else ''}{where}:3128")
    assert gate.raw(CONNECT, until=b"hi").endswith(b"\r\n\r\nhi")
    assert gate.raw(GET).startswith(b"HTTP/1.1 200 ")
    assert proxy.connections == 2
    assert {event.address for event in gate.events(2)} == {"1.2.3.4"}


def test_the_address_is_checked_here_too(lab: Lab, serve: Serve) -> None:
    """ADR-5: a name that leads to a private or own address never reaches the proxy; a literal neither."""
    lab.dns.set("own.test", A=["127.0.0.1"])
    lab.dns.set("private.test", A=["10.9.8.7"])
    proxy = lab.http_proxy()
    gate = through(serve, "http://1.2.3.80:3128", "*")
    for host, reason in (
        ("own.test", Reason.OWN_ADDRESS),
        ("private.test", Reason.PRIVATE_ADDRESS),
        ("169.254.169.254", Reason.NEVER_ADDRESS),
    ):
        assert gate.raw(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode()).startswith(
            b"HTTP/1.1 403 "
        )
        assert gate.recording.events[-1].reason is reason
    assert proxy.connections == 0


def test_resolve_skip_leaves_names_to_the_proxy(lab: Lab, serve: Serve) -> None:
    """ADR-5: no look-up here, and still no literal, own or metadata name."""
    proxy = lab.http_proxy()
    gate = through(serve, "http://1.2.3.80:3128", "*", "metadata.google.internal", upstream_resolve="skip")
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443, text="hi")
    assert gate.raw(CONNECT, until=b"hi").endswith(b"hi")
    assert lab.dns.queries == []
    for host in ("localhost", "a.localhost", "10.9.8.7", "metadata.google.internal"):
        assert gate.raw(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode()).startswith(
            b"HTTP/1.1 403 "
        )
    assert proxy.connections == 1


def test_no_proxy_and_own_addresses_go_direct(lab: Lab, serve: Serve) -> None:
    """GAT-8: what NO_PROXY lists, and this machine itself, is reached without the proxy."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443, text="hi")
    local = lab.origin("banner", "127.0.0.1", 0, machine=True, text="me")
    proxy = lab.http_proxy()
    gate = through(serve, "http://1.2.3.80:3128", "a.test:443", f"127.0.0.1:{local.port}", no_proxy="a.test")
    assert gate.raw(CONNECT, until=b"hi").endswith(b"hi")
    with gate.tunnel(f"127.0.0.1:{local.port}") as sock:
        assert read_exactly(sock, 2) == b"me"
    assert proxy.connections == 0


@pytest.mark.parametrize(
    "answer",
    [
        "HTTP/1.1 200 OK\r\nX:",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 403 Forbidden\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 200 OK\nX: y\n\n",
        "SSH-2.0-x\r\n",
        "",
        "HTTP/1.1 200 OK\r\nX: " + "y" * 70_000,
    ],
)
def test_only_a_whole_2xx_opens_the_tunnel(lab: Lab, serve: Serve, answer: str) -> None:
    """B38: cut short, refused, malformed or 407: 502, and the word says that it was the proxy."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("script", "1.2.3.80", 3128, steps=[["head"], ["send", answer]])
    gate = through(serve, "http://1.2.3.80:3128")
    got = gate.raw(CONNECT)
    assert got.startswith(b"HTTP/1.1 502 ")
    assert b"upstream-proxy" in got
    assert b"Proxy-Authenticate" not in got
    assert gate.event().reason is Reason.UPSTREAM_PROXY
    gate.idle()


def test_an_interim_answer_is_skipped_and_early_bytes_arrive(lab: Lab, serve: Serve) -> None:
    """B38: what follows the head belongs to the client."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    steps = [["head"], ["send", "HTTP/1.1 103 x\r\n\r\nHTTP/1.0 200 fine\r\nX: y\r\n\r\nSSH-2.0-x\r\n"], ["drain"]]
    lab.origin("script", "1.2.3.80", 3128, steps=steps)
    gate = through(serve, "http://1.2.3.80:3128")
    assert gate.raw(CONNECT, until=b"SSH-2.0-x\r\n").endswith(b"established\r\n\r\nSSH-2.0-x\r\n")


def test_a_407_for_a_plain_request_is_502(lab: Lab, serve: Serve) -> None:
    """B38: never passed through as 407; other answers of the proxy are."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("script", "1.2.3.80", 3128, steps=[["head"], ["send", "HTTP/1.1 407 x\r\nContent-Length: 0\r\n\r\n"]])
    gate = through(serve, "http://1.2.3.80:3128")
    assert gate.raw(GET).startswith(b"HTTP/1.1 502 ")
    assert gate.event().reason is Reason.UPSTREAM_PROXY


def test_plain_requests_reach_an_http_proxy_in_absolute_form(lab: Lab, serve: Serve) -> None:
    """GAT-8: with the proxy's credentials, and without the task's."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    proxy = lab.origin("http", "1.2.3.80", 3128)
    gate = through(serve, "http://u:p@1.2.3.80:3128")
    data = GET.replace(b"Connection", b"Proxy-Authorization: Basic dGFzaw==\r\nConnection")
    assert gate.raw(data).startswith(b"HTTP/1.1 200 ")
    assert proxy.heads[0].startswith(b"GET http://a.test/ HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic dTpw\r\n" in proxy.heads[0]
    assert b"dGFzaw==" not in proxy.heads[0]


def test_a_silent_or_absent_proxy(lab: Lab, serve: Serve) -> None:
    """B38: a timer on that read; a proxy that is not there is a failure of the proxy, not of the destination."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("silent", "1.2.3.80", 3128)
    gate = through(serve, "http://1.2.3.80:3128", limits=small(connect_seconds=0.3))
    assert gate.raw(CONNECT).startswith(b"HTTP/1.1 502 ")
    absent = through(serve, "http://1.2.3.80:3129")
    assert absent.raw(CONNECT).startswith(b"HTTP/1.1 502 ")
    nameless = through(serve, "http://nowhere.test:3129")
    assert nameless.raw(CONNECT).startswith(b"HTTP/1.1 502 ")
    for each in (gate, absent, nameless):
        assert each.event().reason is Reason.UPSTREAM_PROXY
        each.idle()


def test_a_proxy_by_name_is_resolved(lab: Lab, serve: Serve) -> None:
    """GAT-8: its own name needs no rule."""
    lab.dns.set("proxy.corp.test", A=["1.2.3.80"])
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 443, text="hi")
    lab.http_proxy()
    gate = through(serve, "http://proxy.corp.test:3128", "a.test:443")
    assert gate.raw(CONNECT, until=b"hi").endswith(b"hi")


def test_socks5_refusals_are_told_apart(lab: Lab, serve: Serve) -> None:
    """GAT-8: the reply code of the proxy becomes our reason."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.socks5_proxy("1.2.3.81", 1080, code=5)
    gate = through(serve, "socks5://1.2.3.81:1080")
    assert gate.raw(CONNECT).startswith(b"HTTP/1.1 502 ")
    assert gate.event().reason is Reason.UPSTREAM_REFUSED


def test_a_client_that_leaves_ends_the_handshake(lab: Lab, serve: Serve) -> None:
    """B67: nothing stays open to the proxy."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    proxy = lab.origin("silent", "1.2.3.80", 3128)
    gate = through(serve, "http://1.2.3.80:3128")
    with gate.connect() as sock:
        sock.sendall(CONNECT)
        proxy.wait(lambda o: o.connections == 1)
        sock.setsockopt(1, 13, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # SO_LINGER 0: reset
    gate.idle()
    assert gate.event().reason is Reason.CLIENT_GONE
    assert gate.on_thread(lambda: len(gate.gate.reactor.table)) == 2


def test_head_reading_helper_reads_one_head(lab: Lab) -> None:
    """The helper these tests stand on takes nothing behind the head."""
    lab.origin("script", "1.2.3.4", 80, steps=[["send", "HTTP/1.1 200 x\r\n\r\nrest"]])
    import socket

    with socket.create_connection(("1.2.3.4", 80)) as sock:
        assert read_head(sock) == b"HTTP/1.1 200 x\r\n\r\n"
        assert read_exactly(sock, 4) == b"rest"
