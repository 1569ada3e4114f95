"""ClientHellos for tests: real ones from OpenSSL, and hand-made ones that a good client would not send."""

from __future__ import annotations

import ssl


def real_hello(name: str | None, alpn: list[str] | None = None, *, tls12: bool = False) -> bytes:
    """Return the bytes that Python's TLS client sends first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if name is None:
        context.check_hostname = False
    if alpn:
        context.set_alpn_protocols(alpn)
    if tls12:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake without a server")


def vector(size: int, data: bytes) -> bytes:
    """Return `data` behind its length in `size` bytes."""
    return len(data).to_bytes(size, "big") + data


def extension(kind: int, data: bytes) -> bytes:
    """Return one extension."""
    return kind.to_bytes(2, "big") + vector(2, data)


def server_name(*names: bytes, kind: int = 0) -> bytes:
    """Return a server_name extension."""
    return extension(0, vector(2, b"".join(b"%c" % kind + vector(2, name) for name in names)))


def alpn(*names: bytes) -> bytes:
    """Return an ALPN extension."""
    return extension(16, vector(2, b"".join(vector(1, name) for name in names)))


def body(
    *extensions: bytes,
    version: bytes = b"\x03\x03",
    session: bytes = b"",
    suites: bytes = b"\x13\x01",
    compression: bytes = b"\x00",
    tail: bytes = b"",
    without_extensions: bool = False,
) -> bytes:
    """Return the body of a ClientHello."""
    start = version + bytes(32) + vector(1, session) + vector(2, suites) + vector(1, compression)
    return start + (b"" if without_extensions else vector(2, b"".join(extensions))) + tail


def message(data: bytes, kind: int = 1) -> bytes:
    """Return a handshake message."""
    return b"%c" % kind + vector(3, data)


def record(fragment: bytes, kind: int = 22, version: bytes = b"\x03\x01") -> bytes:
    """Return one record."""
    return b"%c" % kind + version + vector(2, fragment)


def hello(*extensions: bytes, **fields: bytes) -> bytes:
    """Return a whole hand-made ClientHello in one record."""
    return record(message(body(*extensions, **fields)))


def in_records(handshake: bytes, sizes: list[int]) -> bytes:
    """Return a handshake message cut into records of these sizes, the last one taking the rest."""
    out = b""
    at = 0
    for size in sizes:
        if at + size >= len(handshake):
            break
        out += record(handshake[at : at + size])
        at += size
    return out + record(handshake[at:])
