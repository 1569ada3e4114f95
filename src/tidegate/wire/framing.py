"""How long the body of a message is, by RFC 9112 section 6, read strictly (GAT-4, B34, B35, B64).

Framing never depends on the method of a request. Whatever two recipients could measure differently is refused:
both lengths, a length twice, a length that is not plain digits, any transfer coding but exactly `chunked`,
a transfer coding in HTTP/1.0. The readers of bodies are in body.py.
"""

from __future__ import annotations

from tidegate.model.closed import Closed
from tidegate.model.reason import Reason
from tidegate.model.value import Value
from tidegate.wire.errors import WireError
from tidegate.wire.http1 import RequestHead, ResponseHead

MAX_LENGTH = 2**63 - 1  # what a signed 64-bit counter of another parser can still hold


class Kind(Closed):
    """What ends a body."""

    NONE = "none"  # there is none
    LENGTH = "length"
    CHUNKED = "chunked"
    CLOSE = "close"  # the end of the connection; responses only


class Framing(Value, hot=True):
    """The kind of a body's end, and its length in bytes where the kind is LENGTH."""

    kind: Kind
    length: int = 0

    @property
    def empty(self) -> bool:
        """Whether no byte of a body follows the head."""
        return self.kind is Kind.NONE or (self.kind is Kind.LENGTH and self.length == 0)


NO_BODY = Framing(Kind.NONE)
CHUNKED = Framing(Kind.CHUNKED)
UNTIL_CLOSE = Framing(Kind.CLOSE)


def request_framing(head: RequestHead) -> Framing:
    """Return how the body of a request ends; without a length there is none.

    Raises:
        WireError: BAD_FRAMING where it is ambiguous.
    """
    names = head.names
    if b"content-length" not in names and b"transfer-encoding" not in names:
        return NO_BODY
    return _announced(head, Reason.BAD_FRAMING)


def response_framing(head: ResponseHead, request_method: str) -> Framing:
    """Return how the body of the response to a request with this method ends.

    Raises:
        WireError: UPSTREAM_RESPONSE where it is ambiguous, also in responses that have no body.
    """
    names = head.names
    announced = UNTIL_CLOSE
    if b"content-length" in names or b"transfer-encoding" in names:
        announced = _announced(head, Reason.UPSTREAM_RESPONSE)
    status = head.status
    if status < 200 or status in {204, 304} or request_method == "HEAD":
        return NO_BODY
    if request_method == "CONNECT" and status < 300:
        return NO_BODY
    return announced


def _announced(head: RequestHead | ResponseHead, bad: Reason) -> Framing:
    names = head.names
    if b"transfer-encoding" in names:
        if b"content-length" in names:
            raise WireError(bad, "it has both Content-Length and Transfer-Encoding")
        if head.version == (1, 0):
            raise WireError(bad, "HTTP/1.0 has no Transfer-Encoding")
        if names.count(b"transfer-encoding") > 1 or (head.get(b"transfer-encoding") or b"").lower() != b"chunked":
            raise WireError(bad, "the Transfer-Encoding is not exactly 'chunked'")
        return CHUNKED
    if names.count(b"content-length") > 1:
        raise WireError(bad, "it has Content-Length more than once")
    text = head.get(b"content-length") or b""
    if not text.isdigit() or len(text) > 19 or (text[0] == 0x30 and len(text) > 1) or int(text) > MAX_LENGTH:
        raise WireError(bad, "the Content-Length is not a plain number")
    return Framing(Kind.LENGTH, int(text))
