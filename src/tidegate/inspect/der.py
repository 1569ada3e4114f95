"""DER, as far as one certificate and one trust store need it (X.690 sections 8 and 10): bytes are made, not read."""

from __future__ import annotations

from binascii import b2a_base64

BOOLEAN, INTEGER, BITS, OCTETS, OBJECT, UTF8, UTC, GENERALIZED = 0x01, 0x02, 0x03, 0x04, 0x06, 0x0C, 0x17, 0x18
BMP, SEQUENCE, SET = 0x1E, 0x30, 0x31


def head(tag: int, size: int) -> bytes:
    """Return what stands before the content of an element: its tag, and the content's length."""
    if size < 0x80:
        return bytes((tag, size))
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length


def tlv(tag: int, *parts: bytes) -> bytes:
    """Return one element: its tag, its length, its content."""
    content = b"".join(parts)
    return head(tag, len(content)) + content


def sequence(*parts: bytes) -> bytes:
    """Return a SEQUENCE."""
    return tlv(SEQUENCE, *parts)


def integer(number: int) -> bytes:
    """Return an INTEGER that is not negative."""
    return tlv(INTEGER, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def oid(text: str) -> bytes:
    """Return an OBJECT IDENTIFIER written with dots."""
    first, second, *rest = map(int, text.split("."))
    content = bytearray()
    for number in (40 * first + second, *rest):
        septets = [number & 0x7F]
        while number := number >> 7:
            septets.append(number & 0x7F | 0x80)
        content += bytes(reversed(septets))
    return tlv(OBJECT, bytes(content))


def flags(*bits: int) -> bytes:
    """Return a BIT STRING of named bits, counted from the first, without the zeros behind the last."""
    last = max(bits)
    number = sum(1 << (7 - bit % 8) + 8 * (last // 8 - bit // 8) for bit in bits)
    return tlv(BITS, bytes((7 - last % 8,)), number.to_bytes(last // 8 + 1, "big"))


def is_whole(data: bytes) -> bool:
    """Whether this is one SEQUENCE, whole and with nothing behind it."""
    if len(data) < 2 or data[0] != SEQUENCE:
        return False
    size, at = data[1], 2
    if size & 0x80:
        at += size & 0x7F
        size = int.from_bytes(data[2:at], "big")
    return len(data) == at + size


def pem(certificate: bytes) -> str:
    """Return a certificate as PEM (RFC 7468)."""
    text = b2a_base64(certificate, newline=False).decode("ascii")
    lines = "\n".join(text[at : at + 64] for at in range(0, len(text), 64))
    return f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n"
