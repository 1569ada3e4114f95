"""What every request passes first: where it was addressed, where it comes from, and how its answer leaves.

A browser on this machine runs pages of strangers, and they can send requests to loopback. Rules of the file:

* A body has one length (RFC 9112 section 6.1).
* The Host header names this listener exactly, else 421: a name that was made to point at 127.0.0.1 (DNS rebinding)
  carries the stranger's name.
* An Origin header, which browsers send with all that could change something, is this listener's own, else 403.
* Sec-Fetch-Site, which pages cannot set, is `same-origin` or `none` for the API, metrics and every unsafe method.
  `same-site` is not enough: all ports of localhost are one site.
* No answer has CORS headers, and there are no cookies: a browser adds nothing of the owner's to a stranger's request.

Sources: RFC 9110 sections 7.2 and 15.5.20; Fetch, "The Origin request header"; W3C Fetch Metadata; CSP Level 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidegate.server.api.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping

SAFE_METHODS: Final = frozenset(("GET", "HEAD"))

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""On every answer, whatever its status."""

NO_STORE: Final = "no-store"
"""The Cache-Control of every answer of the API."""


def check_framing(headers: Mapping[str, str]) -> None:
    """Check that a body has one length: two readers could take the end of one that has two for a request.

    Raises:
        ApiError: 400; the connection ends.
    """
    if "transfer-encoding" in headers and "content-length" in headers:
        raise ApiError(400, "the body has two lengths", fix="send one of them", headers={"Connection": "close"})


def check_addressed(headers: Mapping[str, str], hosts: frozenset[str]) -> None:
    """Check the Host header against the names of the listener (with port, in lower case).

    Raises:
        ApiError: 421.
    """
    host = headers.get("host", "").lower()
    if host not in hosts:
        raise ApiError(
            421, f"this server does not answer for the host {host[:80]!r}", fix=f"use {min(hosts, default='')}"
        )


def check_source(method: str, path: str, headers: Mapping[str, str], origins: frozenset[str]) -> None:
    """Check that no page of another origin sent this.

    Raises:
        ApiError: 403.
    """
    origin = headers.get("origin")
    if origin is not None and origin.lower() not in origins:
        raise ApiError(403, f"a page of {origin[:80]!r} may not ask this server", code="other-origin")
    site = headers.get("sec-fetch-site")
    guarded = method not in SAFE_METHODS or path.startswith(("/api", "/metrics"))
    if guarded and site is not None and site not in ("same-origin", "none"):
        raise ApiError(403, "a page of another origin may not ask this server", code="other-origin")
