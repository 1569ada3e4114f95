"""What the operations of the API work with, in one value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tidegate.server.api.auth import Auth
    from tidegate.server.api.codes import Codes
    from tidegate.server.api.sse import Streams
    from tidegate.server.serve import Server


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The server and what the API has beside it. The URLs end without a slash and are '' where there is none.

    `fingerprint` is what a phone's browser shows of the certificate behind `phone_url`.
    """

    server: Server
    auth: Auth
    codes: Codes
    streams: Streams
    portal_url: str
    phone_url: str
    fingerprint: str
