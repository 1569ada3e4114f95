"""Which schemes of authentication are of a connection."""

from __future__ import annotations

from tidegate.wire.by_connection import by_connection


def test_credentials_of_a_connection() -> None:
    """RFC 4559: the schemes, wherever in a list of challenges they stand, in any case; and those of a request."""
    for value in (b"NTLM", b"negotiate YII=", b'Basic realm="a, b",Negotiate', b"Digest x=y,\tNTLM abc"):
        assert by_connection([value])
    assert by_connection([b"Basic eDp5", b"Kerberos"])
    for value in (
        b"",
        b"Bearer ntlm.x",
        b'Basic realm="NTLM-like"',
        b"AWS4-HMAC-SHA256 Credential=a",
        b"token negotiated",
    ):
        assert not by_connection([value])
