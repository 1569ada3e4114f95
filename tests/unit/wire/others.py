"""What other readers of HTTP/1 make of a message: h11 and httptools, each told in the same words as ours."""

from __future__ import annotations

from typing import Any

import h11
import httptools


def as_h11_reads(data: bytes, role: Any = h11.SERVER) -> tuple[bytes, bytes] | None:
    """Return the body of one message and what is left, None where h11 refuses or waits.

    As a server it reads a request, as a client the response to a GET.
    """
    peer = h11.Connection(role)
    if role is h11.CLIENT:
        peer.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
        peer.send(h11.EndOfMessage())
    peer.receive_data(data)
    body = b""
    try:
        while True:
            event = peer.next_event()
            if isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return body, peer.trailing_data[0]
            elif event is h11.NEED_DATA:
                return None
    except h11.RemoteProtocolError:
        return None


def as_httptools_reads(request: bytes) -> tuple[bytes, int] | None:
    """Return the body of the first message and how many ended, None where httptools refuses."""
    seen = _Seen()
    try:
        httptools.HttpRequestParser(seen).feed_data(request)
    except httptools.HttpParserError:
        return None
    return seen.body, seen.ends


class _Seen:
    # Collects what httptools calls back.

    def __init__(self) -> None:
        self.body = b""
        self.ends = 0

    def on_body(self, data: bytes) -> None:
        if not self.ends:
            self.body += data

    def on_message_complete(self) -> None:
        self.ends += 1
