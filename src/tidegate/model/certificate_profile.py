"""What every certificate of ours is like: one profile, for whatever room signs one (INS-1, HLD-4; CASES B103).

The profile is the one the strictest verifiers ask for: OpenSSL's -x509_strict, Python 3.13's default, Go, rustls, Java,
GnuTLS. Keys are P-256, serial numbers random, both key identifiers there (RFC 5280, 4.2.1.1 and 4.2.1.2), and a key is
for one thing. What a certificate is for, whom it names and how long it lives is said by who signs it.

Loaded by those alone: nothing on the way of `run` without inspection knows cryptography. Clocks come in.
"""

from __future__ import annotations

import datetime as dt

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PEM = serialization.Encoding.PEM


def new_key() -> ec.EllipticCurvePrivateKey:
    """Return a new key."""
    return ec.generate_private_key(ec.SECP256R1())


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a key as PEM, as it is."""
    return key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def name(text: str) -> x509.Name:
    """Return a name of one part."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def time(seconds: float) -> dt.datetime:
    """Return Unix time as certificates have it."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC)


def builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer_key: ec.EllipticCurvePublicKey,
    begins: dt.datetime,
    ends: dt.datetime,
) -> x509.CertificateBuilder:
    """Return what every certificate begins with."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())  # 159 random bits
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )


def usage(*, signs: bool) -> x509.KeyUsage:
    """Return what a key is for: to sign certificates, or to shake hands."""
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
