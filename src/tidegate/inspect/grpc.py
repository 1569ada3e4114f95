"""Sees that no message of gRPC or Connect is compressed, where answers are looked through (INS-3, INS-5).

A message has five bytes before it: flags, of which the lowest says that it is compressed, and its length. The coding
of messages is the protocol's own: no Content-Encoding tells of it, so it is not asked for, and refused where it comes.

Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, PROTOCOL-WEB.md beside it, and
https://connectrpc.com/docs/protocol (streaming).
"""

from __future__ import annotations

from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError

_PREFIX = 5
_COMPRESSED = 1
_KINDS = (b"application/grpc", b"application/connect+")
_SAID_BY = (b"grpc-encoding", b"connect-content-encoding")
ASKED_BY = frozenset({b"grpc-accept-encoding", b"connect-accept-encoding"})


def has_messages(fields: dict[bytes, bytes]) -> bool:
    """Whether the body of an answer with these fields is a row of messages.

    Raises:
        WireError: UPSTREAM_RESPONSE where they are compressed.
    """
    kind = fields.get(b"content-type", b"").lower()
    if not kind.startswith(_KINDS):
        return False
    if any(fields.get(name, b"identity").lower() != b"identity" for name in _SAID_BY):
        raise _compressed()
    return not kind.startswith(b"application/grpc-web-text")  # base64 of them: only its head can be judged


class Messages:
    """One body."""

    __slots__ = ("_left", "_prefix")

    def __init__(self) -> None:
        self._prefix = b""
        self._left = 0

    def look(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            WireError: UPSTREAM_RESPONSE at the first message that is compressed.
        """
        at = 0
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
                at += step
                continue
            take = data[at : at + _PREFIX - len(self._prefix)]
            self._prefix += take
            at += len(take)
            if self._prefix[0] & _COMPRESSED:
                raise _compressed()
            if len(self._prefix) == _PREFIX:
                self._left = int.from_bytes(self._prefix[1:])
                self._prefix = b""


def _compressed() -> WireError:
    return WireError(Reason.UPSTREAM_RESPONSE, "a message of it is compressed, which was not asked for")
