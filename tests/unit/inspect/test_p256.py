"""P-256 as far as a start needs it, held to the library."""

from __future__ import annotations

import hashlib

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.inspect import p256

SCALARS = st.one_of(st.integers(1, p256.N - 1), st.sampled_from([1, 2, 15, 16, 17, 1 << 255, p256.N - 2, p256.N - 1]))
SIGNED = ec.ECDSA(Prehashed(hashes.SHA256()))


def public(secret: int) -> ec.EllipticCurvePublicKey:
    """The library's public key of a number."""
    return ec.derive_private_key(secret, ec.SECP256R1()).public_key()


@settings(max_examples=60)
@given(SCALARS)
def test_the_public_key_is_the_librarys(secret: int) -> None:
    """INS-1: for any number, those at the edges of the group and of the windows too."""
    assert p256.public_point(secret) == public(secret).public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


@settings(max_examples=30)
@given(st.binary(min_size=32, max_size=32), st.integers(1, 3))
def test_the_library_verifies_what_is_signed(digest: bytes, times: int) -> None:
    """INS-1: the first signature, for which half was made ahead, and later ones; none with the same r."""
    key = p256.Key()
    made = [key.sign(digest) for _ in range(times)]
    for one in made:
        public(key.secret).verify(encode_dss_signature(*one), digest, SIGNED)
    assert len({r for r, _ in made}) == times
    with pytest.raises(InvalidSignature):
        public(key.secret).verify(encode_dss_signature(*made[0]), hashlib.sha256(digest).digest(), SIGNED)


def test_numbers_are_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-1: from the kernel, each time anew, and never outside of the group."""
    answers = iter([bytes(32), b"\xff" * 32, (p256.N).to_bytes(32, "big"), (p256.N - 1).to_bytes(32, "big")])
    monkeypatch.setattr(p256.os, "urandom", lambda _count: next(answers))
    assert p256.random_scalar() == p256.N - 1
    monkeypatch.undo()
    assert p256.Key().secret != p256.Key().secret
