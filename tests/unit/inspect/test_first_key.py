"""The first key of a task, by OpenSSL and by the library where that is not to be had."""

from __future__ import annotations

import gc
from typing import cast

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tidegate.inspect import first_key
from tidegate.inspect.first_key import Key


@pytest.fixture(params=["libcrypto.so.3", "libnowhere.so.3", "libc.so.6"], ids=["openssl", "none", "without-names"])
def key(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Key:
    """A key where the system has such a library."""
    monkeypatch.setattr(first_key, "LIBRARY", request.param)
    if request.param.startswith("libcrypto") and first_key._library() is None:
        pytest.skip("there is no OpenSSL 3 here beside Python's own")
    return Key()


def test_the_library_reads_it_and_verifies_what_it_signs(key: Key) -> None:
    """INS-1: P-256, the same point, and ECDSA over SHA-256; a signature of something else does not verify."""
    loaded = cast("ec.EllipticCurvePrivateKey", serialization.load_der_private_key(key.private, None))
    assert isinstance(loaded.curve, ec.SECP256R1)
    public = loaded.public_key()
    point = public.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    assert key.point == point
    for data in (b"", b"x", bytes(100_000), b"\0behind"):
        signature = key.sign(data)
        public.verify(signature, data, ec.ECDSA(hashes.SHA256()))
        with pytest.raises(InvalidSignature):
            public.verify(signature, data + b"x", ec.ECDSA(hashes.SHA256()))
    assert key.sign(b"x") != key.sign(b"x"), "a number used twice gives the key away"


def test_each_is_another_and_none_stays() -> None:
    """INS-1: keys are fresh; one that nobody has is freed (a server makes one for each task)."""

    def size() -> int:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[5])

    assert len({Key().private for _ in range(50)}) == 50
    gc.collect()
    before = size()
    for _ in range(3000):
        Key()
    assert size() - before < 256, "pages; 3,000 keys that stayed would be some 2,000"
