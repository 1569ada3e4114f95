"""The root certificates of a task's authority, made while the task starts (INS-1; CASES B103, B104, B106, B107).

Rules of the file:

* No library is loaded for them: see first_key.py. What signs leafs later is `Authority`, with the same key.
* Name constraints, critical, say what it may sign for: the inspected names, and no address at all. In RFC 5280
  (4.2.1.10) a permitted name covers the names below it too, and there is no portable way to write it without them;
  so the gate, which mints only for hosts whose rule is read, is what keeps subdomains out. An inspected address gets
  a root of its own, which may sign for exactly those addresses and for no name. A rule for `*` leaves names open.
* The profile is the one the strictest verifiers ask for: OpenSSL's -x509_strict, Python 3.13's default, Go, rustls,
  Java, GnuTLS (RFC 5280), as model/certificate_profile.py has it for what a library signs.
* Everything is backdated: clocks of virtual machines lag by days after sleep.
"""

from __future__ import annotations

import os
import time
from _sha1 import sha1
from _socket import AF_INET, AF_INET6, inet_pton

from tidegate.inspect import der
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from tidegate.policy.scope import Scope

    class Signer(Protocol):
        """A fresh key on P-256, as first_key.Key has it."""

        @property
        def private(self) -> bytes: ...  # noqa: D102
        @property
        def point(self) -> bytes: ...  # noqa: D102
        def sign(self, data: bytes, /) -> bytes: ...  # noqa: D102


DAY = 86400.0
BACKDATED = 2 * DAY
AUTHORITY_LIFE = 90 * DAY
"""A task that runs longer has its inspected hosts refused: its programs read the file at their start."""
_NO_NAME = b"invalid"  # RFC 6761: nothing is ever called so; "permits this name only" is "permits none"
_ECDSA_SHA256 = der.sequence(der.oid("1.2.840.10045.4.3.2"))
_P256 = der.sequence(der.oid("1.2.840.10045.2.1"), der.oid("1.2.840.10045.3.1.7"))
_COMMON_NAME = der.oid("2.5.4.3")
_TRUE = der.tlv(der.BOOLEAN, b"\xff")
_SERIAL_BITS = 159  # RFC 5280 section 4.1.2.2: 20 octets at most
_DNS, _ADDRESS = 0x82, 0x87  # of GeneralName
_PERMITTED, _EXCLUDED = 0xA0, 0xA1


class Roots(Value):
    """A key, and the roots that carry it, as DER; b"" where nothing of the kind is read. `ends_at` is Unix time."""

    private: bytes
    names: bytes
    literals: bytes
    ends_at: float

    @property
    def pem(self) -> tuple[str, ...]:
        """What the task trusts. Public."""
        return tuple(der.pem(root) for root in (self.names, self.literals) if root)


def make_roots(scope: Scope, task: str, now: float, life: float = AUTHORITY_LIFE, key: Signer | None = None) -> Roots:
    """Make the authority's roots for this scope. `now` is Unix time; `task` is named in the subject."""
    if key is None:
        from tidegate.inspect.first_key import Key

        key = Key()
    key_id = sha1(key.point).digest()  # RFC 5280 section 4.2.1.2, method 1
    names = literals = b""
    if scope.names or scope.suffixes or scope.everything:
        names = _root(f"tidegate {task}"[:64], _constraints_of_names(scope), key, key_id, now, now + life)
    if scope.literals:
        name = f"tidegate addresses {task}"[:64]
        literals = _root(name, _constraints_of_literals(scope), key, key_id, now, now + life)
    return Roots(key.private, names, literals, now + life)


def _root(subject: str, constraints: bytes, key: Signer, key_id: bytes, now: float, ends_at: float) -> bytes:
    name = der.sequence(der.tlv(der.SET, der.sequence(_COMMON_NAME, der.tlv(der.UTF8, subject.encode()))))
    extensions = der.sequence(
        _extension("2.5.29.14", der.tlv(der.OCTETS, key_id)),
        _extension("2.5.29.35", der.sequence(der.tlv(0x80, key_id))),
        _extension("2.5.29.19", der.sequence(_TRUE, der.integer(0)), critical=True),
        _extension("2.5.29.15", der.flags(5, 6), critical=True),  # keyCertSign, cRLSign
        _extension("2.5.29.30", constraints, critical=True),
    )
    serial = int.from_bytes(os.urandom(20), "big") >> 160 - _SERIAL_BITS | 1 << _SERIAL_BITS - 1
    body = der.sequence(
        der.tlv(0xA0, der.integer(2)),  # version 3
        der.integer(serial),
        _ECDSA_SHA256,
        name,
        der.sequence(_time(now - BACKDATED), _time(ends_at)),
        name,
        der.sequence(_P256, der.tlv(der.BITS, b"\0", key.point)),
        der.tlv(0xA3, extensions),
    )
    return der.sequence(body, _ECDSA_SHA256, der.tlv(der.BITS, b"\0", key.sign(body)))


def _extension(number: str, value: bytes, *, critical: bool = False) -> bytes:
    return der.sequence(der.oid(number), _TRUE if critical else b"", der.tlv(der.OCTETS, value))


def _constraints_of_names(scope: Scope) -> bytes:
    none = der.tlv(_EXCLUDED, *(der.sequence(der.tlv(_ADDRESS, bytes(size))) for size in (8, 32)))
    if scope.everything:
        return der.sequence(none)
    names = dict.fromkeys((*scope.names, *scope.suffixes))
    subtrees = [der.sequence(der.tlv(_DNS, name.encode("ascii"))) for name in names]
    return der.sequence(der.tlv(_PERMITTED, *subtrees), none)


def _constraints_of_literals(scope: Scope) -> bytes:
    packed = [inet_pton(AF_INET6 if ":" in text else AF_INET, text) for text in scope.literals]
    subtrees = [der.sequence(der.tlv(_ADDRESS, one, b"\xff" * len(one))) for one in packed]
    subtrees.append(der.sequence(der.tlv(_DNS, _NO_NAME)))
    return der.sequence(der.tlv(_PERMITTED, *subtrees))


def _time(seconds: float) -> bytes:
    year, month, day, hour, minute, second = time.gmtime(int(seconds))[:6]
    rest = b"%02d%02d%02d%02d%02dZ" % (month, day, hour, minute, second)
    if year < 2050:  # RFC 5280 section 4.1.2.5
        return der.tlv(der.UTC, b"%02d" % (year % 100), rest)
    return der.tlv(der.GENERALIZED, b"%04d" % year, rest)
