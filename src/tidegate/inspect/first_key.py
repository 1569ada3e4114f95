"""The key of a task's authority, and the signatures under its roots, by the system's OpenSSL (INS-1).

Importing `cryptography` takes 50 ms and 16 MB, which is as long as all the rest of a start and more than all the rest
of a gate; most tasks never open a connection that is read. libcrypto alone, which Python's own `ssl` brings, makes the
key and signs in 3 ms (docs/decisions/0018). Where there is none (a Python that has OpenSSL built in), or an older one
than 3.0, `cryptography` does the same.

EVP_PKEY_Q_keygen(3), EVP_DigestSign(3), i2d_PrivateKey(3), i2d_PUBKEY(3).
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LIBRARY = "libcrypto.so.3"
_POINT = 65  # bytes of an uncompressed point (SEC 1 section 2.3.3), at the end of its SubjectPublicKeyInfo
_POINTER, _SIZE, _NUMBER = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_PROTOTYPES = {
    "EVP_PKEY_Q_keygen": (_POINTER, (_POINTER, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p)),
    "EVP_PKEY_free": (None, (_POINTER,)),
    "i2d_PrivateKey": (_NUMBER, (_POINTER, _POINTER)),
    "i2d_PUBKEY": (_NUMBER, (_POINTER, _POINTER)),
    "EVP_sha256": (_POINTER, ()),
    "EVP_MD_CTX_new": (_POINTER, ()),
    "EVP_MD_CTX_free": (None, (_POINTER,)),
    "EVP_DigestSignInit": (_NUMBER, (_POINTER, _POINTER, _POINTER, _POINTER, _POINTER)),
    "EVP_DigestSign": (_NUMBER, (_POINTER, _POINTER, _POINTER, ctypes.c_char_p, _SIZE)),
}  # fmt: skip


class Key:
    """A fresh key on P-256. `private` is DER, as `cryptography` loads it; `point` the public key, uncompressed."""

    __slots__ = ("_sign", "point", "private")

    def __init__(self) -> None:
        self.private, self.point, self._sign = _by_openssl() or _by_library()

    def sign(self, data: bytes) -> bytes:
        """Return the ECDSA signature of the data with SHA-256, as DER (RFC 3279 section 2.2.3)."""
        return self._sign(data)


class OpenSSLError(Exception):
    """libcrypto did not do what it never fails to do."""


@lru_cache(maxsize=1)
def _library() -> Any | None:
    try:
        library = ctypes.CDLL(LIBRARY)
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError):
        return None
    return library


def _by_openssl() -> tuple[bytes, bytes, Callable[[bytes], bytes]] | None:
    library = _library()
    if library is None:
        return None
    owner = _Owner(library)
    private, public = (_encoded(encode, owner.pkey) for encode in (library.i2d_PrivateKey, library.i2d_PUBKEY))
    return private, public[-_POINT:], owner.sign


def _by_library() -> tuple[bytes, bytes, Callable[[bytes], bytes]]:
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    point = key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    return private, point, lambda data: key.sign(data, ec.ECDSA(hashes.SHA256()))


class _Owner:
    """Has a key of libcrypto's, and frees it when nobody can sign with it any more."""

    __slots__ = ("_library", "pkey")

    def __init__(self, library: Any) -> None:
        self._library = library
        self.pkey = library.EVP_PKEY_Q_keygen(None, None, b"EC", b"P-256")
        if not self.pkey:
            raise OpenSSLError("EVP_PKEY_Q_keygen")

    def __del__(self) -> None:
        self._library.EVP_PKEY_free(self.pkey)

    def sign(self, data: bytes) -> bytes:
        library = self._library
        context = library.EVP_MD_CTX_new()
        try:
            if library.EVP_DigestSignInit(context, None, library.EVP_sha256(), None, self.pkey) != 1:
                raise OpenSSLError("EVP_DigestSignInit")
            size = _SIZE(128)  # 72 are the most for P-256
            made = ctypes.create_string_buffer(size.value)
            if library.EVP_DigestSign(context, made, ctypes.addressof(size), data, len(data)) != 1:
                raise OpenSSLError("EVP_DigestSign")
            return made.raw[: size.value]
        finally:
            library.EVP_MD_CTX_free(context)


def _encoded(encode: Any, pkey: int) -> bytes:
    size = encode(pkey, None)
    if size <= 0:
        raise OpenSSLError("i2d")
    made = ctypes.create_string_buffer(size)
    at = _POINTER(ctypes.addressof(made))
    encode(pkey, ctypes.addressof(at))
    return made.raw
