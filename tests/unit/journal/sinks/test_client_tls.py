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
    for none in ("nothing", "no ASCII \u00fc"):
        with pytest.raises(StartError, match="PEM"):
            tls_context(none)


def test_a_pair_is_taken_and_leaves_nothing_open() -> None:
    """JRN-6: a certificate and its key, read from memory."""
    before = descriptors()
    for _ in range(5):
        tls_context(authority().pem, CERT, KEY)
    assert descriptors() <= before


_NO_PAIR = {
    "no key": (CERT, b"", "a client's key is missing"),
    "no certificate": ("", KEY, "a client's certificate is missing"),
    "both in one": (CERT + KEY.decode(), KEY, "holds a private key"),
    "another's key": (CERT, trustme.CA().issue_cert("x.test").private_key_pem.bytes(), "no pair"),
    "a password": (CERT, with_password(KEY), "has a password"),
    "half a key": (CERT, KEY[:200], "no pair"),
    "no PEM": (CERT, b"k\xff\x00", "no pair"),
    "no ASCII": ("\u00fc", KEY, "no pair"),
    "a long key": (CERT, b"x" * 20_000, "too long"),
    "a long chain": (CERT * 200, KEY, "too long"),
}


@pytest.mark.parametrize("what", sorted(_NO_PAIR))  # by name: the keys are others in each process
def test_what_is_no_pair(what: str) -> None:
    """JRN-6: refused without a prompt on the terminal, and never with the key in what is said."""
    cert, key, why = _NO_PAIR[what]
    with pytest.raises(StartError, match=why) as raised:
        tls_context(authority().pem, cert, key)
    said = f"{raised.value} {raised.value.__cause__} {raised.value.__suppress_context__}"
    assert not any(line and line in said for line in KEY.decode().splitlines())
