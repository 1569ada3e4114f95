"""Certificates of every kind for the tests of what a destination may show: chains that are right, and wrong in one way.

    root = Made("root", ca=True)
    leaf = root.issue("a.test", names=["a.test"], days=(-2, -1))
    leaf.chain(middle)       PEM as a server has it: its key, itself, and what goes with it

`sign_with` makes a signature that no library makes any more, by putting another digest's into a certificate.
"""

from __future__ import annotations

import datetime as dt
from ipaddress import ip_address
from typing import TYPE_CHECKING, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

if TYPE_CHECKING:
    from collections.abc import Sequence

    Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

# The last byte of the algorithm identifiers 1.2.840.113549.1.1.x (RFC 8017 appendix A.2.4).
_RSA_WITH = {"sha256": 0x0B, "sha1": 0x05, "md5": 0x04}
_RSA = bytes.fromhex("2a864886f70d0101")
_DIGESTS: dict[str, type[hashes.SHA1 | hashes.MD5]] = {"sha1": hashes.SHA1, "md5": hashes.MD5}


class Made:
    """A certificate and its key."""

    def __init__(
        self,
        common: str,
        issuer: Made | None = None,
        *,
        ca: bool = False,
        names: Sequence[str] = (),
        days: tuple[float, float] = (-10, 10),
        path_length: int | None = None,
        usages: Sequence[x509.ObjectIdentifier] = (),
        more: Sequence[x509.ExtensionType] = (),
        key: Key | None = None,
        sign_with: str = "",
    ) -> None:
        now = dt.datetime.now(dt.UTC)
        self.key: Key = key or ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)]) if common else x509.Name([])
        signer = issuer or self
        builder = (
            x509.CertificateBuilder()
            .subject_name(self.name)
            .issuer_name(signer.name)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + dt.timedelta(days=days[0]))
            .not_valid_after(now + dt.timedelta(days=days[1]))
            .add_extension(x509.BasicConstraints(ca, path_length if ca else None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName([_general(one) for one in names]), not common)
        if usages:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        for extension in more:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.NameConstraints))
        self.der = builder.sign(signer.key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
        if sign_with:
            assert isinstance(signer.key, rsa.RSAPrivateKey), "other keys have no such signatures"
            self.der = _signed_with(self.der, signer.key, sign_with)

    @classmethod
    def rsa(cls, common: str, issuer: Made | None = None, *, bits: int = 2048, ca: bool = False, **how: object) -> Self:
        """Likewise, with an RSA key."""
        key = rsa.generate_private_key(65537, bits)
        return cls(common, issuer, ca=ca, key=key, **how)  # type: ignore[arg-type]

    def issue(self, common: str, **how: object) -> Made:
        """Issue one."""
        return Made(common, self, **how)  # type: ignore[arg-type]

    @property
    def pem(self) -> str:
        """The certificate."""
        from ssl import DER_cert_to_PEM_cert

        return DER_cert_to_PEM_cert(self.der)

    def chain(self, *others: Made) -> str:
        """Its key, itself, and others in this order."""
        private = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return private.decode() + self.pem + "".join(one.pem for one in others)


def only_names(*permitted: str) -> x509.NameConstraints:
    """Names that an authority may sign for."""
    return x509.NameConstraints([x509.DNSName(one) for one in permitted], None)


def must_staple() -> x509.TLSFeature:
    """The wish that a server shows that it is not revoked (RFC 7633)."""
    return x509.TLSFeature([x509.TLSFeatureType.status_request])


CLIENTS = (ExtendedKeyUsageOID.CLIENT_AUTH,)
SERVERS = (ExtendedKeyUsageOID.SERVER_AUTH,)


def _general(name: str) -> x509.GeneralName:
    if name.startswith("ip:"):
        return x509.IPAddress(ip_address(name[3:]))
    return x509.DNSName(name)


def _signed_with(der: bytes, key: rsa.RSAPrivateKey, digest: str) -> bytes:
    # SEQUENCE { tbs, algorithm, BIT STRING }: both algorithms are named anew, as long as before.
    cert = x509.load_der_x509_certificate(der)
    old, new = (_RSA + bytes((_RSA_WITH[one],)) for one in ("sha256", digest))
    signed = cert.tbs_certificate_bytes.replace(old, new)
    made = der.replace(cert.tbs_certificate_bytes, signed).replace(old, new)
    return made.replace(cert.signature, key.sign(signed, padding.PKCS1v15(), _DIGESTS[digest]()))
