"""A trust store as Java reads it, written without a library: each start would wait for one to load (RFC 7292).

Certificates in the clear, with no password and no MAC. What is in it is public, the task cannot write it, and a JVM
that is told no password reads it so. The bags of a machine's roots are made while the gate makes the task's authority.
"""

from __future__ import annotations

from struct import Struct

from tidegate.inspect import der

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_DATA = der.oid("1.2.840.113549.1.7.1")
_CERTIFICATE_BAG, _X509 = der.oid("1.2.840.113549.1.12.10.1.3"), der.oid("1.2.840.113549.1.9.22.1")
_FRIENDLY_NAME = der.oid("1.2.840.113549.1.9.20")
# Java's own attribute: an entry without it is a certificate that is not trusted. The value is "for any purpose".
_TRUSTED = der.sequence(der.oid("2.16.840.1.113894.746875.1.1"), der.tlv(der.SET, der.oid("2.5.29.37.0")))

# The five heads before a certificate of a usual size, each with a length of two bytes.
_USUAL = Struct(f">BBH{len(_CERTIFICATE_BAG)}sBBHBBH{len(_X509)}sBBHBBH")
_HEAD = 4
_LONG = 0x82
_LEAST, _MOST = 0x100, 0xFF00


def bags(certificates: Iterable[bytes], alias: str) -> list[bytes]:
    """Return each certificate as a bag: a trusted entry by the name of the alias and its number."""
    return [_bag(one, f"{alias}-{number}") for number, one in enumerate(certificates)]


def java_store(made: Iterable[bytes]) -> bytes:
    """Return a store of these bags."""
    safe = der.tlv(der.OCTETS, der.sequence(*made))
    content = der.sequence(der.sequence(_DATA, der.tlv(0xA0, safe)))
    return der.sequence(der.integer(3), der.sequence(_DATA, der.tlv(0xA0, der.tlv(der.OCTETS, content))))


def _bag(certificate: bytes, alias: str) -> bytes:
    # SEQUENCE {certBag, [0] {SEQUENCE {x509Certificate, [0] {OCTET STRING}}}, SET {trusted, friendlyName}}
    attributes = _attributes(alias)
    size = len(certificate)
    if _LEAST <= size < _MOST:
        explicit = size + _HEAD
        value = explicit + _HEAD + len(_X509)
        outer = value + _HEAD
        whole = outer + _HEAD + len(_CERTIFICATE_BAG) + len(attributes)
        heads = _USUAL.pack(
            *(der.SEQUENCE, _LONG, whole, _CERTIFICATE_BAG, 0xA0, _LONG, outer),
            *(der.SEQUENCE, _LONG, value, _X509, 0xA0, _LONG, explicit, der.OCTETS, _LONG, size),
        )
        return b"".join((heads, certificate, attributes))
    content = der.tlv(der.OCTETS, certificate)
    body = der.tlv(0xA0, der.sequence(_X509, der.tlv(0xA0, content)))
    return der.sequence(_CERTIFICATE_BAG, body, attributes)


def _attributes(alias: str) -> bytes:
    wide = bytearray(2 * len(alias))
    wide[1::2] = alias.encode("ascii")  # UTF-16 of it, without loading a codec
    name = der.sequence(_FRIENDLY_NAME, der.tlv(der.SET, der.tlv(der.BMP, bytes(wide))))
    return der.tlv(der.SET, _TRUSTED, name)
