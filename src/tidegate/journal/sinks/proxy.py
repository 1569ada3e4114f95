"""The HTTP proxy that a sink is told to go through, named by a person and never taken from the environment.

Rules of the file: what is under TLS goes through a tunnel (CONNECT, RFC 9110 9.3.6), so the proxy sees host, port and
sizes; plain http is asked for by its whole URL (RFC 9112 3.2.2), and the proxy reads it. To the proxy itself no TLS is
spoken. Its user and password are a key of the sink's (`user:password`), and never part of the address.
"""

from __future__ import annotations

import base64
from typing import Final
from urllib.parse import urlsplit

from tidegate.model.errors import StartError
from tidegate.model.value import Value

_FORM: Final = "http://HOST:PORT, and --proxy-key-file FILE for user:password"


class Proxy(Value):
    """Where it is, and the headers that it is given."""

    host: str
    port: int
    headers: dict[str, str]

    @property
    def place(self) -> str:
        """Return it as everybody may see it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def proxy_of(url: str, key: bytes = b"") -> Proxy:
    """Return the proxy at this address; `key` is its user and password, or nothing.

    Raises:
        StartError: for an address or key that cannot be used; neither is repeated, since people write passwords there.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise StartError("the proxy's address is not a URL", fix=_FORM) from None
    if parts.username is not None or parts.password is not None:
        raise StartError("the proxy's address has a user or a password in it, which others can read", fix=_FORM)
    if parts.scheme == "https":
        raise StartError("no TLS is spoken to a proxy itself; what is under TLS stays so behind http", fix=_FORM)
    plain = parts.path in ("", "/") and not parts.query and not parts.fragment
    if parts.scheme != "http" or not parts.hostname or not port or not plain or not url.isascii():
        raise StartError("the proxy's address is no plain address of an HTTP proxy with its port", fix=_FORM)
    if not url.isprintable() or " " in url:
        raise StartError("the proxy's address has characters that it cannot have", fix=_FORM)
    if key and (b":" not in key or not all(0x20 <= byte < 0x7F for byte in key)):
        raise StartError("the proxy's key is not user:password on one line of printable ASCII", fix=_FORM)
    headers = {"Proxy-Authorization": f"Basic {base64.b64encode(key).decode('ascii')}"} if key else {}
    return Proxy(parts.hostname, port, headers)
