"""A connection to an origin for plain requests, and what goes up on it.

Rules of the file:

* A connection is used again only for the same destination, under the same policy, phase and surroundings (B22), and
  where repeating the request would not be harmless only if it was in use a moment ago: an idle origin may be closing
  it right now.
* An upload is validated as it comes and stops while the origin does not take it. An origin that takes no more may
  have answered already: its answer is still read (B47).
"""

from __future__ import annotations

from tidegate.gate.known_heads import KnownHeads
from tidegate.gate.reactor import IN
from tidegate.model.reason import Reason
from tidegate.model.verdict import Verdict
from tidegate.wire.errors import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from tidegate.addresses.surroundings import Surroundings
    from tidegate.gate.cleaned import CleanedBody
    from tidegate.gate.forward import Exchange
    from tidegate.gate.outlet import Outlet
    from tidegate.gate.request import Request
    from tidegate.gate.task import Plan
    from tidegate.gate.upstream import Proxy
    from tidegate.model.decision import Decision
    from tidegate.model.destination import Destination
    from tidegate.wire.body import Body, Span

    class Source(Protocol):
        """What bytes are read from, as from a non-blocking socket (recv(2))."""

        def recv(self, bufsize: int, /) -> bytes:
            """Return at most so many bytes, fewer only where no more are there; b"" at the end."""

        def recv_into(self, buffer: bytearray, nbytes: int = 0, /) -> int:
            """Likewise, into a buffer."""


ROUNDS = 16  # reads in one turn before others get theirs
TURN = 0.002  # seconds, likewise: chunks of a byte or two cost much more than their bytes
FRESH = 1.0  # seconds for which an idle origin is taken to be there still, for requests that cannot be repeated


class Origin:
    """One connection to an origin (or to the upstream proxy on its behalf)."""

    __slots__ = (
        "address", "around", "destination", "ending", "fd", "fresh", "heads", "kept_alive", "outlet", "plan", "proxy",
        "sock", "source", "used_at",
    )  # fmt: skip

    def __init__(
        self,
        outlet: Outlet,
        destination: Destination,
        address: str,
        around: Surroundings,
        plan: Plan | None,
        proxy: Proxy | None,
    ) -> None:
        self.outlet = outlet
        self.sock = outlet.sock
        self.source: Source = outlet.sock  # what it says is read from here
        self.fd = outlet.sock.fileno()
        self.destination = destination
        self.address = address
        self.around = around
        self.plan = plan
        self.proxy = proxy
        self.kept_alive = False
        self.fresh = True
        self.ending = False  # its end was announced
        self.used_at = 0.0
        self.heads = KnownHeads()

    def fits(self, request: Request, plan: Plan, decision: Decision, around: Surroundings, now: float) -> bool:
        """Whether this connection may serve one more request.

        Another policy or phase makes other plans: its address was not admitted under that one.
        """
        return (
            decision.verdict is Verdict.ALLOW
            and self.plan is plan
            and self.destination == request.destination
            and self.around is around
            and (request.repeatable or now - self.used_at <= FRESH)
        )


def send_up(exchange: Exchange, origin: Origin, data: bytes | memoryview) -> bool:
    """Send to the origin; False when nothing more may be sent now."""
    if not _counts(exchange, data):
        return False
    try:
        return origin.outlet.send(data)
    except OSError:
        _takes_no_more(exchange, origin)
        return False


def post_up(exchange: Exchange, origin: Origin, data: bytes) -> None:
    """Send a whole request to the origin, with what others send in this turn."""
    if not _counts(exchange, data):
        return
    try:
        origin.outlet.post(data)
    except OSError:
        _takes_no_more(exchange, origin)


def _counts(exchange: Exchange, data: bytes | memoryview) -> bool:
    if exchange.meter is not None and not exchange.meter.spend(len(data)):
        exchange.fail(exchange.meter.reason)
        return False
    if exchange.entry is not None:
        exchange.entry.up += len(data)
    return True


def next_spans(exchange: Exchange, body: Body | CleanedBody) -> list[Span] | None:
    """Return what comes next of a body, validated; None where nothing is there now, or the exchange has ended."""
    data = exchange.buffer
    if not data:
        received = exchange.receive() if exchange.more else None
        if received is None:
            return None
        if not received:
            exchange.abort(Reason.CLIENT_GONE)
            return None
        data = received
    exchange.touched = exchange.gate.reactor.now
    try:
        used, spans = body.feed(data)
    except WireError as error:
        exchange.malformed(error)
        return None
    exchange.buffer = data[used:]
    return spans


def upload(exchange: Exchange) -> None:
    """Pass on what the client sends of its body, as far as the origin takes it."""
    clock = exchange.gate.clock
    late = clock() + TURN
    for _ in range(ROUNDS):
        body, origin = exchange.body, exchange.origin
        if body is None or origin is None or exchange.closed or origin.outlet.blocked:
            return
        spans = next_spans(exchange, body)
        if spans is None:
            return
        if body.done:
            exchange.body = None
        if spans and not send_up(exchange, origin, spans[0] if len(spans) == 1 else b"".join(spans)):
            return
        if clock() > late:
            break
    if not exchange.closed:
        exchange.gate.reactor.again(exchange, exchange.fd, IN)


def origin_takes(exchange: Exchange, origin: Origin) -> None:
    """The origin takes bytes again."""
    try:
        drained = origin.outlet.flush()
    except OSError:
        _takes_no_more(exchange, origin)
        return
    if drained:
        upload(exchange)


def _takes_no_more(exchange: Exchange, origin: Origin) -> None:
    # It may have answered before it closed: reading finds out.
    if exchange.body is not None:
        exchange.body = None
        exchange.keep = False
    if exchange.answer is not None:
        exchange.answer.read(origin)
