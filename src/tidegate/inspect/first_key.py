"""The key of a task's authority, and the signatures under its roots, by the system's OpenSSL (INS-1).

Importing `cryptography` takes 50 ms and 16 MB, which is as long as all the rest of a start and more than all the rest
of a gate; most tasks never open a connection that is read. libcrypto alone, which Python's own `ssl` brings, makes the
key and signs in 3 ms (docs/decisions/0018). Where there is none (a Python that has OpenSSL built in), or an older one
than 3.0, `cryptography` does the same.

The private module `_ctypes` is used as it is, as in holds/linux.py: `ctypes` itself takes 4 ms, as long as the rest.

EVP_PKEY_Q_keygen(3), EVP_DigestSign(3), i2d_PrivateKey(3), i2d_PUBKEY(3).
"""

from __future__ import annotations

import _ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LIBRARY = "libcrypto.so.3"
_POINT = 65  # bytes of an uncompressed point (SEC 1 section 2.3.3), at the end of its SubjectPublicKeyInfo


class _Byte(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001  (see the head comment)
    _type_ = "B"


class _Pointer(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001
    _type_ = "P"


class _Size(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001
    _type_ = "L"


class _Number(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001
    _type_ = "i"


_PROTOTYPES = {
    "EVP_PKEY_Q_keygen": (_Pointer, (_Pointer, _Pointer, _Pointer, _Pointer)),
    "EVP_PKEY_free": (None, (_Pointer,)),
    "i2d_PrivateKey": (_Number, (_Pointer, _Pointer)),
    "i2d_PUBKEY": (_Number, (_Pointer, _Pointer)),
    "EVP_sha256": (_Pointer, ()),
    "EVP_MD_CTX_new": (_Pointer, ()),
    "EVP_MD_CTX_free": (None, (_Pointer,)),
    "EVP_DigestSignInit": (_Number, (_Pointer, _Pointer, _Pointer, _Pointer, _Pointer)),
    "EVP_DigestSign": (_Number, (_Pointer, _Pointer, _Pointer, _Pointer, _Size)),
}  # fmt: skip


class Key:
    """A fresh key on P-256. `private` is DER, as `cryptography` loads it; `point` the public key, uncompressed."""

    __slots__ = ("_sign", "point", "private")

    def __init__(self) -> None:
        self.private, self.point, self._sign = _by_openssl() or _by_library()

    def sign(self, data: bytes) -> bytes:
        """Return the ECDSA signature of the data with SHA-256, as DER (RFC 3279 section 2.2.3).

        Raises:
            OpenSSLError: where libcrypto made none.
        """
        return self._sign(data)


class OpenSSLError(Exception):
    """libcrypto did not do what it never fails to do."""


class _Library:
    """The functions of the table above, of a library that has them all."""

    def __init__(self, name: str) -> None:
        handle = _ctypes.dlopen(name, os.RTLD_NOW)
        for function, (result, arguments) in _PROTOTYPES.items():
            about = {"_flags_": _ctypes.FUNCFLAG_CDECL, "_restype_": result, "_argtypes_": arguments}
            kind = type(function, (_ctypes.CFuncPtr,), about)
            setattr(self, function, kind(_ctypes.dlsym(handle, function)))


_loaded: dict[str, _Library | None] = {}


def _library() -> Any | None:
    if LIBRARY not in _loaded:
        try:
            _loaded[LIBRARY] = _Library(LIBRARY)
        except OSError:
            _loaded[LIBRARY] = None
    return _loaded[LIBRARY]


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
            size = _Size(128)  # 72 are the most for P-256
            made = _memory(size.value)
            if library.EVP_DigestSign(context, _ctypes.addressof(made), _ctypes.addressof(size), data, len(data)) != 1:
                raise OpenSSLError("EVP_DigestSign")
            return bytes(made)[: size.value]
        finally:
            library.EVP_MD_CTX_free(context)


def _encoded(encode: Any, pkey: int) -> bytes:
    size = encode(pkey, None)
    if size <= 0:
        raise OpenSSLError("i2d")
    made = _memory(size)
    at = _Pointer(_ctypes.addressof(made))
    encode(pkey, _ctypes.addressof(at))
    return bytes(made)


def _memory(size: int) -> Any:
    return type("_Memory", (_ctypes.Array,), {"_type_": _Byte, "_length_": size})()
