"""The destination's side of an HTTP/2 connection, forgotten while no stream is open and made anew for the next one.

Rules of the file (docs/decisions/0028; RFC 9113):

* It is forgotten only where nothing is under way on it: no stream is open or held, and nothing waits to be said. The
  client's side stays, with its numbers, windows and tables; only settings and GOAWAY are told across.
* A WebSocket may be opened only where the destination has said that it takes them (RFC 8441 section 3), and a client
  was told so by another connection than the new one: until that has said it too, it is not taken.
* The next stream is judged again, by what the policy says then, before anything of it is put into frames. Where the
  policy has to be asked from the beginning, the stream is refused as one that nobody took (REFUSED_STREAM), and the
  client is told to leave: what it does anew is judged as every new connection.
* What was opened waits in the new side as frames. Whoever moves bytes sends them, once, when a connection stands.
* What the destination may know its client by holds the connection (`keeps`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h2.errors import ErrorCodes

from tidegate.inspect.http2_flow import Flow
from tidegate.inspect.http2_request import judged
from tidegate.inspect.http2_side import make_side
from tidegate.model.reason import Reason
from tidegate.model.verdict import How, Verdict
from tidegate.wire.by_connection import by_connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidegate.model.decision import Decision
    from tidegate.model.limits import Limits
    from tidegate.model.seams import Guard, Line

    Headers = list[tuple[bytes, bytes]]


class Again(Flow):
    """Streams whose destination may be let go."""

    def __init__(
        self, decision: Decision, limits: Limits, failure: tuple[Reason, str] | None, *guards: Guard | None
    ) -> None:
        super().__init__(decision, limits, failure, *guards)
        self._limits = limits
        self._open_line: Callable[[str], Line]
        self._judge: Callable[[], Decision | None] | None = None
        self._idle_up = self._moved_up = 0  # of the destination
        self.keeps = False

    @property
    def streams(self) -> int:
        """How many are open."""
        return len(self._by_client) + len(self._held)

    @property
    def reaching(self) -> bool:
        """Whether there is a side of the destination."""
        return self._other is not None

    def let_go(self, judge: Callable[[], Decision | None]) -> bytes | None:
        """Forget the destination's side; see the seam."""
        side = self._other
        if side is None or self.keeps or self.over or self._draining or self._failure is not None:
            return None
        if self.streams or self.hungry or self._client.waits or side.waits:
            return None
        side.go_away(0, ErrorCodes.NO_ERROR)
        last = side.data_to_send()
        side.done()
        self._client.calm()
        self._other, self._judge = None, judge
        return last

    def done(self) -> None:
        """Both are closed: let go of whoever is told of streams, and of both sides."""
        self._client.done()
        if self._other is not None:
            self._other.done()
        self._judge = None
        del self._open_line

    def reached(self, decision: Decision) -> None:
        """Take note of what let the connection through that is made now; see the seam."""
        self._decision = decision
        for stream in self._by_client.values():
            stream.line.decision = decision

    def _reach(self, number: int, headers: Headers, line: Line, *, ends: bool) -> bool:
        """Make the destination's side anew for a stream; False where the client is told something else."""
        pseudo = {name: value for name, value in headers if name[:1] == b":"}
        decision = None if self._judge is None or b":protocol" in pseudo else self._judge()
        if decision is None:
            line.write(How.REFUSED, Reason.UPSTREAM_CLOSED)
            self._reset(self._client, number, ErrorCodes.REFUSED_STREAM)
            self._client.go_away(self._last, ErrorCodes.NO_ERROR)
            self._draining = True
            self._maybe_over()
            return False
        known = self._decision
        self._decision = line.decision = decision
        reason, detail = judged(decision, pseudo, headers, line.method, ends=ends)
        if decision.verdict is not Verdict.ALLOW:
            reason, detail = decision.reason, ""
        if reason is not None:
            self._refuse(number, headers, line, reason, detail)
            self._decision = known  # the next one is judged by what is said then
            return False
        self._other = make_side(self._limits, client=True)
        self._idle_up = self._moved_up = 0
        return True

    def _premature(self, headers: Headers) -> bool:
        """Whether this is a WebSocket, and the destination has not said yet on this connection that it takes them."""
        if self._judge is None or self._upstream.remote_settings.enable_connect_protocol:
            return False
        return any(name == b":protocol" for name, _ in headers)

    def _hear(self, name: bytes, headers: Iterable[tuple[bytes, bytes]]) -> None:
        # Credentials or challenges that are good for a connection: it is the client's from then on.
        self.keeps = self.keeps or by_connection(value for field, value in headers if field == name)
