"""tidegate.journal.sinks.client_tls: what TLS of a sink trusts and shows, with certificates of the test's own."""

from __future__ import annotations

import ssl

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from tests.descriptors import descriptors
from tests.sinks.rig import authority
from tidegate.journal.sinks.client_tls import tls_context
from tidegate.model.errors import StartError

LEAF = trustme.CA().issue_cert("client.test")
CERT = LEAF.cert_chain_pems[0].bytes().decode()
KEY = LEAF.private_key_pem.bytes()


def with_password(key: bytes) -> bytes:
    """Return the same key under a password."""
    made = serialization.load_pem_private_key(key, None)
    return made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )


def test_what_it_trusts() -> None:
    """JRN-6: the system's roots, or these alone; what holds none is refused."""
    assert tls_context().verify_mode is ssl.CERT_REQUIRED
    assert [one["subject"] for one in tls_context(authority().pem).get_ca_certs()] != []
    with pytest.raises(StartError, match="PEM"):
        tls_context("nothing")


def test_a_pair_is_taken_and_leaves_nothing_open() -> None:
    """JRN-6: a certificate and its key, read from memory."""
    before = descriptors()
    for _ in range(5):
        tls_context(authority().pem, CERT, KEY)
    assert descriptors() <= before


@pytest.mark.parametrize(
    ("cert", "key", "why"),
    [
        (CERT, b"", "a client's key is missing"),
        ("", KEY, "a client's certificate is missing"),
        (CERT + KEY.decode(), KEY, "holds a private key"),
        (CERT, trustme.CA().issue_cert("x.test").private_key_pem.bytes(), "no pair"),
        (CERT, with_password(KEY), "has a password"),
        (CERT, KEY[:200], "no pair"),
        (CERT, b"k\xff\x00", "no pair"),
        ("\u00fc", KEY, "no pair"),
        (CERT, b"x" * 20_000, "too long"),
        (CERT * 200, KEY, "too long"),
    ],
)
def test_what_is_no_pair(cert: str, key: bytes, why: str) -> None:
    """JRN-6: refused without a prompt on the terminal, and never with the key in what is said."""
    with pytest.raises(StartError, match=why) as raised:
        tls_context(authority().pem, cert, key)
    said = f"{raised.value} {raised.value.__cause__} {raised.value.__suppress_context__}"
    assert not any(line and line in said for line in KEY.decode().splitlines())
