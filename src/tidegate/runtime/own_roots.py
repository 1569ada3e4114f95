"""The roots that a caller's own tools trust by more than variables with bundles: Java's stores, and files in the home.

Rules of the file:

* Where some hosts are read, variables that name the task's bundle count more than these files and stores (INS-2). What
  they name goes into that bundle, so that nothing that was trusted is trusted no more.
* A store that a variable names is the caller's word. A file in the home folder may have been written by a task, so what
  it names is trusted by tasks only, as what a JVM trusts by itself: destinations are never verified against it.
* Nothing here fails: what cannot be read was of no use to the tool, either.

It reads PEM, JKS and PKCS12, and of a tool's file one line. What it does not do: projects' files, and Java's policies.
"""

from __future__ import annotations

import os
import struct
from struct import unpack_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

OPTIONS = (
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "JAVA_OPTS",
    "MAVEN_OPTS",
    "GRADLE_OPTS",
    "SBT_OPTS",
)
"""Variables with options for a JVM: the first is read by the JVM, the others by it or by programs' own scripts."""
STORE = "-Djavax.net.ssl.trustStore="

_PASSWORD = "-Djavax.net.ssl.trustStorePassword="  # noqa: S105  the name of an option
_USUAL = "changeit"  # the JDK's own
_JDK = ("lib/security/jssecacerts", "lib/security/cacerts")
_DEBIAN = "/etc/ssl/certs/java/cacerts"
_TRUSTED = 2  # the tag of an entry of a JKS store that is a trusted certificate
_MOST = 1 << 20  # bytes of a tool's file
_MOST_STORE = 1 << 24

# The variable that names the file, where it is without, and the word before the bundle's name.
_FILES = (
    ("npm_config_userconfig", "~/.npmrc", "cafile"),
    ("PIP_CONFIG_FILE", "~/.config/pip/pip.conf", "cert"),
    ("", "~/.pip/pip.conf", "cert"),
    ("", "/etc/pip.conf", "cert"),
    ("GIT_CONFIG_GLOBAL", "~/.gitconfig", "sslcainfo"),
    ("", "~/.config/git/config", "sslcainfo"),
    ("", "/etc/gitconfig", "sslcainfo"),
    ("", "~/.cargo/config.toml", "cainfo"),
    ("", "~/.yarnrc.yml", "httpsCaFilePath"),
    ("", "~/.bundle/config", "BUNDLE_SSL_CA_CERT"),
)


def configured(environ: Mapping[str, str]) -> list[str]:
    """Return the paths of bundles that the caller's tools are told of by files, each where it is absolute."""
    home = environ.get("HOME", "")
    found = []
    for variable, usual, word in _FILES:
        text = _text(_absolute(environ.get(variable) or usual, home))
        found += [_absolute(value, home) for value in _values(text, word)]
    return [path for path in dict.fromkeys(found) if path]


def _values(text: str, word: str) -> list[str]:
    # `word = value` or `word: value`, in whatever case, quoted or not. By hand: each start would wait for `re`.
    found = []
    for one in text.split("\n"):
        line = one.strip(" \t\r")
        rest = line[len(word) :].lstrip(" \t")
        if line[: len(word)].lower() != word.lower() or rest[:1] not in {"=", ":"}:
            continue
        value = rest[1:].strip(" \t")
        value = value[value[:1] in {'"', "'"} :]
        value = value[: len(value) - (value[-1:] in {'"', "'"})]
        if value and '"' not in value and "'" not in value:
            found.append(value)
    return found


def named_stores(environ: Mapping[str, str]) -> list[bytes]:
    """Return what is in the trust stores that the caller's options for a JVM name, as DER."""
    found = []
    for name in OPTIONS:
        words = environ.get(name, "").split()
        paths = [word.removeprefix(STORE) for word in words if word.startswith(STORE)]
        passwords = [word.removeprefix(_PASSWORD) for word in words if word.startswith(_PASSWORD)]
        for path in paths[-1:]:
            found += store(path, passwords[-1] if passwords else _USUAL)
    return found


def usual_store(environ: Mapping[str, str]) -> list[bytes]:
    """Return what a JVM trusts without any option, as DER."""
    home = environ.get("JAVA_HOME", "")
    paths = [os.path.join(home, one) for one in _JDK] if os.path.isabs(home) else []
    path = next((one for one in (*paths, _DEBIAN) if os.path.isfile(one)), "")
    return store(path, _USUAL) if path else []


def store(path: str, password: str) -> list[bytes]:
    """Return the certificates that a Java trust store holds, as DER; none where it cannot be read."""
    try:
        if not os.path.isfile(path):
            return []
        with open(path, "rb") as file:
            data = file.read(_MOST_STORE)
        return _jks(data) if data[:4] == b"\xfe\xed\xfe\xed" else _pkcs12(data, password)
    except (OSError, ValueError, IndexError, struct.error):
        return []


def _jks(data: bytes) -> list[bytes]:
    # sun.security.provider.JavaKeyStore: magic, version, count; an entry is a tag, an alias, a date and what it holds.
    version, count = unpack_from(">II", data, 4)
    at = 12
    found = []
    for _ in range(count):
        tag, size = unpack_from(">IH", data, at)
        at += 14 + size
        certificates = 1
        if tag != _TRUSTED:  # a private key, and the chain of its own certificates
            at += 4 + unpack_from(">I", data, at)[0]
            certificates = unpack_from(">I", data, at)[0]
            at += 4
        for _ in range(certificates):
            if version > 1:
                at += 2 + unpack_from(">H", data, at)[0]  # its type: X.509
            end = at + 4 + unpack_from(">I", data, at)[0]
            if end > len(data):
                raise ValueError("it ends too soon")
            if tag == _TRUSTED:
                found.append(data[at + 4 : end])
            at = end
    return found


def _pkcs12(data: bytes, password: str) -> list[bytes]:
    import warnings

    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    for secret in (password.encode(), None):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of roots' odd serial numbers, which are nothing to the person
                held = pkcs12.load_pkcs12(data, secret)
        except ValueError:
            continue
        return [one.certificate.public_bytes(Encoding.DER) for one in held.additional_certs]
    return []


def _absolute(path: str, home: str) -> str:
    if path.startswith(("~/", "${HOME}/", "$HOME/")):
        path = os.path.join(home, path.partition("/")[2])
    return path if os.path.isabs(path) else ""


def _text(path: str) -> str:
    try:
        if not os.path.isfile(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST)
    except OSError:
        return ""
