"""What every certificate of ours is like, whoever signs it."""

from __future__ import annotations

import ast
import datetime as dt
import os
import subprocess
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

import tidegate
from tidegate.model.certificate_profile import PEM, builder, name, new_key, private_pem, time, usage

if TYPE_CHECKING:
    from pathlib import Path

NOW = dt.datetime.now(dt.UTC)
DAY = dt.timedelta(days=1)


def test_openssl_takes_what_has_this_profile(tmp_path: Path) -> None:
    """INS-1, HLD-4, B103: both key identifiers, one use of the key, a random serial, P-256: strict verifiers agree."""
    key, leaf_key = new_key(), new_key()
    signer = key.public_key()
    assert isinstance(signer.curve, ec.SECP256R1)
    root = (
        builder(name("a root"), name("a root"), signer, signer, NOW - DAY, NOW + DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    leaf = (
        builder(name("a leaf"), root.subject, leaf_key.public_key(), signer, NOW - DAY, NOW + DAY)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage(signs=False), critical=True)
        .sign(key, hashes.SHA256())
    )
    assert root.serial_number != leaf.serial_number
    (tmp_path / "root.pem").write_bytes(root.public_bytes(PEM))
    (tmp_path / "leaf.pem").write_bytes(leaf.public_bytes(PEM))
    argv = ["openssl", "verify", "-x509_strict", "-CAfile", str(tmp_path / "root.pem"), str(tmp_path / "leaf.pem")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_key_is_written_as_it_is() -> None:
    """HLD-4: what was written is the same key."""
    key = new_key()
    found = load_pem_private_key(private_pem(key), None)
    assert isinstance(found, ec.EllipticCurvePrivateKey)
    assert found.private_numbers() == key.private_numbers()
    assert time(0.0) == dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def test_no_other_module_has_a_profile_of_its_own() -> None:
    """B103: whoever signs begins with this one."""
    own = os.path.join("model", "certificate_profile.py")
    source = os.path.dirname(tidegate.__file__)
    found = set()
    for folder, _folders, files in os.walk(source):
        for file in files:
            path = os.path.join(folder, file)
            if not file.endswith(".py"):
                continue
            with open(path, encoding="utf-8") as text:
                tree = ast.parse(text.read())
            calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
            if any(isinstance(one, ast.Attribute) and one.attr == "CertificateBuilder" for one in calls):
                found.add(os.path.relpath(path, source))
    assert found == {own}
