"""The authority for relays outside of this machine's kernel, and the one certificate that each task has (HLD-4).

    <state>/run/ca/authority.pem    its key and certificate, for this user alone (0600); nothing else is kept

Rules of the file: an authority signs for nothing but its own listener and tasks; its key leaves no process that signs,
and no container ever sees it. A task's certificate is good for seven days, then its route is gone. Everything begins a
day early: clocks of virtual machines lag behind after sleep. The profile is that of model/certificate_profile.py.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import os
import stat
from hashlib import sha256

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from tidegate.holds.container.relay.words import SERVER_NAME
from tidegate.model.certificate_profile import PEM, builder, name, new_key, private_pem, time, usage
from tidegate.model.errors import StartError
from tidegate.model.value import Value

FOLDER = "run/ca"
FILE = "authority.pem"
AUTHORITY_DAYS = 3650
RENEW_DAYS = 30
TASK_LIFE = 7 * 86400.0  # seconds
_DAY = dt.timedelta(days=1)


class TaskKeys(Value):
    """What a task's second relay is given: key and certificate, and whom to trust. `ends_at` is Unix time.

    `fingerprint` is the SHA-256 of the certificate, by which the listener knows the task.
    """

    pem: bytes
    authority: bytes
    fingerprint: str
    ends_at: float


class Authority:
    """See the head of the file."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self.certificate = certificate

    @property
    def pem(self) -> bytes:
        """Its certificate. Public."""
        return self.certificate.public_bytes(PEM)

    def task(self, name: str, now: float, life: float = TASK_LIFE) -> TaskKeys:
        """Return a new certificate for a task; `life` is in seconds."""
        pem, certificate = self._leaf(f"tidegate task {name}"[:64], ExtendedKeyUsageOID.CLIENT_AUTH, now, life, None)
        ends_at = certificate.not_valid_after_utc.timestamp()
        return TaskKeys(
            pem, self.pem, sha256(certificate.public_bytes(serialization.Encoding.DER)).hexdigest(), ends_at
        )

    def listener(self, now: float) -> bytes:
        """Return key and certificate of the listener, as PEM; they live as long as its process."""
        life = self.certificate.not_valid_after_utc.timestamp() - now
        names = x509.SubjectAlternativeName([x509.DNSName(SERVER_NAME)])
        return self._leaf("tidegate listener for relays", ExtendedKeyUsageOID.SERVER_AUTH, now, life, names)[0]

    def _leaf(
        self,
        subject: str,
        purpose: x509.ObjectIdentifier,
        now: float,
        life: float,
        names: x509.SubjectAlternativeName | None,
    ) -> tuple[bytes, x509.Certificate]:
        key = new_key()
        made = builder(
            name(subject),
            self.certificate.subject,
            key.public_key(),
            self._key.public_key(),
            time(now) - _DAY,
            time(now + life),
        )
        made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        made = made.add_extension(usage(signs=False), critical=True)
        made = made.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        if names is not None:
            made = made.add_extension(names, critical=False)
        certificate = made.sign(self._key, hashes.SHA256())
        return private_pem(key) + certificate.public_bytes(PEM), certificate


def open_authority(state: str, now: float) -> Authority:
    """Return the authority of this state folder; made anew where there is none, or where it is nearly over.

    Raises:
        StartError: when it cannot be kept for this user alone.
    """
    folder = os.path.join(state, FOLDER)
    path = os.path.join(folder, FILE)
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            _check_private(folder, os.fstat(fd))
            found = _read(path, now)
            if found is None:
                found = _make(now)
                _write(path, private_pem(found._key) + found.pem)  # noqa: SLF001 - the one place that keeps it
        finally:
            os.close(fd)
    except OSError as error:
        raise StartError(f"{path} cannot be used: {error.strerror}", fix="see who owns it", code="authority") from None
    return found


def _read(path: str, now: float) -> Authority | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(fd, "rb") as file:
        _check_private(path, os.fstat(fd))
        content = file.read(1 << 16)
    try:
        key = serialization.load_pem_private_key(content, None)
        certificate = x509.load_pem_x509_certificate(content[content.index(b"-----BEGIN CERTIFICATE") :])
    except ValueError:
        raise StartError(f"{path} is no key with its certificate", fix="move it away", code="authority") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise StartError(f"{path}: the key is not that of its certificate", fix="move it away", code="authority")
    left = certificate.not_valid_after_utc - time(now)
    return Authority(key, certificate) if left > dt.timedelta(days=RENEW_DAYS) else None


def _check_private(path: str, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise StartError(f"{path} is not yours", fix="move it away", code="authority")
    if stat.S_IMODE(found.st_mode) & 0o077:
        mode = 700 if stat.S_ISDIR(found.st_mode) else 600
        raise StartError(
            f"{path} is open to others", fix=f"chmod {mode} {path}, and move it away if they read it", code="authority"
        )


def _make(now: float) -> Authority:
    key = new_key()
    subject = name("tidegate relays of this user")
    public = key.public_key()
    ends = time(now) + dt.timedelta(days=AUTHORITY_DAYS)
    made = builder(subject, subject, public, public, time(now) - _DAY, ends)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    made = made.add_extension(usage(signs=True), critical=True)
    return Authority(key, made.sign(key, hashes.SHA256()))


def _write(path: str, content: bytes) -> None:
    fresh = f"{path}.new"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(content)
    os.replace(fresh, path)
