"""How the bytes of streams of HTTP/2 that are read move: as far as windows go, and a turn's measure (RFC 9113).

Rules of the file: a window opens again only when what came through it has gone on. Of what a coding makes in an answer
that is looked through, one turn passes on so much and no more, whatever a few bytes grow to: the rest is `hungry`. An
end that came with the last bytes goes on with them.

What a stream says is judged in http2.Http2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h2.errors import ErrorCodes

from tidegate.inspect.http2_ends import Ends
from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError

if TYPE_CHECKING:
    from h2.connection import H2Connection
    from h2.events import DataReceived

    from tidegate.inspect.http2_stream import Half, Stream
    from tidegate.model.decision import Decision
    from tidegate.model.limits import Limits
    from tidegate.model.seams import Guard

MOST_PIECES = 8  # that codings make in one turn: half a MiB


class Flow(Ends):
    """Streams whose bytes move."""

    def __init__(
        self, decision: Decision, limits: Limits, failure: tuple[Reason, str] | None, *guards: Guard | None
    ) -> None:
        super().__init__(decision, limits, failure, *guards)
        self._pieces = MOST_PIECES
        self._hungry: dict[int, Stream] = {}  # whose answers wait for the next turn, by the client's number

    @property
    def hungry(self) -> bool:
        """Whether there is more to pass on than one turn could: `go_on`."""
        return bool(self._hungry)

    def go_on(self) -> None:
        """Begin the next turn."""
        self._pieces = MOST_PIECES
        for number, stream in list(self._hungry.items()):
            del self._hungry[number]
            if self._by_client.get(number) is stream:
                self._pass(stream, up=False)

    def _data(self, side: H2Connection, stream: Stream | None, event: DataReceived, *, up: bool) -> None:
        size = event.flow_controlled_length or 0
        if stream is None:
            self._taken(side, event.stream_id, size)  # of one that was refused or reset
            return
        half = stream.up if up else stream.down
        padding = size - len(event.data)
        if padding:
            self._taken(side, event.stream_id, padding)
        if event.data:
            self.moved += 1
            if event.stream_ended is not None:
                half.ended = True
            try:
                half.take(event.data)
            except WireError as error:
                self._drop(stream, ErrorCodes.INTERNAL_ERROR, error.reason, error.detail if up else "")
                return
            self._pass(stream, up=up)

    def _pass(self, stream: Stream, *, up: bool) -> None:
        """Send what waits in one direction, as far as the windows go, and the end behind it."""
        half = stream.up if up else stream.down
        to, number = (self._upstream, stream.upstream) if up else (self._client, stream.client)
        of, origin = (self._client, stream.client) if up else (self._upstream, stream.upstream)
        moved = 0
        last = False
        while half.waiting or self._more(stream, half):
            room = min(to.local_flow_control_window(number), to.max_outbound_frame_size)
            if room <= 0:
                break
            data = half.waiting.popleft()
            if len(data) > room:
                half.waiting.appendleft(data[room:])
                data = data[:room]
            last = half.ended and not half.waiting and half.scrub is None and not half.trailers
            to.send_data(number, data, end_stream=last)
            moved += len(data)
        if moved:
            self.moved += 1
            if up:
                stream.line.up += moved
            else:
                stream.line.down += moved
        self._taken(of, origin, half.gone(moved))
        if up and stream.look is not None and not half.waiting:
            stream.look.let_go()
        if half.ended and not half.waiting and not half.scrub and not (stream.over_up if up else stream.over_down):
            if half.trailers:
                to.send_headers(number, half.trailers, end_stream=True)
            elif not last:
                to.end_stream(number)
            if up:
                stream.over_up = True
            else:
                self._answered(stream)

    def _more(self, stream: Stream, half: Half) -> bool:
        """Whether more waits now: of what a coding makes, as much as a turn has, and at its end what was held back."""
        try:
            while half.pending and not half.waiting:
                if not self._pieces:
                    self._hungry[stream.client] = stream
                    return False
                self._pieces -= 1
                half.refill()
            if half.ended and not half.pending:
                half.finish()
        except WireError as error:
            half.waiting.clear()
            half.ended = False
            self._drop(stream, ErrorCodes.INTERNAL_ERROR, error.reason)
        return bool(half.waiting)

    def _answered(self, stream: Stream) -> None:
        stream.over_down = True
        if not stream.over_up:
            # It was answered before its upload ended: the rest is not wanted (RFC 9113 section 8.1).
            self._reset(self._upstream, stream.upstream, ErrorCodes.NO_ERROR)
            self._reset(self._client, stream.client, ErrorCodes.NO_ERROR)
        self._forget(stream, Reason.ALLOWED)

    def _flow(self, number: int, streams: dict[int, Stream], *, up: bool) -> None:
        # A window has opened: of one stream, or of the connection and so of all.
        for stream in [streams[number]] if number in streams else list(streams.values()) if not number else []:
            half = stream.up if up else stream.down
            if half.waiting:
                self._pass(stream, up=up)
