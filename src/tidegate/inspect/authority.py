"""The certificate authority of one task, and the leafs it signs (INS-1; CASES B103, B104, B106, B107).

Rules of the file:

* Keys are made here, live in this process's memory and go with it; no file, log or other process ever has them.
* Its roots, and what they may sign for, are made in roots.py, before any library is loaded; here are leafs.
* Leafs have the profile of model/certificate_profile.py, and live less than the 398 days of the Baseline Requirements.
* Everything is backdated: clocks of virtual machines lag by days after sleep.
* All leafs of a task share one key: whoever could take one could take the authority's.

Clocks come in. What it does not do: decide what is inspected (scope.py), or talk TLS (terminate.py).
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from tidegate.inspect.roots import AUTHORITY_LIFE, BACKDATED, DAY, make_roots
from tidegate.model.certificate_profile import PEM, builder, name, new_key, private_pem, time, usage
from tidegate.model.value import Value
from tidegate.policy.scope import covers

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography.hazmat.primitives.asymmetric import ec

    from tidegate.inspect.roots import Roots
    from tidegate.model.host import Host
    from tidegate.policy.scope import Scope

LEAF_LIFE = 7 * DAY
_RENEW_BELOW = 1 / 3  # of a leaf's life


class NotCoveredError(Exception):
    """This authority cannot sign for that host, or no longer."""


class Leaf(Value):
    """One leaf with its key, as PEM. `renew_at` is when another one is to be minted, `ends_at` when it is over."""

    pem: bytes
    renew_at: float
    ends_at: float


class Authority:
    """See the head of the file. `wall` gives Unix time in seconds; `task` is named in the subject, for people."""

    __slots__ = ("_key", "_leaf_key", "_leaf_key_pem", "_literals", "_names", "_roots", "_scope", "_wall", "ends_at")

    def __init__(
        self,
        scope: Scope,
        task: str,
        wall: Callable[[], float],
        life: float = AUTHORITY_LIFE,
        roots: Roots | None = None,
    ) -> None:
        if roots is None:
            roots = make_roots(scope, task, wall(), life)
        self._scope = scope
        self._wall = wall
        self._roots = roots
        self.ends_at = roots.ends_at
        self._key = cast("ec.EllipticCurvePrivateKey", load_der_private_key(roots.private, None))
        self._leaf_key = new_key()
        self._leaf_key_pem = private_pem(self._leaf_key)
        self._names, self._literals = (
            x509.load_der_x509_certificate(root) if root else None for root in (roots.names, roots.literals)
        )

    @property
    def certificates(self) -> tuple[bytes, ...]:
        """The roots that the task trusts, each as PEM. Public."""
        return tuple(text.encode("ascii") for text in self._roots.pem)

    def covers(self, host: Host) -> bool:
        """Whether it may sign for this host."""
        return covers(self._scope, host)

    def mint(self, host: Host, life: float = LEAF_LIFE) -> Leaf:
        """Return a new leaf for a host.

        Raises:
            NotCoveredError: when it was not made for this host, or its own life is over.
        """
        now = self._wall()
        root = self._names if host.packed is None else self._literals
        if root is None or not self.covers(host) or now >= self.ends_at:
            raise NotCoveredError(host.text)
        ends_at = min(now + life, self.ends_at)
        named = x509.DNSName(host.text) if host.packed is None else x509.IPAddress(ipaddress.ip_address(host.packed))
        certificate = (
            self._builder(
                # No CommonName that looks like a host: the names are in the SAN alone (RFC 6125), and a long one
                # would not fit (RFC 5280, ub-common-name).
                name("tidegate inspected host"),
                root.subject,
                self._leaf_key.public_key(),
                now,
                ends_at,
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName([named]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        pem = self._leaf_key_pem + certificate.public_bytes(PEM)
        return Leaf(pem, ends_at - (ends_at - now) * _RENEW_BELOW, ends_at)

    def _builder(
        self, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: float, ends_at: float
    ) -> x509.CertificateBuilder:
        issued_by = self._key.public_key()
        return builder(subject, issuer, key, issued_by, time(now - BACKDATED), time(ends_at))
