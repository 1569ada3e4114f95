"""Schemes of authentication that are of a connection, and not of a request (RFC 4559 section 6; MS-NTHT).

A destination may know its client by a connection once one of them was seen on it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

BY_CONNECTION = frozenset((b"ntlm", b"negotiate", b"kerberos", b"nego2"))


def by_connection(credentials: Iterable[bytes]) -> bool:
    """Whether challenges or credentials are of a kind that is good for the connection they are sent on."""
    return not BY_CONNECTION.isdisjoint(b" ".join(credentials).lower().replace(b",", b" ").split())
