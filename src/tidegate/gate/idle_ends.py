"""Which connections to destinations a task keeps for clients that are silent (INS-3; docs/decisions/0022).

Rules of the file:

* An end of TLS weighs some 20 KB, so a task keeps those of `MOST` connections that wait for a request (in HTTP/2: that
  have no stream, docs/decisions/0028). Of more the one that has waited longest lets its own go; its client's connection
  stays, and its next request makes another (redial.py). No connection is ever handed to another client.
* One that was made again is let go only after `LONG`: whoever has more clients than `MOST` that come back pays one
  handshake for each, and not one for each request.
* What the destination may know its client by, or what was counted when it was made, is not let go.
* Each step costs the same however many there are, and a turn lets go of a few.
"""

from __future__ import annotations

from tidegate.gate.reactor import remaining

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import OrderedDict
    from typing import Protocol

    from tidegate.gate.reactor import Reactor, Timer
    from tidegate.model.decision import Decision

    class Idle(Protocol):
        """A client's connection. `made_again`: its connection to the destination, once or more."""

        made_again: bool

        def let_go(self) -> None:
            """Close the connection to the destination, unless something is under way."""

        def broken(self, error: Exception) -> None:
            """A bug: it ends, and only it."""
else:
    from _collections import OrderedDict  # collections itself brings ten modules

MOST = 32  # more than most tools keep open: browsers 6 a host, npm 15, Maven 20
SHORT = 0.1  # seconds; nobody who asks again at once is made to wait for a handshake
LONG = 30.0  # seconds
AT_ONCE = 16  # that are let go in one turn: each costs two system calls and an alert


def made_once(decision: Decision) -> bool:
    """Whether a connection may not be made again under this decision: a person allowed it, or its rule counts them."""
    rule = decision.rule
    return decision.grant is not None or (rule is not None and rule.limits.connections_per_minute is not None)


class IdleEnds:
    """Those of one task that may be let go, in the order in which they began to wait."""

    __slots__ = ("_fresh", "_made_again", "_timer")

    def __init__(self) -> None:
        self._fresh: OrderedDict[Idle, float] = OrderedDict()
        self._made_again: OrderedDict[Idle, float] = OrderedDict()
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._fresh) + len(self._made_again)

    def waits(self, exchange: Idle, reactor: Reactor) -> None:
        """This one waits for a request from now on, and has a connection to its destination."""
        again, fresh = self._made_again, self._fresh
        (again if exchange.made_again else fresh)[exchange] = reactor.now
        if len(fresh) + len(again) > MOST:
            seconds = LONG if exchange.made_again else SHORT
            if self._timer is None or self._timer.due > reactor.now + seconds:
                self._arm(reactor, seconds)

    def works(self, exchange: Idle) -> None:
        """It does not wait any more, whatever it does."""
        if self._fresh.pop(exchange, None) is None:
            self._made_again.pop(exchange, None)

    def _arm(self, reactor: Reactor, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = reactor.after(seconds, lambda: self._look(reactor))

    def _look(self, reactor: Reactor) -> None:
        self._timer = None
        for _ in range(AT_ONCE):
            if len(self) <= MOST:
                return
            soonest = LONG
            for queue, seconds in ((self._fresh, SHORT), (self._made_again, LONG)):
                if queue:
                    exchange, at = next(iter(queue.items()))
                    left = at + seconds - reactor.now
                    if left <= 0:
                        del queue[exchange]
                        reactor.call(exchange.let_go, exchange)
                        break
                    soonest = min(soonest, remaining(left, seconds))
            else:
                self._arm(reactor, soonest)
                return
        self._arm(reactor, 0.0)
