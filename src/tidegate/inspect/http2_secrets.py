"""Secrets in HTTP/2: stand-ins out of what is asked, values out of what is answered (INS-5; RFC 9113, RFC 7541).

Rules of the file: a field that a value was put into is never indexed (RFC 7541 section 7.1.3), so no table of either
side keeps it. Trailers are answered clean, since gRPC needs them. It knows no connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpack import NeverIndexedHeaderTuple

from tidegate.inspect.clean import DIGESTS
from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError

if TYPE_CHECKING:
    from tidegate.inspect.clean import CleanBody
    from tidegate.model.destination import Destination
    from tidegate.model.seams import Cleaner, Secrets

    Headers = list[tuple[bytes, bytes]]


class Swap:
    """The secrets of a task on one connection. Without any, nothing is changed."""

    __slots__ = ("_host", "_port", "_secrets", "cleaner")

    def __init__(self, secrets: Secrets | None, destination: Destination) -> None:
        self._secrets = secrets
        self._host, self._port = destination.host.text, destination.port
        self.cleaner: Cleaner | None = None if secrets is None else secrets.cleaner(self._host, self._port)

    def asked(self, headers: Headers) -> Headers:
        """Return what is asked of the destination; pseudo-fields come first, as they did.

        Raises:
            WireError: SECRET_MISDIRECTED, or NOT_INSPECTABLE for a WebSocket; nothing of it may be sent then.
        """
        if self._secrets is None:
            return headers
        pseudo = [field for field in headers if field[0][:1] == b":"]
        fields = headers[len(pseudo) :]
        said = dict(pseudo)
        path, method = said.get(b":path", b""), said.get(b":method", b"").decode("ascii")  # a token: it was judged
        if self.cleaner is not None and any(name == b":protocol" for name, _ in pseudo):
            raise WireError(Reason.NOT_INSPECTABLE, "a WebSocket cannot be kept free of a secret's value")
        target, swapped = self._secrets.swap(self._host, self._port, path, fields, tls=True, method=method)
        known = set(fields)
        swapped = [field if field in known else NeverIndexedHeaderTuple(*field) for field in swapped]
        if target != path:
            pseudo = [NeverIndexedHeaderTuple(b":path", target) if name == b":path" else (name, value)
                      for name, value in pseudo]  # fmt: skip
        if self.cleaner is not None:
            swapped = self.cleaner.asked(swapped)
        return pseudo + swapped

    def answered(self, headers: Headers, asked: Headers, *, empty: bool) -> tuple[Headers, CleanBody | None]:
        """Return what a final answer says, and what its body goes through.

        Raises:
            WireError: UPSTREAM_RESPONSE where it cannot be read.
        """
        if self.cleaner is None:
            return headers, None
        status = int(dict(headers)[b":status"])
        fields, body = self.cleaner.answer(status, headers, asked, empty=empty)
        return self.clean(fields), body  # type: ignore[return-value]  # the seam's and ours are one

    def clean(self, headers: Headers) -> Headers:
        """Return an interim answer or trailers without values."""
        cleaner = self.cleaner
        if cleaner is None:
            return headers
        return [(cleaner.all(name), cleaner.all(value)) for name, value in headers if name not in DIGESTS]
