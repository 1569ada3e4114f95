"""tidegate.journal.sinks.proxy: which addresses and keys make a proxy."""

from __future__ import annotations

import pytest

from tidegate.journal.sinks.proxy import proxy_of
from tidegate.model.errors import StartError


def test_a_proxy_has_a_place_and_perhaps_a_key() -> None:
    """JRN-6: everybody may see the place; user and password travel in a header."""
    assert proxy_of("http://proxy.test:3128").place == "proxy.test:3128"
    assert proxy_of("http://[::1]:3128/").place == "[::1]:3128"
    assert proxy_of("http://proxy.test:3128").headers == {}
    assert proxy_of("http://proxy.test:3128", b"me:pa:ss").headers == {"Proxy-Authorization": "Basic bWU6cGE6c3M="}


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://me:s3cret@proxy.test:3128", b""),
        ("http://s3cret@proxy.test:3128", b""),
        ("https://proxy.test:3128", b""),
        ("socks5://proxy.test:1080", b""),
        ("http://proxy.test", b""),
        ("http://proxy.test:0", b""),
        ("http://proxy.test:99999", b""),
        ("http://proxy.test:3128/s3cret", b""),
        ("http://proxy.test:3128?s3cret", b""),
        ("http://proxy .test:3128", b""),
        ("proxy.test:3128", b""),
        ("http://proxy.test:3128", b"s3cret"),
        ("http://proxy.test:3128", b"me:s3cret\r\nX-Y: z"),
    ],
)
def test_what_is_no_proxy(url: str, key: bytes) -> None:
    """JRN-6: said without what was given, which may hold a password; and with what to write instead."""
    with pytest.raises(StartError) as raised:
        proxy_of(url, key)
    assert "s3cret" not in str(raised.value)
    assert "http://HOST:PORT" in raised.value.fix
