"""One plain request, read and made ready to be sent on: everything that follows from its bytes alone.

Rules of the file: what must not travel is found here, before anything is resolved or dialled. A request without a body
is a pure function of its head, so the gate keeps the last few that come again and again (`GateTask.requests`); heads
with credentials are not kept.
"""

from __future__ import annotations

from tidegate.model.reason import Reason
from tidegate.policy.alternatives import why_refused
from tidegate.policy.paths import OVERRIDES
from tidegate.wire.authority import HTTPS_PORT, absolute_form, absolute_target, inner_target
from tidegate.wire.framing import request_framing
from tidegate.wire.headers import keeps_alive, offers_websocket, request_head_bytes
from tidegate.wire.http1 import RequestHead

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.upstream import Proxy
    from tidegate.model.decision import Decision
    from tidegate.model.destination import Destination
    from tidegate.model.seams import Cleaner, Secrets
    from tidegate.wire.framing import Framing

_SECRET = frozenset({b"authorization", b"cookie", b"proxy-authorization"})
_OF_THE_BODY = frozenset(
    (b"content-length", b"transfer-encoding", b"content-encoding", b"trailer", b"expect", b"content-md5", b"digest")
)
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})  # RFC 9110 section 9.2.2, without TRACE


def overrides_of(head: RequestHead) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request that servers may take for its method or target."""
    if OVERRIDES.isdisjoint(head.names):
        return []
    return [(name, value) for name, (_, value) in zip(head.names, head.headers, strict=True) if name in OVERRIDES]


class Request:
    """A request in absolute form. `out` is its head for the origin, `path` its target there.

    `keep` is whether the client wants its connection to last; `repeatable` whether sending it twice is harmless.
    """

    __slots__ = ("destination", "framing", "head", "keep", "method", "out", "path", "repeatable", "websocket")

    def __init__(self, head: RequestHead) -> None:
        """Judge a head.

        Raises:
            WireError: when it is no request that can be forwarded.
        """
        self.head = head
        self.method = head.method
        self.framing: Framing = request_framing(head)
        self.destination: Destination
        self.destination, self.path = absolute_target(head)
        self.keep = keeps_alive(head)
        self.websocket = offers_websocket(head, self.framing)
        self.out = request_head_bytes(head, self.destination, self.path, websocket=self.websocket)
        self.repeatable = self.framing.empty and head.method in _REPEATABLE

    @property
    def secret(self) -> bool:
        """Whether the head carries credentials."""
        return not _SECRET.isdisjoint(self.head.names)

    @property
    def overrides(self) -> list[tuple[bytes, bytes]]:
        """Its headers that servers may take for its method or target."""
        return overrides_of(self.head)

    def why_refused(self, decision: Decision) -> Reason | None:
        """Return why it does not pass under the decision for its destination; None where it does (INS-6)."""
        body = not self.framing.empty
        return why_refused(decision, self.method, self.path, self.overrides, socket=self.websocket, body=body)

    def for_proxy(self, proxy: Proxy) -> bytes:
        """Return the head for an upstream proxy: in absolute form, with the proxy's own credentials."""
        extra = ((b"Proxy-Authorization", proxy.authorization),) if proxy.authorization else ()
        target = absolute_form(self.destination, self.path)
        return request_head_bytes(self.head, self.destination, target, websocket=self.websocket, extra=extra)


class InnerRequest(Request):
    """A request inside TLS that is read. `why_not` is why the rule of its connection does not let it pass.

    `content` is its body, where that was held and looked at; it goes out with the head.
    """

    __slots__ = ("content", "why_not")

    def __init__(self, head: RequestHead, destination: Destination) -> None:  # super's reads an absolute target
        """Judge a head.

        Raises:
            WireError: when it is no request, or names another host than its connection (MISDIRECTED).
        """
        self.head = head
        self.method = head.method
        self.framing = request_framing(head)
        self.destination = destination
        self.path = inner_target(head, destination)
        self.keep = keeps_alive(head)
        self.websocket = offers_websocket(head, self.framing)
        self.out = request_head_bytes(head, destination, self.path, websocket=self.websocket, default_port=HTTPS_PORT)
        self.repeatable = self.framing.empty and head.method in _REPEATABLE
        self.why_not: Reason | None = Reason.METHOD_NOT_ALLOWED
        self.content = b""

    @property
    def expects(self) -> bool:
        """Whether its sender waits for `100 Continue` (RFC 9110 section 10.1.1)."""
        head = self.head
        return head.version == (1, 1) and b"100-continue" in (value.lower() for value in head.values(b"expect"))

    def carry(self, content: bytes) -> None:
        """Send this body in place of the one that came, plain and with its length."""
        head = self.head
        kept = [field for name, field in zip(head.names, head.headers, strict=True) if name not in _OF_THE_BODY]
        kept.append((b"Content-Length", b"%d" % len(content)))
        names = tuple(name.lower() for name, _ in kept)
        self.head = RequestHead(head.method, head.target, head.version, tuple(kept), names)
        self.framing = request_framing(self.head)
        self.content = content
        self.out = request_head_bytes(self.head, self.destination, self.path, default_port=HTTPS_PORT)

    def swap(self, secrets: Secrets, cleaner: Cleaner | None) -> None:
        """Put values in place of stand-ins, in `out` alone; `cleaner` is what looks through the answer, if any.

        Raises:
            WireError: SECRET_MISDIRECTED for a stand-in that does not belong where it is.
        """
        where = self.destination
        sent = self.head.headers
        target, fields = secrets.swap(where.host.text, where.port, self.path, sent, tls=True, method=self.method)
        if cleaner is not None:
            fields = cleaner.asked(fields)
        names = tuple(name.lower() for name, _ in fields)
        head = RequestHead(self.head.method, target, self.head.version, tuple(fields), names)
        self.out = request_head_bytes(head, where, target, websocket=self.websocket, default_port=HTTPS_PORT)
