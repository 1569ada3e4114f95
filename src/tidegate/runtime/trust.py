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
from tidegate.runtime.java_store import bags, java_store
from tidegate.runtime.own_roots import OPTIONS, STORE, configured, named_stores, usual_store
from tidegate.runtime.root_pool import RootPool

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
_SUFFIXES = (".pem", ".crt", ".cer")
_HASHED = 8  # hex digits of a name's hash, by which OpenSSL finds a root in a folder (openssl-rehash(1))


def roots_of(environ: Mapping[str, str]) -> str:
    """Return the machine's roots and those that the caller's variables name, each once, as PEM."""
    return roots_pool(environ).pem


def roots_pool(environ: Mapping[str, str]) -> RootPool:
    """Return the same, to be added to."""
    pool = RootPool()
    _add(pool, [path for path in SYSTEM_BUNDLES if os.path.isfile(path)][:1] + _named(environ))
    pool.add_der(named_stores(environ))
    return pool


def extra_roots(environ: Mapping[str, str]) -> str:
    """Return what the caller's variables name besides, each once, as PEM."""
    pool = RootPool()
    _add(pool, _named(environ))
    pool.add_der(named_stores(environ))
    return pool.pem


def with_own_roots(pool: RootPool, environ: Mapping[str, str]) -> RootPool:
    """Return what a task trusts but for its authority: these, and those that the caller's tools have besides."""
    made = pool.copy()
    _add(made, configured(environ))
    made.add_der(usual_store(environ))
    return made


def named_bundles(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths that variables of the table name, in any spelling: npm reads its own so."""
    known = {name.lower() for name, value, *_ in TRUST if value == "@BUNDLE@"}
    return tuple(path for name, path in environ.items() if path and name.lower() in known)


def joined(texts: Iterable[str]) -> str:
    """Return the certificates of these texts, each once, as PEM."""
    return RootPool("\n".join(texts)).pem


def need_roots(environ: Mapping[str, str], *, secrets: bool = False) -> RootPool:
    """Return what destinations are verified against where some hosts are read inside TLS.

    `secrets` says that they are read for those, whatever else asks for it.

    Raises:
        StartError: where there is nothing to verify them against.
    """
    roots = roots_pool(environ)
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

    __slots__ = ("_bags", "_places", "roots")

    def __init__(self, roots: RootPool, places: Iterable[str] | None = None) -> None:
        self.roots = roots.pem
        self._places = SYSTEM_BUNDLES if places is None else tuple(places)
        self._bags = bags(roots.certificates(), "root")

    def of(self, authority: Iterable[str]) -> tuple[tuple[str, bytes], ...]:
        """Return them: (path, content)."""
        own = "".join(one if one.endswith("\n") else f"{one}\n" for one in authority)
        data = (self.roots + own).encode("latin-1")
        store = java_store((*self._bags, *bags(RootPool(own).certificates(), "task")))
        return ((BUNDLE, data), (JAVA, store), *((path, data) for path in self._places))


def trust_files(
    roots: str, authority: Iterable[str], places: Iterable[str] | None = None
) -> tuple[tuple[str, bytes], ...]:
    """Return the files of a task whose authority is known."""
    return TrustFiles(RootPool(roots), places).of(authority)


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


def _named(environ: Mapping[str, str]) -> list[str]:
    paths = list(named_bundles(environ))
    for folder in environ.get("SSL_CERT_DIR", "").split(":"):
        paths += _in_folder(folder)
    return paths


def _in_folder(folder: str) -> list[str]:
    if not os.path.isabs(folder):
        return []
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    files = sorted(name for name in names if name.endswith(_SUFFIXES))
    known = frozenset(files)
    for name in names:
        # Most of these are links to the others; OpenSSL reads nothing else.
        if name.find(".") == _HASHED and name[_HASHED + 1 :].isdigit():
            try:
                beside = os.readlink(f"{folder}/{name}") in known
            except OSError:
                beside = False
            if not beside:
                files.append(name)
    return [f"{folder}/{name}" for name in files]


def _add(pool: RootPool, paths: Iterable[str]) -> None:
    """Take what is in these files, each file once whatever names lead to it; one that cannot be read is left out."""
    for path in dict.fromkeys(paths):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue  # nothing could be read from it before, either
        try:
            found = os.fstat(descriptor)
            key = found.st_dev, found.st_ino
            if key not in pool.files:
                pool.files.add(key)
                pool.add(_read(descriptor, found.st_size))
        except OSError:
            continue
        finally:
            os.close(descriptor)


def _read(descriptor: int, size: int) -> bytes:
    data = os.read(descriptor, min(size + 1, _MOST))  # one more than it has: the end is seen by that
    if len(data) == size:
        return data
    parts = [data]
    left = _MOST - len(data)
    while left > 0 and (data := os.read(descriptor, min(left, 1 << 16))):
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


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
