"""What a task trusts where some of its hosts are read: files it cannot write, and variables (INS-2; B109, B110).

Rules of the file:

* The bundle is the machine's roots (in a container its image's), the roots that the caller's own variables name, Java's
  stores too, outside of containers those that the caller's tools have besides (own_roots), and the authority of the
  task: nothing that was trusted before is trusted no more. Destinations are verified against the machine's and those
  of variables alone.
* Nothing of the machine or of an image is written. The files are made in the task's own mounts, also over the
  distribution's bundles, which a program without any variable reads.
* Which variables are set is the table in client_settings.

What it does not do: look into a Java trust store that is named on a java command line; that wins.
"""

from __future__ import annotations

import os
from binascii import a2b_base64

from tidegate.inspect import der
from tidegate.model.errors import StartError
from tidegate.runtime.client_settings import TRUST
from tidegate.runtime.own_roots import OPTIONS, STORE, configured, named_stores, usual_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FOLDER = "/run/tidegate"  # the task's own /run
BUNDLE = f"{FOLDER}/ca.pem"
JAVA = f"{FOLDER}/ca.p12"
SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, NixOS
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/var/lib/ca-certificates/ca-bundle.pem",
    "/etc/ssl/cert.pem",  # Alpine
)
_MOST = 1 << 24  # bytes of one file: the largest bundle in use has a quarter of a MiB
_DATA = der.oid("1.2.840.113549.1.7.1")
_CERTIFICATE_BAG, _X509 = der.oid("1.2.840.113549.1.12.10.1.3"), der.oid("1.2.840.113549.1.9.22.1")
_FRIENDLY_NAME = der.oid("1.2.840.113549.1.9.20")
# Java's own attribute: an entry without it is a certificate that is not trusted. The value is "for any purpose".
_TRUSTED = der.sequence(der.oid("2.16.840.1.113894.746875.1.1"), der.tlv(der.SET, der.oid("2.5.29.37.0")))
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def roots_of(environ: Mapping[str, str]) -> str:
    """Return the machine's roots and those that the caller's variables name, each once, as PEM."""
    paths = [path for path in SYSTEM_BUNDLES if os.path.isfile(path)][:1]
    return joined((*map(_read, paths), *extra_roots(environ)))


def extra_roots(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the text of every file of roots that the caller's variables name, as it stands."""
    paths = list(named_bundles(environ))
    for folder in environ.get("SSL_CERT_DIR", "").split(":"):
        paths += _in_folder(folder)
    return (*map(_read, dict.fromkeys(paths)), named_stores(environ))


def with_own_roots(roots: str, environ: Mapping[str, str]) -> str:
    """Return what a task trusts but for its authority: `roots`, and those that the caller's tools have besides."""
    return joined((roots, *map(_read, configured(environ)), usual_store(environ)))


def named_bundles(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths that variables of the table name, in any spelling: npm reads its own so."""
    known = {name.lower() for name, value, *_ in TRUST if value == "@BUNDLE@"}
    return tuple(path for name, path in environ.items() if path and name.lower() in known)


def joined(texts: Iterable[str]) -> str:
    """Return the certificates of these texts, each once, as PEM."""
    found = dict.fromkeys(one for text in texts for one in _certificates(text))
    return "".join(f"{one}\n" for one in found)


def need_roots(environ: Mapping[str, str], *, secrets: bool = False) -> str:
    """Return what destinations are verified against where some hosts are read inside TLS, as PEM.

    `secrets` says that they are read for those, whatever else asks for it.

    Raises:
        StartError: where there is nothing to verify them against.
    """
    roots = roots_of(environ)
    if not roots:
        why = "a secret is given" if secrets else "hosts are to be read inside TLS"
        raise StartError(
            f"{why}, and this machine has no roots to verify destinations against",
            fix="install ca-certificates, or set SSL_CERT_FILE",
            code="no-roots",
        )
    return roots


class TrustFiles:
    """The files by which a task is told whom to trust; those over a distribution's `places` count only where one is.

    What needs no authority is made at once, while the gate makes that.
    """

    __slots__ = ("_bags", "_places", "_roots")

    def __init__(self, roots: str, places: Iterable[str] | None = None) -> None:
        self._roots = roots
        self._places = SYSTEM_BUNDLES if places is None else tuple(places)
        self._bags = _bags(roots, "root")

    def of(self, authority: Iterable[str]) -> tuple[tuple[str, bytes], ...]:
        """Return them: (path, content)."""
        own = "".join(one if one.endswith("\n") else f"{one}\n" for one in authority)
        data = (self._roots + own).encode("latin-1")
        store = _java_store((*self._bags, *_bags(own, "task")))
        return ((BUNDLE, data), (JAVA, store), *((path, data) for path in self._places))


def trust_files(
    roots: str, authority: Iterable[str], places: Iterable[str] | None = None
) -> tuple[tuple[str, bytes], ...]:
    """Return the files of a task whose authority is known."""
    return TrustFiles(roots, places).of(authority)


def trusting(environment: Mapping[str, str]) -> dict[str, str]:
    """Return a task's variables with those by which its programs find the bundle."""
    names = {name.lower(): name for name, *_ in TRUST}
    changed = {name: value for name, value in environment.items() if names.get(name.lower(), name) == name}
    for name, value, join, *_ in TRUST:
        text = value.replace("@BUNDLE@", BUNDLE).replace("@JAVA@", JAVA)
        before = changed.get(name)
        changed[name] = f"{before} {text}" if before and join == "append" else text
        if join == "append":  # Java's: where a program's own options name a store, the last one counts
            changed.update({one: f"{changed[one]} {text}" for one in OPTIONS[1:] if STORE in changed.get(one, "")})
    return changed


def _in_folder(folder: str) -> list[str]:
    if not os.path.isabs(folder):
        return []
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names if name.endswith((".pem", ".crt", ".cer"))]


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST).decode("latin-1")
    except OSError:
        return ""  # nothing could be read from it before, either


def _certificates(text: str) -> list[str]:
    # Each block as it stands, without what is written around it.
    found = []
    clean = not any(sign in text for sign in ("\r", "\t", " \n", "\n "))  # as nearly every bundle is
    at = text.find(_BEGIN)
    while at >= 0:
        end = text.find(_END, at)
        if end < 0:
            break
        block = text[at : end + len(_END)]
        found.append(block if clean else "\n".join(line.strip() for line in block.splitlines()))
        at = text.find(_BEGIN, end)
    return found


def _bags(pem: str, alias: str) -> list[bytes]:
    found = []
    for number, one in enumerate(_certificates(pem)):
        try:
            certificate = a2b_base64(one[len(_BEGIN) : -len(_END)])
        except ValueError:
            continue  # it was no certificate before, either
        if der.is_whole(certificate):
            found.append(_bag(certificate, f"{alias}-{number}"))
    return found


def _java_store(bags: Iterable[bytes]) -> bytes:
    # RFC 7292: certificates in the clear, with no password and no MAC. What is in it is public, the task cannot write
    # it, and a JVM that is told no password reads it so. No library is loaded for it: each start would wait for that.
    safe = der.tlv(der.OCTETS, der.sequence(*bags))
    content = der.sequence(der.sequence(_DATA, der.tlv(0xA0, safe)))
    return der.sequence(der.integer(3), der.sequence(_DATA, der.tlv(0xA0, der.tlv(der.OCTETS, content))))


def _bag(certificate: bytes, alias: str) -> bytes:
    # SEQUENCE {certBag, [0] {SEQUENCE {x509Certificate, [0] {OCTET STRING}}}, SET {trusted, friendlyName}}
    name = der.sequence(_FRIENDLY_NAME, der.tlv(der.SET, der.tlv(der.BMP, alias.encode("utf-16-be"))))
    attributes = der.tlv(der.SET, _TRUSTED, name)
    size = len(certificate)
    heads = []
    for tag, before in ((der.OCTETS, b""), (0xA0, _X509), (der.SEQUENCE, b""), (0xA0, _CERTIFICATE_BAG)):
        head = before + der.head(tag, size)
        size += len(head)
        heads.append(head)
    heads.append(der.head(der.SEQUENCE, size + len(attributes)))
    return b"".join((*reversed(heads), certificate, attributes))


def renew_files(mounted: Mapping[str, str], files: Mapping[str, bytes]) -> None:
    """Write other contents into files that are mounted somewhere: `mounted` leads from their places to them.

    They keep their place on the disk, by which a mount knows them. Who reads one at that moment may read it torn.

    Raises:
        StartError: where one cannot be written.
    """
    try:
        for place, source in mounted.items():
            if place not in files:
                continue
            descriptor = os.open(source, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "wb") as file:
                file.write(files[place])
                file.truncate()
    except OSError as error:
        raise StartError(f"{error.filename} cannot be written: {error.strerror}", code="trust") from None
