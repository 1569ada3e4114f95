"""A trust store for Java, written by hand: read by cryptography here, by keytool and a JVM elsewhere (test_trust)."""

from __future__ import annotations

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import Encoding, pkcs12
from cryptography.x509 import load_pem_x509_certificate

from tidegate.inspect import der
from tidegate.runtime.java_store import bags, java_store


def test_a_library_reads_what_is_written() -> None:
    """INS-2: PKCS12 without a password: each certificate under a name of its own."""
    made = [load_pem_x509_certificate(trustme.CA().cert_pem.bytes()).public_bytes(Encoding.DER) for _ in range(3)]
    read = pkcs12.load_pkcs12(java_store(bags(made, "root")), None)
    assert [one.certificate.public_bytes(Encoding.DER) for one in read.additional_certs] == made
    assert [one.friendly_name for one in read.additional_certs] == [b"root-0", b"root-1", b"root-2"]


@pytest.mark.parametrize("size", [10, 127, 128, 251, 252, 255, 256, 1000, 65000, 65279, 65280, 70000])
def test_heads_are_right_for_every_size(size: int) -> None:
    """INS-2: the quick way for usual sizes writes what the plain one does (X.690 section 8.1.3)."""
    one = der.sequence(bytes(size))
    [made] = bags([one], "root")
    assert der.is_whole(made)
    explicit = der.tlv(0xA0, der.tlv(der.OCTETS, one))
    value = der.tlv(0xA0, der.sequence(der.oid("1.2.840.113549.1.9.22.1"), explicit))
    attributes = made[made.rindex(one) + len(one) :]
    assert made == der.sequence(der.oid("1.2.840.113549.1.12.10.1.3"), value, attributes)
    assert attributes[0] == der.SET
    assert "root-0".encode("utf-16-be") in attributes
