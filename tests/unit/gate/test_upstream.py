"""The gate's own way out, from its environment."""

from __future__ import annotations

import pytest

from tidegate.gate.upstream import Proxy, UpstreamConfig, parse_proxy, upstream_from_environment
from tidegate.model.destination import parse_authority
from tidegate.model.errors import StartError


def test_no_variable_is_no_proxy() -> None:
    """GAT-8: empty counts as unset, NO_PROXY alone is nothing."""
    assert upstream_from_environment({}) is None
    assert upstream_from_environment({"HTTPS_PROXY": "", "NO_PROXY": "*"}) is None


def test_either_case_and_lower_wins() -> None:
    """GAT-8: as curl reads them; ALL_PROXY stands in for what is not set."""
    config = upstream_from_environment(
        {"HTTPS_PROXY": "http://upper:1", "https_proxy": "http://lower:2", "ALL_PROXY": "socks5h://all:3"}
    )
    assert config is not None
    assert str(config.https) == "http://lower:2"
    assert str(config.http) == "socks5h://all:3"


@pytest.mark.parametrize(
    ("text", "shown", "user", "password"),
    [
        ("http://proxy.test:3128", "http://proxy.test:3128", b"", b""),
        ("proxy.test:3128/", "http://proxy.test:3128", b"", b""),
        ("http://proxy.test", "http://proxy.test:80", b"", b""),
        ("socks5://[::1]", "socks5://[::1]:1080", b"", b""),
        ("HTTP://User:p%40ss:w@Proxy.test:3128", "http://proxy.test:3128", b"User", b"p@ss:w"),
        ("socks5h://u:p%zz@10.0.0.1:1", "socks5h://10.0.0.1:1", b"u", b"p%zz"),
    ],
)
def test_urls_and_their_credentials(text: str, shown: str, user: bytes, password: bytes) -> None:
    """GAT-8, B137: credentials are decoded, sent, and never shown."""
    proxy = parse_proxy(text, "HTTPS_PROXY")
    assert (str(proxy), proxy.user, proxy.password) == (shown, user, password)
    assert "p@ss" not in repr(proxy)
    if proxy.scheme == "http" and user:
        assert proxy.authorization == b"Basic VXNlcjpwQHNzOnc="


@pytest.mark.parametrize(
    "text", ["https://proxy.test:443", "ftp://x", "http://", "http://a b", "http://u:secret@x:99999", "socks5://user@x"]
)
def test_what_cannot_be_used_stops_the_start(text: str) -> None:
    """GAT-8: going out another way would not be what was asked; the message shows no password."""
    with pytest.raises(StartError) as caught:
        upstream_from_environment({"HTTPS_PROXY": text})
    assert "HTTPS_PROXY" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("entry", "where", "direct"),
    [
        ("example.com", "example.com:443", True),
        ("example.com", "a.example.com:443", True),
        ("example.com", "badexample.com:443", False),
        (".example.com", "example.com:443", True),
        ("*.example.com", "a.example.com:443", True),
        ("EXAMPLE.com", "example.com:443", True),
        ("example.com:443", "example.com:443", True),
        ("example.com:443", "example.com:80", False),
        ("*", "anything.test:1", True),
        ("10.0.0.0/8", "10.9.8.7:80", True),
        ("10.0.0.0/8", "11.9.8.7:80", False),
        ("10.0.0.1", "10.0.0.1:80", True),
        ("10.0.0.1", "10.0.0.2:80", False),
        ("::1", "[::1]:80", True),
        ("[::1]:80", "[::1]:80", True),
        ("[::1]:80", "[::1]:81", False),
        ("2600::/16", "[2600:beef::1]:80", True),
        ("10.0.0.0/99", "10.0.0.1:80", False),
        ("nonsense/", "a.test:80", False),
        ("", "a.test:80", False),
        (".", "a.test:80", False),
    ],
)
def test_no_proxy(entry: str, where: str, direct: bool) -> None:
    """GAT-8, B133: names with everything below, addresses, blocks, ports; what cannot be read excepts nothing."""
    proxy = Proxy("http", parse_authority("p.test:1").host, 1)
    read = upstream_from_environment({"https_proxy": "http://p.test:1", "NO_PROXY": f"{entry}, other.test"})
    assert read is not None
    config = UpstreamConfig(proxy, proxy, read.no_proxy)
    destination = parse_authority(where)
    assert config.route(destination, tunnel=True) is (None if direct else proxy)
    assert config.route(destination, tunnel=False) is (None if direct else proxy)
