"""Messages of gRPC and Connect, where answers are looked through: what is compressed is made plain (INS-3, INS-5).

A message has five bytes before it: flags, of which the lowest says that it is compressed, and its length. The coding
of messages is the protocol's own: no Content-Encoding tells of it. Servers are told that only plain ones are taken
(`ASKED_BY`), which some do not heed.

Invariant: what comes out has no compressed message in it, and says the same. A plain one passes as it comes; of a
compressed one all has to be there, so it is bounded. So is what all of a body expand to, as of any other coding: what
comes out of one read is there at once.

Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, PROTOCOL-WEB.md beside it, and
https://connectrpc.com/docs/protocol (streaming).
"""

from __future__ import annotations

from tidegate.inspect.codings import FREE, RATIO, Decoding
from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError

ASKED_BY = frozenset({b"grpc-accept-encoding", b"connect-accept-encoding"})
SAID_BY = frozenset({b"grpc-encoding", b"connect-content-encoding"})
MOST_PACKED = 1 << 20
MOST_PLAIN = 4 << 20
"""Bytes of a message that is compressed. gRPC's own default is that nobody takes more than 4 MiB."""
_MEMBERS = 16  # of one message
_PREFIX = 5
_COMPRESSED = 1
_KINDS = (b"application/grpc", b"application/connect+")


class Messages:
    """One body. `coding` is that of its compressed messages, b"" where there are to be none."""

    __slots__ = ("_came", "_coding", "_left", "_made", "_packed", "_prefix", "coded")

    def __init__(self, coding: bytes) -> None:
        """Begin.

        Raises:
            WireError: UPSTREAM_RESPONSE for a coding that cannot be taken off.
        """
        self.coded = bool(coding)
        self._coding = coding
        self._prefix = b""
        self._packed: bytearray | None = None
        self._left = 0
        self._came = self._made = 0  # bytes: all of them, and those that compressed messages became
        if coding:
            Decoding([coding])

    def feed(self, data: bytes) -> bytes:
        """Return what can be passed on.

        Raises:
            WireError: UPSTREAM_RESPONSE for a message that cannot be made plain.
        """
        out: list[bytes] = []
        at = 0
        self._came += len(data)
        while at < len(data):
            if self._left:
                part = data[at : at + self._left]
                self._left -= len(part)
                at += len(part)
                if self._packed is None:
                    out.append(part)
                else:
                    self._packed += part
                    if not self._left:
                        out.append(self._plain(bytes(self._packed)))
                continue
            part = data[at : at + _PREFIX - len(self._prefix)]
            self._prefix += part
            at += len(part)
            if self._prefix[0] & _COMPRESSED and not self._coding:
                raise WireError(Reason.UPSTREAM_RESPONSE, "a message of it is compressed, which was not asked for")
            if len(self._prefix) == _PREFIX:
                out.append(self._begin())
        return b"".join(out)

    def _begin(self) -> bytes:
        prefix, self._prefix = self._prefix, b""
        self._left = int.from_bytes(prefix[1:])
        if not prefix[0] & _COMPRESSED:
            self._packed = None
            return prefix
        if self._left > MOST_PACKED:
            raise WireError(Reason.UPSTREAM_RESPONSE, f"a compressed message of it is larger than {MOST_PACKED} bytes")
        self._packed = bytearray(prefix[:1])
        return b"" if self._left else self._plain(prefix[:1])

    def _plain(self, packed: bytes) -> bytes:
        decoding = Decoding([self._coding], _MEMBERS)
        decoding.put(packed[1:])
        parts, size = [], 0
        while decoding.pending:
            parts.append(decoding.take())
            size += len(parts[-1])
            if size > MOST_PLAIN:
                raise WireError(Reason.UPSTREAM_RESPONSE, f"a message of it expands beyond {MOST_PLAIN} bytes")
            if self._made + size > FREE + RATIO * self._came:
                raise WireError(Reason.UPSTREAM_RESPONSE, "it expands beyond measure when it is decompressed")
        decoding.end()
        self._made += size
        return bytes([packed[0] & ~_COMPRESSED]) + size.to_bytes(4) + b"".join(parts)


def messages_in(fields: dict[bytes, bytes]) -> Messages | None:
    """Return what reads the messages in the body of an answer with these fields; None where it has none.

    Raises:
        WireError: UPSTREAM_RESPONSE where they cannot be made plain.
    """
    kind = fields.get(b"content-type", b"").lower()
    if not kind.startswith(_KINDS):
        return None
    coding = next((fields[name].lower() for name in SAID_BY if name in fields), b"identity")
    coding = b"" if coding == b"identity" else coding
    if not kind.startswith(b"application/grpc-web-text"):
        return Messages(coding)
    if coding:  # in base64 they are only looked through, not read
        raise WireError(Reason.UPSTREAM_RESPONSE, "its messages are compressed, which was not asked for")
    return None
