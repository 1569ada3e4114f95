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
        why = "a secret is given" if secrets else "the policy names methods or paths"
        raise StartError(
            f"{why}, and this machine has no roots to verify destinations against",
            fix="install ca-certificates, or set SSL_CERT_FILE",
            code="no-roots",
        )
    return roots


def trust_files(
    roots: str, authority: Iterable[str], places: Iterable[str] | None = None
) -> tuple[tuple[str, bytes], ...]:
    """Return the files of a task: (path, content); those over a distribution's `places` count only where one is.

    Without `places` they are all that are known.
    """
    bundle = roots + "".join(one if one.endswith("\n") else f"{one}\n" for one in authority)
    data = bundle.encode("ascii")
    over = SYSTEM_BUNDLES if places is None else places
    return ((BUNDLE, data), (JAVA, _java_store(bundle)), *((path, data) for path in over))


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
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(_MOST)
    except OSError:
        return ""  # nothing could be read from it before, either


def _certificates(text: str) -> list[str]:
    # Each block as it stands, without what is written around it.
    found = []
    at = text.find(_BEGIN)
    while at >= 0:
        end = text.find(_END, at)
        if end < 0:
            break
        block = text[at : end + len(_END)]
        found.append("\n".join(line.strip() for line in block.splitlines()))
        at = text.find(_BEGIN, end)
    return found


def _java_store(bundle: str) -> bytes:
    # A trust store without a password: what is in it is public, and the JVM reads it without being told one.
    import warnings

    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12

    certificates = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of roots with odd serial numbers, which are what they are
        for number, one in enumerate(_certificates(bundle)):
            try:
                certificate = x509.load_pem_x509_certificate(one.encode("ascii"))
            except ValueError:
                continue  # some old root that this library refuses; Java would too
            certificates.append(pkcs12.PKCS12Certificate(certificate, b"root-%d" % number))
    return pkcs12.serialize_java_truststore(certificates, NoEncryption())


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
