"""The roots of a task's authority, read by the library; strict verifiers try them in test_authority.py."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

import tidegate
from tidegate.inspect.first_key import Key
from tidegate.inspect.roots import AUTHORITY_LIFE, BACKDATED, make_roots
from tidegate.policy.scope import Scope

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

NOW = 1_900_000_000.0  # a day in 2030
BOTH = Scope(names=("a.test", "pypi.org"), suffixes=("b.test",), literals=("1.2.3.4", "2600:beef::1"))


def key_of(root: x509.Certificate) -> EllipticCurvePublicKey:
    """Its public key."""
    return root.public_key()  # type: ignore[return-value]


@pytest.mark.parametrize("now", [NOW, 2_524_607_990.0, 4_000_000_000.0])  # beyond 2050 time is written otherwise
def test_they_are_what_a_library_would_make(now: float) -> None:
    """INS-1: version, names, time, serial, extensions and their order, and a signature that verifies."""
    made = make_roots(BOTH, "20300101-000000-abcd", now)
    for der, subject in ((made.names, "tidegate 2030"), (made.literals, "tidegate addresses 2030")):
        root = x509.load_der_x509_certificate(der)
        root.verify_directly_issued_by(root)
        assert root.version is x509.Version.v3
        assert root.subject.rfc4514_string().startswith(f"CN={subject}")
        assert root.not_valid_before_utc.timestamp() == now - BACKDATED
        assert root.not_valid_after_utc.timestamp() == now + AUTHORITY_LIFE
        assert root.serial_number.bit_length() == 159
        assert isinstance(root.signature_hash_algorithm, hashes.SHA256)
        for extension, critical in (
            (x509.SubjectKeyIdentifier.from_public_key(key_of(root)), False),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(key_of(root)), False),
            (x509.BasicConstraints(ca=True, path_length=0), True),
        ):
            found = root.extensions.get_extension_for_oid(extension.oid)
            assert (found.value, found.critical) == (extension, critical)
        usage = root.extensions.get_extension_for_class(x509.KeyUsage).value
        assert (usage.key_cert_sign, usage.crl_sign, usage.digital_signature) == (True, True, False)
    assert made.ends_at == now + AUTHORITY_LIFE


def test_one_key_and_no_root_without_need() -> None:
    """INS-1: names and addresses have a root each, with one key; what is not inspected has none."""
    key = Key()
    made = make_roots(BOTH, "t", NOW, key=key)
    roots = [x509.load_pem_x509_certificate(text.encode()) for text in made.pem]
    assert made.private == key.private
    assert [key_of(root).public_numbers() for root in roots] == [key_of(roots[0]).public_numbers()] * 2
    assert make_roots(Scope(names=("a.test",)), "t", NOW).literals == b""
    assert make_roots(Scope(literals=("1.2.3.4",)), "t", NOW).names == b""
    assert len(make_roots(Scope(everything=True), "t" * 100, NOW).pem) == 1


def test_no_library_is_loaded() -> None:
    """INS-7: a start that makes them loads nothing of what reads inside TLS."""
    program = (
        "import sys\nfrom tidegate.inspect.roots import make_roots\nfrom tidegate.policy.scope import Scope\n"
        "make_roots(Scope(names=('a.test',)), 't', 1.0)\n"
        "print([name for name in ('cryptography', 'ssl', 'h2', 'hashlib', '_hashlib') if name in sys.modules])"
    )
    source = os.path.dirname(os.path.dirname(tidegate.__file__))
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert done.stdout.strip() == "[]", done.stderr
