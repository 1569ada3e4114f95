"""A body that is held until it was looked at: of a call to a model service, or with a secret in it (INS-8, INS-5).

Rules of the file: nothing of the request is sent before the body is whole; what is sent then is what was looked at,
with a length. Who waits for `100 Continue` gets it from us, because the destination has heard nothing yet. A body that
stops coming ends the connection. Where a body may not be sent, the look says why.
"""

from __future__ import annotations

from tidegate.gate.origin import ROUNDS, next_spans
from tidegate.gate.reactor import IN
from tidegate.model.reason import Reason
from tidegate.wire.body import make_body

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.inner_exchange import InnerExchange
    from tidegate.gate.reactor import Timer
    from tidegate.gate.request import InnerRequest
    from tidegate.model.seams import Look
    from tidegate.wire.body import Body

SILENT = 60.0  # seconds without a byte of it
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def look_at(exchange: InnerExchange, request: InnerRequest) -> Look | None:
    """Begin to look at a request, None where its destination is not guarded."""
    inspector = exchange.task.inspector
    guard = None if inspector is None else inspector.guard
    host, port = request.destination.host.text, request.destination.port
    if guard is None or not guard.covers(host, port):
        secrets = exchange.task.secrets
        if secrets is None or not secrets.bodies.covers(host, port):
            return None
        guard = secrets.bodies
    head = request.head
    # An offer of a WebSocket in another form than ours travels on as a plain request; here none does.
    socket = request.websocket or b"upgrade" in head.names
    return guard.look((host, port), head.method, request.path, head.headers, socket=socket, empty=request.framing.empty)


class HeldBody:
    """One body on its way in. When it is whole, `exchange.looked()` is called; see the rules of the file."""

    __slots__ = ("_body", "_clock", "_exchange", "_look")

    def __init__(self, exchange: InnerExchange, request: InnerRequest, look: Look) -> None:
        self._exchange = exchange
        self._look = look
        self._body: Body = make_body(request.framing, decode=True)
        exchange.touched = exchange.gate.reactor.now
        self._clock: Timer | None = exchange.gate.reactor.after(SILENT, self._look_silent, exchange)
        if request.expects:
            exchange.client.send(CONTINUE)

    def pull(self) -> None:
        """Take what the client sends."""
        exchange = self._exchange
        if self._body.done:  # it has none
            exchange.looked()
            return
        for _ in range(ROUNDS):
            spans = next_spans(exchange, self._body)
            if spans is None:
                return
            for span in spans:
                self._look.take(span)
            if self._look.why or self._body.done:
                exchange.looked()
                return
        exchange.gate.reactor.again(exchange, exchange.fd, IN)

    def stop(self) -> None:
        """It is over."""
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _look_silent(self) -> None:
        self._clock = None
        left = self._exchange.touched + SILENT - self._exchange.gate.reactor.now
        if left <= 0:
            self._exchange.abort(Reason.HEADER_TIMEOUT)
        else:
            self._clock = self._exchange.gate.reactor.after(max(left, 1.0), self._look_silent, self._exchange)
