"""P-256 and ECDSA for one certificate: what a start needs before the library for it is worth loading (FIPS 186-5).

Importing `cryptography` takes longer than all the rest of a start, and most tasks never open a connection that is read.
So the key of a task's authority and the one signature under its certificate are made here, in 3 ms, and everything
after that by the library. This is not constant in time: it runs twice for each task, on fresh random numbers, before
the task's first instruction.

Projective (Jacobian) coordinates, multiplication by windows of four bits. The test holds it to `cryptography`.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    _Point: TypeAlias = tuple[int, int, int]

P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
    1,
)
_NOWHERE = (1, 1, 0)


class Key:
    """A fresh key, and what its first signature needs beside the digest: that takes as long, and can be had ahead.

    `secret` is the number from 1 to N-1, `point` the public key as an uncompressed point (SEC 1 section 2.3.3).
    """

    __slots__ = ("_once", "point", "secret")

    def __init__(self) -> None:
        self.secret = random_scalar()
        self.point = public_point(self.secret)
        self._once: tuple[int, int] | None = _once()

    def sign(self, digest: bytes) -> tuple[int, int]:
        """Return an ECDSA signature (r, s) of a SHA-256 digest."""
        number = int.from_bytes(digest, "big")
        while True:
            inverse, r = self._once or _once()
            self._once = None  # used twice it would give the key away
            s = inverse * (number + r * self.secret) % N
            if r and s:
                return r, s


def random_scalar() -> int:
    """Return a secret number from 1 to N-1, each as likely as the others."""
    while True:
        number = int.from_bytes(os.urandom(32), "big")
        if 0 < number < N:
            return number


def public_point(secret: int) -> bytes:
    """Return the public key of a secret number."""
    x, y = _times(secret)
    return b"\x04" + x.to_bytes(32, "big") + y.to_bytes(32, "big")


def _once() -> tuple[int, int]:
    # The inverse of a number that is used once, and r of its signature.
    number = random_scalar()
    return pow(number, -1, N), _times(number)[0] % N


def _times(number: int) -> tuple[int, int]:
    multiples: list[_Point] = [_NOWHERE, _G]
    for at in range(2, 16):
        multiples.append(_add(multiples[at - 1], _G) if at & 1 else _double(multiples[at >> 1]))
    point: _Point = _NOWHERE
    for shift in range(252, -1, -4):
        point = _double(_double(_double(_double(point))))
        point = _add(point, multiples[number >> shift & 15])
    inverse = pow(point[2], -1, P)
    square = inverse * inverse % P
    return point[0] * square % P, point[1] * square * inverse % P


def _double(point: _Point) -> _Point:
    # dbl-2001-b of the Explicit-Formulas Database, for curves with a = -3.
    x, y, z = point
    delta = z * z % P
    gamma = y * y % P
    beta = x * gamma % P
    alpha = 3 * (x - delta) * (x + delta) % P
    doubled = (alpha * alpha - 8 * beta) % P
    return doubled, (alpha * (4 * beta - doubled) - 8 * gamma * gamma) % P, 2 * y * z % P


def _add(one: _Point, other: _Point) -> _Point:
    # add-1998-cmo-2.
    if not one[2]:
        return other
    if not other[2]:
        return one
    x1, y1, z1 = one
    x2, y2, z2 = other
    square1, square2 = z1 * z1 % P, z2 * z2 % P
    u1 = x1 * square2 % P
    h = (x2 * square1 - u1) % P
    s1 = y1 * z2 * square2 % P
    r = (y2 * z1 * square1 - s1) % P
    if not h:
        return _NOWHERE if r else _double(one)
    h2 = h * h % P
    h3 = h * h2 % P
    v = u1 * h2 % P
    x3 = (r * r - h3 - 2 * v) % P
    return x3, (r * (v - x3) - s1 * h3) % P, z1 * z2 * h % P
