"""What a task trusts: everything that was trusted before, and its authority."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest
import trustme

from tidegate.runtime import trust
from tidegate.runtime.client_settings import TRUST
from tidegate.runtime.trust import BUNDLE, JAVA, SYSTEM_BUNDLES, TrustFiles, roots_of, roots_pool, trusting

if TYPE_CHECKING:
    from pathlib import Path


def pem(authority: trustme.CA) -> str:
    """Its certificate."""
    return authority.cert_pem.bytes().decode()


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """A machine with one root."""
    root = trustme.CA()
    bundle = tmp_path / "system.pem"
    bundle.write_text("# comment\n" + pem(root) + pem(root))
    monkeypatch.setattr(trust, "SYSTEM_BUNDLES", (str(tmp_path / "none"), str(bundle)))
    return root


def count(text: str) -> int:
    """How many certificates a text holds."""
    return text.count("BEGIN CERTIFICATE")


def test_the_callers_own_roots_stay(system: trustme.CA, tmp_path: Path) -> None:
    """B109, B110: system, then what each variable of the table and SSL_CERT_DIR name; each certificate once."""
    own, other, third = trustme.CA(), trustme.CA(), trustme.CA()
    (tmp_path / "own.pem").write_text(pem(own) + pem(system))
    (tmp_path / "other.pem").write_text(pem(other))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "third.crt").write_text(pem(third))
    (folder / "01234567.0").symlink_to("third.crt")
    (folder / "README").write_text("no certificate")
    environ = {
        "SSL_CERT_FILE": str(tmp_path / "own.pem"),
        "REQUESTS_CA_BUNDLE": str(tmp_path / "other.pem"),
        "SSL_CERT_DIR": f"{folder}:/none",
        "CURL_CA_BUNDLE": str(tmp_path / "missing.pem"),
    }
    roots = roots_of(environ)
    assert count(roots) == 4
    for authority in (system, own, other, third):
        assert "".join(pem(authority).split()) in "".join(roots.split())
    assert count(roots_of({})) == 1


def test_a_folder_of_hashed_names_counts(system: trustme.CA, tmp_path: Path) -> None:
    """B109: OpenSSL finds roots in a folder by their hashes alone: as files, and as links that lead out of it."""
    del system
    file, link, other = trustme.CA(), trustme.CA(), trustme.CA()
    folder = tmp_path / "hashed"
    folder.mkdir()
    (folder / "89abcdef.0").write_text(pem(file))
    (tmp_path / "elsewhere").write_text(pem(link))
    (folder / "89abcdef.11").symlink_to(tmp_path / "elsewhere")
    (folder / "89abcdef.r0").write_text(pem(other))  # a revocation list's name
    (folder / "89abcdef.2").symlink_to("nowhere")
    roots = "".join(roots_of({"SSL_CERT_DIR": str(folder)}).split())
    assert "".join(pem(file).split()) in roots
    assert "".join(pem(link).split()) in roots
    assert "".join(pem(other).split()) not in roots


def test_a_bundle_may_be_a_pipe(system: trustme.CA, tmp_path: Path) -> None:
    """B109: what a variable names is read to its end, also where it has no size (bash's <(...))."""
    del system
    one = trustme.CA()
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = subprocess.Popen(["sh", "-c", 'printf "%s" "$1" >"$0"; ', str(path), "\n" * 70000 + pem(one)])
    try:
        assert "".join(pem(one).split()) in "".join(roots_of({"SSL_CERT_FILE": str(path)}).split())
    finally:
        writer.wait(60)


def test_a_run_inside_a_run_does_not_grow(system: trustme.CA, tmp_path: Path) -> None:
    """B110: what a task within a task merges is there already; only its own authority is new."""
    del system
    authority = pem(trustme.CA())
    bundle = dict(TrustFiles(roots_pool({})).of([authority]))[BUNDLE].decode()
    (tmp_path / "ca.pem").write_text(bundle)
    inner = roots_of(dict.fromkeys(("SSL_CERT_FILE", "PIP_CERT", "GIT_SSL_CAINFO"), str(tmp_path / "ca.pem")))
    assert count(inner) == count(bundle) == 2


def test_every_variable_of_the_table_leads_to_the_bundle() -> None:
    """INS-2: all of them are set; Java's options are added to the caller's, the others name the merged file."""
    changed = trusting({"JAVA_TOOL_OPTIONS": "-Xmx1g", "PIP_CERT": "/x", "KEPT": "yes"})
    assert changed["KEPT"] == "yes"
    assert changed["JAVA_TOOL_OPTIONS"].startswith("-Xmx1g -Djavax.net.ssl.trustStore=" + JAVA)
    assert {changed[name] for name, *_ in TRUST if name != "JAVA_TOOL_OPTIONS"} == {BUNDLE}


def test_the_files_of_a_task(system: trustme.CA) -> None:
    """INS-2: the bundle holds roots and authority and is one that OpenSSL loads; it is what lies over the system's."""
    authority = pem(trustme.CA())
    files = dict(TrustFiles(roots_pool({})).of([authority]))
    assert set(files) == {BUNDLE, JAVA, *trust.SYSTEM_BUNDLES}
    assert len(set(files.values())) == 2
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=files[BUNDLE].decode())
    assert len(context.get_ca_certs()) == 2
    assert pem(system).strip() in files[BUNDLE].decode()


@pytest.mark.skipif(shutil.which("keytool") is None, reason="keytool is not installed")
def test_java_reads_its_trust_store_without_a_password(system: trustme.CA, tmp_path: Path) -> None:
    """INS-2: PKCS12, entries marked as trusted."""
    del system
    (tmp_path / "ca.p12").write_bytes(dict(TrustFiles(roots_pool({})).of([pem(trustme.CA())]))[JAVA])
    argv = ["keytool", "-list", "-keystore", str(tmp_path / "ca.p12"), "-storetype", "PKCS12", "-storepass", ""]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.stdout.count("trustedCertEntry") == 2, done.stdout + done.stderr


def test_this_machines_own_roots_are_found() -> None:
    """INS-2: on a machine with a bundle, its roots are all there, and each is one that loads."""
    if not any(os.path.isfile(path) for path in SYSTEM_BUNDLES):
        pytest.skip("this machine has no bundle of roots")
    roots = roots_of({})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=roots)
    assert len(context.get_ca_certs()) > 50
