"""The certificate authority of one task, and the leafs it signs (INS-1; CASES B103, B104, B106, B107).

Rules of the file:

* Keys are made here, live in this process's memory and go with it; no file, log or other process ever has them.
* Name constraints, critical, say what it may sign for: the inspected names, and no address at all. In RFC 5280
  (4.2.1.10) a permitted name covers the names below it too, and there is no portable way to write it without them;
  so the gate, which mints only for hosts whose rule is read, is what keeps subdomains out. An inspected address gets
  an authority of its own, which may sign for exactly those addresses and for no name. A rule for `*` leaves names open.
* The profile is that of model/certificate_profile.py; leafs live less than the 398 days of the Baseline Requirements.
* Everything is backdated: clocks of virtual machines lag by days after sleep.
* All leafs of a task share one key: whoever could take one could take the authority's.

Clocks come in. What it does not do: decide what is inspected (scope.py), or talk TLS (terminate.py).
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID

from tidegate.model.certificate_profile import PEM, builder, name, new_key, private_pem, time, usage
from tidegate.model.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography.hazmat.primitives.asymmetric import ec

    from tidegate.model.host import Host
    from tidegate.policy.scope import Scope

DAY = 86400.0
BACKDATED = 2 * DAY
AUTHORITY_LIFE = (
    90 * DAY
)  # a task that runs longer has its inspected hosts refused: its programs read the file at start
LEAF_LIFE = 7 * DAY
_RENEW_BELOW = 1 / 3  # of a leaf's life
_NO_NAME = "invalid"  # RFC 6761: nothing is ever called so; "permits this name only" is "permits none"


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

    def __init__(self, scope: Scope, task: str, wall: Callable[[], float], life: float = AUTHORITY_LIFE) -> None:
        self._scope = scope
        self._wall = wall
        self.ends_at = wall() + life
        self._key = new_key()
        self._leaf_key = new_key()
        self._leaf_key_pem = private_pem(self._leaf_key)
        self._roots: list[x509.Certificate] = []
        self._names: x509.Certificate | None = None
        self._literals: x509.Certificate | None = None
        if scope.names or scope.suffixes or scope.everything:
            self._names = self._root(f"tidegate {task}"[:64], _constraints_of_names(scope))
        if scope.literals:
            self._literals = self._root(f"tidegate addresses {task}"[:64], _constraints_of_literals(scope))

    @property
    def certificates(self) -> tuple[bytes, ...]:
        """The roots that the task trusts, each as PEM. Public."""
        return tuple(root.public_bytes(PEM) for root in self._roots)

    def covers(self, host: Host) -> bool:
        """Whether it may sign for this host."""
        scope = self._scope
        if host.packed is not None:
            return host.text in scope.literals
        name = host.text
        if scope.everything or name in scope.names or name in scope.suffixes:
            return True
        dot = name.find(".") + 1
        while dot:
            if name[dot:] in scope.suffixes:
                return True
            dot = name.find(".", dot) + 1
        return False

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

    def _root(self, subject: str, constraints: x509.NameConstraints) -> x509.Certificate:
        root = (
            self._builder(name(subject), name(subject), self._key.public_key(), self._wall(), self.ends_at)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage(signs=True), critical=True)
            .add_extension(constraints, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self._roots.append(root)
        return root

    def _builder(
        self, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: float, ends_at: float
    ) -> x509.CertificateBuilder:
        issued_by = self._key.public_key()
        return builder(subject, issuer, key, issued_by, time(now - BACKDATED), time(ends_at))


def _constraints_of_names(scope: Scope) -> x509.NameConstraints:
    no_addresses = [x509.IPAddress(ipaddress.ip_network(every)) for every in ("0.0.0.0/0", "::/0")]
    if scope.everything:
        return x509.NameConstraints(None, no_addresses)
    names = dict.fromkeys((*scope.names, *scope.suffixes))
    return x509.NameConstraints([x509.DNSName(name) for name in names], no_addresses)


def _constraints_of_literals(scope: Scope) -> x509.NameConstraints:
    addresses = [x509.IPAddress(ipaddress.ip_network(text)) for text in scope.literals]
    return x509.NameConstraints([*addresses, x509.DNSName(_NO_NAME)], None)
