"""Roots that the caller's tools are told of by files and by Java's stores: found, and read whatever made them."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
import trustme

from tidegate.inspect import der
from tidegate.runtime.own_roots import configured, named_stores, store, usual_store
from tidegate.runtime.root_pool import RootPool
from tidegate.runtime.trust import BUNDLE, JAVA, roots_of, trusting, with_own_roots

if TYPE_CHECKING:
    from pathlib import Path


def pem(authority: trustme.CA) -> str:
    """Its certificate, as one word."""
    return "".join(authority.cert_pem.bytes().decode().split())


def words(certificates: list[bytes]) -> str:
    """These as PEM, without white space."""
    return "".join("".join(map(der.pem, certificates)).split())


def made(folder: Path, kind: str, *authorities: trustme.CA, password: str = "changeit") -> str:
    """Make a store by keytool."""
    if shutil.which("keytool") is None:
        pytest.skip("keytool is not here; scripts/setup installs it, as root")
    path = str(folder / f"own.{kind}")
    for number, one in enumerate(authorities):
        one.cert_pem.write_to_path(str(folder / "one.pem"))
        subprocess.run(
            ["keytool", "-importcert", "-noprompt", "-alias", f"n{number}", "-file", str(folder / "one.pem"),
             "-keystore", path, "-storetype", kind, "-storepass", password],
            check=True, capture_output=True,
        )  # fmt: skip
    return path


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_store_that_keytool_made_is_read(tmp_path: Path, kind: str) -> None:
    """INS-2: both kinds, with the password that the options name."""
    first, second = trustme.CA(), trustme.CA()
    path = made(tmp_path, kind, first, second, password="another-one")
    options = f"-Xmx1g -Djavax.net.ssl.trustStore={path} -Djavax.net.ssl.trustStorePassword=another-one"
    for variable in ("JAVA_TOOL_OPTIONS", "MAVEN_OPTS"):
        roots = words(named_stores({variable: options}))
        assert pem(first) in roots
        assert pem(second) in roots
    assert "".join(roots_of({"JAVA_TOOL_OPTIONS": options}).split()).count(pem(first)) == 1


def test_a_store_with_a_key_of_its_own_is_read_past_it(tmp_path: Path) -> None:
    """INS-2: an entry with a private key and a chain stands before a trusted certificate."""
    path = made(tmp_path, "JKS")
    subprocess.run(
        ["keytool", "-genkeypair", "-alias", "a", "-keyalg", "EC", "-dname", "CN=x", "-keystore", path, "-storetype",
         "JKS", "-storepass", "changeit", "-keypass", "changeit"],
        check=True, capture_output=True,
    )  # fmt: skip
    root = trustme.CA()
    made(tmp_path, "JKS", root)
    assert pem(root) in words(store(path, "changeit"))
    assert len(store(path, "changeit")) == 1


def test_a_root_with_an_odd_serial_number_is_read_without_a_word(tmp_path: Path) -> None:
    """INS-2, B110: some public roots are number 0; a library's warning is none of the caller's business."""
    root, key = str(tmp_path / "root.pem"), str(tmp_path / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x",
         "-set_serial", "0", "-keyout", key, "-out", root],
        check=True, capture_output=True,
    )  # fmt: skip
    subprocess.run(
        ["openssl", "pkcs12", "-export", "-nokeys", "-in", root, "-out", str(tmp_path / "s.p12"), "-passout", "pass:x"],
        check=True, capture_output=True,
    )  # fmt: skip
    with open(root, encoding="ascii") as file:
        assert words(store(str(tmp_path / "s.p12"), "x")) == "".join(file.read().split())


_MAGIC = b"\xfe\xed\xfe\xed"


@pytest.mark.parametrize(
    "data", [b"", _MAGIC, _MAGIC + bytes(8) + b"\xff" * 9, _MAGIC + b"\0\0\0\2" + b"\xff" * 40, b"0\x82"]
)
def test_a_store_that_is_none_adds_nothing(tmp_path: Path, data: bytes) -> None:
    """INS-2: cut, forged or of another kind: nothing is read, and nothing fails."""
    path = tmp_path / "store"
    path.write_bytes(data)
    assert store(str(path), "changeit") == []
    assert store(str(tmp_path), "changeit") == []
    assert store("/nowhere", "changeit") == []


def test_what_a_jvm_trusts_by_itself(tmp_path: Path) -> None:
    """INS-2: the store of JAVA_HOME goes into Java's file, and into nothing else."""
    root = trustme.CA()
    folder = tmp_path / "lib" / "security"
    folder.mkdir(parents=True)
    shutil.copy(made(tmp_path, "PKCS12", root), folder / "cacerts")
    environ = {"JAVA_HOME": str(tmp_path)}
    assert pem(root) in words(usual_store(environ))
    assert pem(root) in "".join(with_own_roots(RootPool(), environ).pem.split())
    assert pem(root) not in "".join(roots_of(environ).split())


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (".npmrc", "; cafile=/no\nregistry=https://x/\ncafile = {path}\n"),
        (".config/pip/pip.conf", "[global]\ncert = {path}\n"),
        (".gitconfig", '[http "https://x.test"]\n\tsslCAInfo = "{path}"\n'),
        (".cargo/config.toml", '[http]\ncainfo = "{path}" \n'),
        (".yarnrc.yml", "httpsCaFilePath: '{path}'\n"),
        (".bundle/config", '---\nBUNDLE_SSL_CA_CERT: "{path}"\n'),
        (".npmrc", "cafile=~/own.pem\n"),
        (".npmrc", "cafile=${{HOME}}/own.pem\n"),
    ],
)
def test_bundles_that_files_in_the_home_name(tmp_path: Path, file: str, text: str) -> None:
    """INS-2, B110: the task trusts them, since its variables count more; destinations are not verified by them."""
    root = trustme.CA()
    root.cert_pem.write_to_path(str(tmp_path / "own.pem"))
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.format(path=tmp_path / "own.pem"))
    environ = {"HOME": str(tmp_path)}
    assert str(tmp_path / "own.pem") in configured(environ)
    assert pem(root) in "".join(with_own_roots(RootPool(), environ).pem.split())
    assert pem(root) not in "".join(roots_of(environ).split())


def test_a_file_that_names_none_adds_nothing(tmp_path: Path) -> None:
    """INS-2: no line, a relative path, a folder in the file's place."""
    (tmp_path / ".npmrc").write_text("#cafile=/x\nxcafile=/y\ncafile=relative.pem\n")
    (tmp_path / ".gitconfig").mkdir()
    assert not [
        path for path in configured({"HOME": str(tmp_path)}) if path.startswith(str(tmp_path)) or path in "/x/y"
    ]


def test_options_that_name_a_store_are_given_the_tasks_behind_it() -> None:
    """INS-2: the last of several counts; options without a store are left as they are."""
    given = {"MAVEN_OPTS": "-Djavax.net.ssl.trustStore=/own -Xmx1g", "GRADLE_OPTS": "-Xmx2g"}
    changed = trusting(given)
    assert changed["MAVEN_OPTS"].startswith("-Djavax.net.ssl.trustStore=/own -Xmx1g -Djavax.net.ssl.trustStore=" + JAVA)
    assert changed["GRADLE_OPTS"] == "-Xmx2g"


def test_npms_variable_is_one_in_any_spelling(tmp_path: Path) -> None:
    """INS-2: npm reads NPM_CONFIG_CAFILE too: what it names is merged, and it goes."""
    root = trustme.CA()
    root.cert_pem.write_to_path(str(tmp_path / "own.pem"))
    given = {"NPM_CONFIG_CAFILE": str(tmp_path / "own.pem")}
    assert pem(root) in "".join(roots_of(given).split())
    changed = trusting(given)
    assert "NPM_CONFIG_CAFILE" not in changed
    assert changed["npm_config_cafile"] == BUNDLE
