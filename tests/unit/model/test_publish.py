"""tidegate.model.publish."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.publish import Publish, PublishError, parse_publish

BOTH = ("127.0.0.1", "::1")


@pytest.mark.parametrize(
    ("text", "published", "canonical", "host"),
    [
        ("8080", Publish(BOTH, 8080, 8080), "8080:8080", "localhost"),
        ("80:1024", Publish(BOTH, 80, 1024), "80:1024", "localhost"),
        ("65535:65535", Publish(BOTH, 65535, 65535), "65535:65535", "localhost"),
        ("127.0.0.1:8080", Publish(("127.0.0.1",), 8080, 8080, True), "127.0.0.1:8080:8080", "127.0.0.1"),
        ("127.0.0.1:80:3000", Publish(("127.0.0.1",), 80, 3000, True), "127.0.0.1:80:3000", "127.0.0.1"),
        ("127.255.0.9:80:3000", Publish(("127.255.0.9",), 80, 3000, True), "127.255.0.9:80:3000", "127.255.0.9"),
        ("[::1]:8080", Publish(("::1",), 8080, 8080, True), "[::1]:8080:8080", "::1"),
        ("[0::1]:80:3000", Publish(("::1",), 80, 3000, True), "[::1]:80:3000", "::1"),
    ],
)
def test_what_is_published(text: str, published: Publish, canonical: str, host: str) -> None:
    """HLD-10: one number is both ports, both loopbacks unless one is named; the canonical text means the same."""
    assert parse_publish(text) == published
    assert (published.text, published.host) == (canonical, host)
    assert parse_publish(canonical) == published


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "missing"),
        ("0", "outside 1-65535"),
        ("65536", "outside 1-65535"),
        ("08080", "leading zero"),
        ("+80", "not a plain number"),
        ("8080:", "missing"),
        (":8080", "missing"),
        ("8080/udp", "not a plain number"),
        ("8080-8090", "not a plain number"),
        ("8080:1023", "no right to listen on port 1023"),
        ("80", "no right to listen on port 80"),
        ("0.0.0.0:8080:8080", "0.0.0.0 is not this machine's loopback"),
        ("126.255.255.255:80:3000", "not this machine's loopback"),
        ("128.0.0.0:80:3000", "not this machine's loopback"),
        ("10.0.0.1:80:3000", "not this machine's loopback"),
        ("[::]:80:3000", ":: is not this machine's loopback"),
        ("[::2]:80:3000", "not this machine's loopback"),
        ("[::ffff:127.0.0.1]:80:3000", "not this machine's loopback"),
        ("[127.0.0.1]:80:3000", "brackets"),
        ("[::1]", "brackets"),
        ("[::1:80:3000", "brackets"),
        ("127.1:80:3000", "no address"),
        ("0177.0.0.1:80:3000", "no address"),
        ("localhost:80:3000", "no address"),
        ("127.0.0.1", "missing"),
        ("127.0.0.1:1:2:3", "not a plain number"),
    ],
)
def test_what_is_not(text: str, says: str) -> None:
    """HLD-10: nothing but loopback is ever opened, and each mistake says why and what to write."""
    with pytest.raises(PublishError) as caught:
        parse_publish(text)
    assert says in caught.value.what
    assert caught.value.fix


@given(st.text(max_size=30) | st.from_regex(r"\[?[0-9a-f.:]{1,20}\]?:\d{1,6}(:\d{1,6})?", fullmatch=True))
def test_whatever_is_written_only_loopback_is_opened(text: str) -> None:
    """HLD-10: a text is refused in words, or each of its addresses is loopback and its ports are ports."""
    try:
        found = parse_publish(text)
    except PublishError:
        return
    assert all(ipaddress.ip_address(address).is_loopback for address in found.addresses)
    assert 1 <= found.port <= 65535
    assert 1024 <= found.inside <= 65535
    assert parse_publish(found.text) == found
