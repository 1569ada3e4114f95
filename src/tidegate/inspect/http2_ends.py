"""How streams of HTTP/2 that are read end, and their connection: refused, dropped, forgotten, over (RFC 9113).

Rules of the file: a stream is recorded once, however it ends. One that was not answered is told why, as an answer; one
that was is reset, so that nobody takes half of it for the whole. The window of what a stream still held opens again
when it goes, or its connection would run dry.

What happens in between is http2.Http2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError

from tidegate.inspect.http2_held import HeldStreams
from tidegate.inspect.http2_refusal import refusal
from tidegate.inspect.http2_side import make_side
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from h2.connection import H2Connection

    from tidegate.inspect.http2_side import Side
    from tidegate.inspect.http2_stream import Stream
    from tidegate.model.decision import Decision
    from tidegate.model.limits import Limits
    from tidegate.model.seams import Guard, Line, Look

    Headers = list[tuple[bytes, bytes]]


class Ends:
    """Both sides, their streams, and how all of it ends."""

    def __init__(
        self, decision: Decision, limits: Limits, failure: tuple[Reason, str] | None, *guards: Guard | None
    ) -> None:
        self._held = HeldStreams(decision, *guards)
        self._decision = decision
        self._failure = failure
        self._by_client: dict[int, Stream] = {}
        self._by_upstream: dict[int, Stream] = {}
        self._answers = 0
        self.moved = 0  # grows with everything that happens to a stream
        self._last = 0  # the client's newest stream that was passed on
        self._draining = False
        self.over = False  # both sides are to be closed, once what they are to be sent is sent
        self._client = make_side(limits, client=False)
        self._other: Side | None = make_side(limits, client=True)  # None while the destination is let go

    @property
    def _upstream(self) -> Side:
        side = self._other
        assert side is not None, "a stream has a destination"
        return side

    def upstream_ended(self, reason: Reason = Reason.UPSTREAM_CLOSED, detail: str = "") -> None:
        """Take note that the destination is gone: what it did not answer is told so, with a clause for people.

        What it answered to the end, and the client has not taken yet, still goes to the client.
        """
        if self.over or self._failure is not None:
            return
        for stream in list(self._by_client.values()):
            if not stream.down.ended:
                self._drop(stream, ErrorCodes.INTERNAL_ERROR, reason, detail)
        for number, held in self._held.all():
            held.look.let_go()
            self._refuse(number, held.headers, held.line, reason, detail)
            self._reset(self._client, number, ErrorCodes.NO_ERROR)
        if reason is Reason.CLIENT_CERTIFICATE:
            self._failure = reason, ""  # in TLS 1.3 it is known only now; each request is told so
            return
        self._client.go_away(self._last, ErrorCodes.NO_ERROR)
        self._draining = True
        self._maybe_over()

    @property
    def held(self) -> bool:
        """Whether some stream is held until it was looked at: `beat`."""
        return bool(self._held)

    def beat(self) -> None:
        """Take note that a part of the time has passed in which a client may be silent in a body that is held."""
        for number, held in self._held.silent():
            held.look.let_go()
            self._refuse(number, held.headers, held.line, Reason.HEADER_TIMEOUT, "its body stopped coming")
            self._reset(self._client, number, ErrorCodes.NO_ERROR)
        self._maybe_over()

    def ended(self, reason: Reason) -> None:
        """The client is gone, or the connection is cut: nothing more is said to anybody."""
        self.over = True
        for stream in list(self._by_client.values()):
            self._forget(stream, reason)
        for _number, held in self._held.all():
            held.look.let_go()
            held.line.write(How.REFUSED, reason)

    def _refuse(
        self, number: int, asked: Headers, line: Line, reason: Reason, detail: str, look: Look | None = None
    ) -> None:
        decision = self._decision.refuse(reason, fix="")
        said = decision.sentence()
        self._answers += 1
        self.moved += 1
        line.decision = decision
        line.status = reason.status or 403
        line.write(How.REFUSED, reason)
        client = self._client
        try:
            room = client.local_flow_control_window(number)
            detail = "; ".join(filter(None, (detail, line.came_from())))
            said = f"{said} ({detail})" if detail else said
            told = look.answer(f"tidegate: {said}") if look is not None else b""
            fields, body = refusal(reason, said, asked, method=line.method, room=room, told_as=told)
            client.send_headers(number, fields, end_stream=not body)
            if body:
                client.send_data(number, body, end_stream=True)
        except ProtocolError:
            return  # it has reset the stream already

    def _drop(self, stream: Stream, code: ErrorCodes, reason: Reason, detail: str = "") -> None:
        # It cannot go on: told as an answer where there was none yet.
        self._reset(self._upstream, stream.upstream, code)
        answered = stream.answered
        self._remove(stream)
        if answered:
            stream.line.write(How.INSPECTED, reason)
            self._reset(self._client, stream.client, code)
            return
        self._refuse(stream.client, stream.asked, stream.line, reason, detail)
        if not stream.over_up:
            self._reset(self._client, stream.client, ErrorCodes.NO_ERROR)

    def _forget(self, stream: Stream, reason: Reason) -> None:
        self._remove(stream)
        self.moved += 1
        if reason is Reason.ALLOWED:
            reason = self._decision.reason
        stream.line.write(How.INSPECTED if stream.answered else How.REFUSED, reason)
        self._maybe_over()

    def _remove(self, stream: Stream) -> None:
        if stream.look is not None:
            stream.look.let_go()
        self._by_client.pop(stream.client, None)
        self._by_upstream.pop(stream.upstream, None)
        for side, number, half in (
            (self._client, stream.client, stream.up),
            (self._upstream, stream.upstream, stream.down),
        ):
            self._taken(side, number, half.owed)
            half.owed = 0

    def _maybe_over(self) -> None:
        if self._draining and not self._by_client and not self._held:
            self.over = True

    @staticmethod
    def _taken(side: H2Connection, number: int, size: int) -> None:
        # The bytes have gone on: the window they took opens again. A stream that is closed has none any more.
        if not size:
            return
        try:
            side.acknowledge_received_data(size, number)
        except (ProtocolError, KeyError):
            return

    @staticmethod
    def _reset(side: H2Connection, number: int | None, code: ErrorCodes | int | None) -> None:
        try:
            side.reset_stream(number or 0, code or 0)
        except (ProtocolError, KeyError):
            return  # it is closed already
