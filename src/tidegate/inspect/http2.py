"""HTTP/2 read inside TLS, on both sides: streams judged one by one and passed on (INS-3, INS-4, INS-6; RFC 9113).

Rules of the file:

* Both sides speak HTTP/2, so nothing is translated: a stream of the client is one of the destination's, its headers
  are written anew, and bytes go on only as far as the other side's windows allow. What a side has sent and the other
  has not taken is bounded by the windows that we gave: a window opens again only when its bytes have gone on.
* Names and values are held to the grammar of HTTP/1 too: what was read here is what any other reader would read. The
  framing of a stream is HTTP/2's; a content-length has to agree with it (the h2 library sees to that).
* A refused stream is answered, and the others go on. The authority of every stream is the connection's, else 421.
* What floods is ended: streams that are reset again and again, frames that move nothing, headers beyond their bound.
* GOAWAY lets what was begun end (http2_side.py). What a stream may ask is in http2_request.py.
* A call to an agent's model service is held until it was looked at (http2_held.py).

It does no I/O and knows no clock. What it does not do: push (it is switched off), priorities (they are advice). It has
a little over 400 lines: the two directions share one set of streams, and read apart they would not be understood.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    InformationalResponseReceived,
    PushedStreamReceived,
    RemoteSettingsChanged,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
    WindowUpdated,
)
from h2.exceptions import H2Error, ProtocolError
from h2.settings import SettingCodes

from tidegate.inspect.http2_held import Held, HeldStreams
from tidegate.inspect.http2_refusal import refusal
from tidegate.inspect.http2_request import ALT_SVC, checked, checked_trailers, judged, method_of
from tidegate.inspect.http2_side import STREAMS, make_side
from tidegate.model.reason import Reason
from tidegate.model.verdict import How
from tidegate.wire.authority import HTTPS_PORT, host_field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from h2.connection import H2Connection
    from h2.events import Event

    from tidegate.model.decision import Decision
    from tidegate.model.limits import Limits
    from tidegate.model.seams import Guard, Line, Look

    Headers = list[tuple[bytes, bytes]]

MOST_RESETS = 100  # beyond the streams that were answered: "rapid reset", CVE-2023-44487
MOST_IDLE_FRAMES = 1000  # that move nothing, in a row
_SMALL = 1024  # bytes: what is less waits together, so that frames of a byte cost no object each
_STAYS = frozenset((ALT_SVC, b"proxy-authorization", b"proxy-connection", b"proxy-authenticate", b"host"))


class _Half:
    """What of one direction of a stream waits for the other side's window."""

    __slots__ = ("ended", "trailers", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.trailers: Headers | None = None
        self.ended = False

    def hold(self, data: bytes) -> None:
        waiting = self.waiting
        if waiting and len(waiting[-1]) < _SMALL:
            waiting[-1] += data
        else:
            waiting.append(data)


class _Stream:
    """One stream: its ids on both sides, its line in the journal, and both directions."""

    __slots__ = ("answered", "client", "down", "line", "look", "over_down", "over_up", "taken", "up", "upstream")

    def __init__(self, client: int, upstream: int, line: Line) -> None:
        self.client = client
        self.upstream = upstream
        self.line = line
        self.up = _Half()
        self.down = _Half()
        self.answered = False
        self.look: Look | None = None  # what holds room for its upload
        self.taken = 0  # bytes of its upload that were acknowledged before they went on: it was held
        self.over_up = self.over_down = False


class Http2:
    """One connection of a task and the one to its destination. Feed it; then `take` what each side is to be sent.

    `open_line` begins a line of the journal for a method; `failure` is why the destination cannot be spoken to.
    """

    def __init__(
        self,
        decision: Decision,
        limits: Limits,
        open_line: Callable[[str], Line],
        failure: tuple[Reason, str] | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._held = HeldStreams(decision, guard)
        self._decision = decision
        self._open_line = open_line
        self._failure = failure
        self._most_fields = limits.header_fields
        self._authority = host_field(decision.destination, HTTPS_PORT)
        self._by_client: dict[int, _Stream] = {}
        self._by_upstream: dict[int, _Stream] = {}
        self._resets = self._answers = self._idle = 0
        self._last = 0  # the client's newest stream that was passed on
        self._draining = False
        self.over = False  # both sides are to be closed, once what they are to be sent is sent
        self._client = make_side(limits, client=False)
        self._upstream = make_side(limits, client=True)

    @property
    def streams(self) -> int:
        """How many are open."""
        return len(self._by_client) + len(self._held)

    def take_client(self) -> bytes:
        """Return what the client is to be sent."""
        return self._client.data_to_send()

    def take_upstream(self) -> bytes:
        """Return what the destination is to be sent."""
        return self._upstream.data_to_send() if self._failure is None else b""

    # What the client says.

    @property
    def client_waits(self) -> bool:
        """Whether some of what the client said is still to be looked at."""
        return not self.over and self._client.waits

    @property
    def upstream_waits(self) -> bool:
        """Whether some of what the destination said is."""
        return not self.over and self._upstream.waits

    def from_client(self, data: bytes) -> None:
        """Take plain bytes of the client, and look at the next piece of them; see the seam."""
        try:
            events = self._client.hear(data)
        except H2Error:
            self._end(Reason.BAD_REQUEST)  # the library has put GOAWAY into what is to be sent
            return
        for event in events:
            if self.over:
                return
            try:
                self._on_client(event)
            except H2Error:
                self._end(Reason.BAD_REQUEST)
                return
        if self._idle > MOST_IDLE_FRAMES or self._resets - self._answers > MOST_RESETS:
            self._client.go_away(self._last, ErrorCodes.ENHANCE_YOUR_CALM)
            self._end(Reason.BAD_REQUEST)

    def _on_client(self, event: Event) -> None:
        self._idle += 1
        if isinstance(event, RequestReceived):
            self._idle = 0
            self._request(event.stream_id, event.headers, ends=event.stream_ended is not None)
        elif isinstance(event, DataReceived):
            if event.data:
                self._idle = 0
            if (held := self._held.get(event.stream_id)) is not None:
                held.look.take(event.data)
                self._taken(self._client, event.stream_id, event.flow_controlled_length or 0)
                if held.look.why:
                    self._looked(event.stream_id, held, ends=False)
                return
            self._data(self._client, self._by_client.get(event.stream_id), event, up=True)
        elif isinstance(event, TrailersReceived | StreamEnded):
            if (held := self._held.get(event.stream_id)) is not None:
                if isinstance(event, StreamEnded):  # trailers of what is looked at stay behind
                    self._looked(event.stream_id, held, ends=True)
                return
            self._finish(self._by_client.get(event.stream_id), event, up=True)
        elif isinstance(event, StreamReset):
            self._resets += 1
            if self._held.gone(event.stream_id):
                self._maybe_over()
                return
            stream = self._by_client.get(event.stream_id)
            if stream is not None:
                self._forget(stream, Reason.CLIENT_GONE)
                self._reset(self._upstream, stream.upstream, event.error_code)
        elif isinstance(event, WindowUpdated):
            self._flow(event.stream_id, self._by_client, up=False)
        elif isinstance(event, RemoteSettingsChanged):
            self._flow(0, self._by_client, up=False)
        elif isinstance(event, ConnectionTerminated):
            self._draining = True
            self._maybe_over()

    def _request(self, number: int, fields: Iterable[tuple[bytes, bytes]], *, ends: bool) -> None:
        headers = list(fields)
        pseudo = {name: value for name, value in headers if name[:1] == b":"}
        method = method_of(pseudo)
        line = self._open_line(method)
        reason, detail = judged(self._decision, pseudo, headers, method)
        if self._client.too_many(headers):
            reason, detail = Reason.HEADERS_TOO_LARGE, f"there are more than {self._most_fields} header fields"
        if reason is None and self._failure is not None:
            reason, detail = self._failure
        if reason is not None:
            self._refuse(number, headers, line, reason, detail)
            return
        look = self._held.look(method, pseudo, headers, empty=ends)
        if look is not None and (look.why or look.body):
            held = Held(headers, line, look)
            self._held.add(number, held)
            if look.why or ends:
                self._looked(number, held, ends=ends)
            return
        self._pass_on(number, headers, line, ends=ends)

    def _looked(self, number: int, held: Held, *, ends: bool) -> None:
        """A held stream is whole, or will not be taken; `ends` says that the client has sent all of it."""
        self._held.pop(number)
        look = held.look
        content = look.done()
        if look.why:
            held.line.path = look.path
            self._refuse(number, held.headers, held.line, look.reason, look.why, look)
            if not ends:
                self._reset(self._client, number, ErrorCodes.NO_ERROR)  # RFC 9113 section 8.1: the rest is not wanted
        else:
            stream = self._pass_on(number, held.with_length(len(content)), held.line, ends=False)
            if stream is not None:
                stream.taken, stream.look = len(content), look
                stream.up.hold(content)
                stream.up.ended = True
                self._pass(stream, up=True)
                return
        look.let_go()
        self._maybe_over()

    def _pass_on(self, number: int, headers: Headers, line: Line, *, ends: bool) -> _Stream | None:
        """Open the destination's stream for one of the client's; None where the client is told to try again."""
        if (
            self._draining
            or self._upstream.open_outbound_streams >= self._upstream.remote_settings.max_concurrent_streams
        ):
            line.write(How.REFUSED, Reason.UPSTREAM_CLOSED)
            self._reset(self._client, number, ErrorCodes.REFUSED_STREAM)  # the client tries again
            return None
        out = [(name, value) for name, value in headers if name[:1] == b":" and name != b":authority"]
        out.append((b":authority", self._authority))
        out += [field for field in headers if field[0][:1] != b":" and field[0] not in _STAYS]
        upstream = self._upstream.get_next_available_stream_id()
        stream = _Stream(number, upstream, line)
        self._by_client[number] = self._by_upstream[upstream] = stream
        self._last = max(self._last, number)
        line.up += sum(len(name) + len(value) for name, value in out)
        self._upstream.send_headers(upstream, out, end_stream=ends)
        stream.over_up = ends
        return stream

    def _refuse(
        self, number: int, asked: Headers, line: Line, reason: Reason, detail: str, look: Look | None = None
    ) -> None:
        decision = self._decision.refuse(reason, fix="")
        said = decision.sentence()
        self._answers += 1
        line.decision = decision
        line.status = reason.status or 403
        line.write(How.REFUSED, reason)
        client = self._client
        try:
            room = client.local_flow_control_window(number)
            said = f"{said} ({detail})" if detail else said
            told = look.answer(f"tidegate: {said}") if look is not None else b""
            fields, body = refusal(reason, said, asked, method=line.method, room=room, told_as=told)
            client.send_headers(number, fields, end_stream=not body)
            if body:
                client.send_data(number, body, end_stream=True)
        except ProtocolError:
            return  # it has reset the stream already

    # What the destination says.

    def from_upstream(self, data: bytes) -> None:
        """Take plain bytes of the destination, likewise."""
        try:
            for event in self._upstream.hear(data):
                if self.over:
                    return
                self._on_upstream(event)
        except H2Error:
            self.upstream_ended(Reason.UPSTREAM_RESPONSE)

    def _finish(self, stream: _Stream | None, event: TrailersReceived | StreamEnded, *, up: bool) -> None:
        """Trailers of one direction, or its end."""
        if stream is None:
            return
        way = stream.up if up else stream.down
        if isinstance(event, StreamEnded):
            way.ended = True
            self._pass(stream, up=up)
            return
        side = self._client if up else self._upstream
        way.trailers = None if side.too_many(event.headers) else checked_trailers(event.headers)
        if way.trailers is None:
            self._drop(stream, ErrorCodes.PROTOCOL_ERROR, Reason.BAD_REQUEST if up else Reason.UPSTREAM_RESPONSE)

    def _on_upstream(self, event: Event) -> None:
        if isinstance(event, ResponseReceived | InformationalResponseReceived):
            self._response(event)
        elif isinstance(event, DataReceived):
            self._data(self._upstream, self._by_upstream.get(event.stream_id), event, up=False)
        elif isinstance(event, TrailersReceived | StreamEnded):
            self._finish(self._by_upstream.get(event.stream_id), event, up=False)
        elif isinstance(event, StreamReset):
            stream = self._by_upstream.get(event.stream_id)
            if stream is not None:
                self._forget(stream, Reason.ALLOWED if stream.answered else Reason.UPSTREAM_CLOSED)
                self._reset(self._client, stream.client, event.error_code)
        elif isinstance(event, WindowUpdated):
            self._flow(event.stream_id, self._by_upstream, up=True)
        elif isinstance(event, RemoteSettingsChanged):
            changed = event.changed_settings
            sockets = changed.get(SettingCodes.ENABLE_CONNECT_PROTOCOL)
            if sockets is not None and sockets.new_value:
                self._client.update_settings({SettingCodes.ENABLE_CONNECT_PROTOCOL: 1})
            if SettingCodes.MAX_CONCURRENT_STREAMS in changed:
                most = min(STREAMS, self._upstream.remote_settings.max_concurrent_streams)
                self._client.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: most})
            self._flow(0, self._by_upstream, up=True)
        elif isinstance(event, PushedStreamReceived):
            self._reset(self._upstream, event.pushed_stream_id, ErrorCodes.REFUSED_STREAM)
        elif isinstance(event, ConnectionTerminated):
            self._upstream_leaves(event.last_stream_id or 0)

    def _response(self, event: ResponseReceived | InformationalResponseReceived) -> None:
        stream = self._by_upstream.get(event.stream_id)
        if stream is None:
            return
        headers = None if self._upstream.too_many(event.headers) else checked(event.headers)
        status = dict(headers or ()).get(b":status", b"")
        if headers is None or len(status) != 3 or not status.isdigit() or status == b"101":
            self._drop(stream, ErrorCodes.PROTOCOL_ERROR, Reason.UPSTREAM_RESPONSE)
            return
        kept = [field for field in headers if field[0] != ALT_SVC]
        stream.line.down += sum(len(name) + len(value) for name, value in kept)
        if isinstance(event, ResponseReceived):
            stream.answered = True
            stream.line.status = int(status)
            self._answers += 1
        # An end with the headers stays one: gRPC's "trailers only" is told by it.
        ends = isinstance(event, ResponseReceived) and event.stream_ended is not None
        self._client.send_headers(stream.client, kept, end_stream=ends)
        if ends:
            self._answered(stream)

    def _upstream_leaves(self, last: int) -> None:
        # What it did not take is told so, and may be tried again; what it took goes on.
        for stream in [one for one in self._by_upstream.values() if one.upstream > last]:
            self._forget(stream, Reason.UPSTREAM_CLOSED)
            self._reset(self._client, stream.client, ErrorCodes.REFUSED_STREAM)
        if not self._draining:
            self._draining = True
            self._client.go_away(self._last, ErrorCodes.NO_ERROR)
        self._maybe_over()

    def upstream_ended(self, reason: Reason = Reason.UPSTREAM_CLOSED) -> None:
        """Take note that the destination is gone: what it did not answer is told so."""
        if self.over or self._failure is not None:
            return
        for stream in list(self._by_client.values()):
            self._drop(stream, ErrorCodes.INTERNAL_ERROR, reason)
        for number, held in self._held.all():
            held.look.let_go()
            self._refuse(number, held.headers, held.line, reason, "")
            self._reset(self._client, number, ErrorCodes.NO_ERROR)
        if reason is Reason.CLIENT_CERTIFICATE:
            self._failure = reason, ""  # in TLS 1.3 it is known only now; each request is told so
            return
        self._client.go_away(self._last, ErrorCodes.NO_ERROR)
        self.over = True

    def ended(self, reason: Reason) -> None:
        """The client is gone, or the connection is cut: nothing more is said to anybody."""
        self.over = True
        for stream in list(self._by_client.values()):
            self._forget(stream, reason)
        for _number, held in self._held.all():
            held.look.let_go()
            held.line.write(How.REFUSED, reason)

    # Bytes.

    def _data(self, side: H2Connection, stream: _Stream | None, event: DataReceived, *, up: bool) -> None:
        size = event.flow_controlled_length or 0
        if stream is None:
            self._taken(side, event.stream_id, size)  # of one that was refused or reset
            return
        half = stream.up if up else stream.down
        padding = size - len(event.data)
        if padding:
            self._taken(side, event.stream_id, padding)
        if event.data:
            half.hold(event.data)
            self._pass(stream, up=up)

    def _pass(self, stream: _Stream, *, up: bool) -> None:
        """Send what waits in one direction, as far as the windows go, and the end behind it."""
        half = stream.up if up else stream.down
        to, number = (self._upstream, stream.upstream) if up else (self._client, stream.client)
        of, origin = (self._client, stream.client) if up else (self._upstream, stream.upstream)
        moved = 0
        while half.waiting:
            room = min(to.local_flow_control_window(number), to.max_outbound_frame_size)
            if room <= 0:
                break
            data = half.waiting.popleft()
            if len(data) > room:
                half.waiting.appendleft(data[room:])
                data = data[:room]
            to.send_data(number, data)
            moved += len(data)
        if moved:
            if up:
                stream.line.up += moved
            else:
                stream.line.down += moved
            already = min(moved, stream.taken) if up else 0
            stream.taken -= already
            self._taken(of, origin, moved - already)
        if up and stream.look is not None and not half.waiting:
            stream.look.let_go()
        if half.ended and not half.waiting and not (stream.over_up if up else stream.over_down):
            if half.trailers:
                to.send_headers(number, half.trailers, end_stream=True)
            else:
                to.end_stream(number)
            if up:
                stream.over_up = True
            else:
                self._answered(stream)

    def _answered(self, stream: _Stream) -> None:
        stream.over_down = True
        if not stream.over_up:
            # It was answered before its upload ended: the rest is not wanted (RFC 9113 section 8.1).
            self._reset(self._upstream, stream.upstream, ErrorCodes.NO_ERROR)
            self._reset(self._client, stream.client, ErrorCodes.NO_ERROR)
        self._forget(stream, Reason.ALLOWED)

    def _taken(self, side: H2Connection, number: int, size: int) -> None:
        # The bytes have gone on: the window they took opens again. A stream that is closed has none any more.
        if not size:
            return
        try:
            side.acknowledge_received_data(size, number)
        except (ProtocolError, KeyError):
            return

    def _flow(self, number: int, streams: dict[int, _Stream], *, up: bool) -> None:
        # A window has opened: of one stream, or of the connection and so of all.
        for stream in [streams[number]] if number in streams else list(streams.values()) if not number else []:
            half = stream.up if up else stream.down
            if half.waiting:
                self._pass(stream, up=up)

    # Ends.

    def _drop(self, stream: _Stream, code: ErrorCodes, reason: Reason) -> None:
        # It cannot go on: told as an answer where there was none yet.
        self._reset(self._upstream, stream.upstream, code)
        answered = stream.answered
        self._let_go(stream)
        self._by_client.pop(stream.client, None)
        self._by_upstream.pop(stream.upstream, None)
        if answered:
            stream.line.write(How.INSPECTED, reason)
            self._reset(self._client, stream.client, code)
            return
        self._refuse(stream.client, [], stream.line, reason, "")
        if not stream.over_up:
            self._reset(self._client, stream.client, ErrorCodes.NO_ERROR)

    @staticmethod
    def _let_go(stream: _Stream) -> None:
        if stream.look is not None:
            stream.look.let_go()

    def _forget(self, stream: _Stream, reason: Reason) -> None:
        self._let_go(stream)
        self._by_client.pop(stream.client, None)
        self._by_upstream.pop(stream.upstream, None)
        if reason is Reason.ALLOWED:
            reason = self._decision.reason
        stream.line.write(How.INSPECTED if stream.answered else How.REFUSED, reason)
        self._maybe_over()

    def _maybe_over(self) -> None:
        if self._draining and not self._by_client and not self._held:
            self.over = True

    def _end(self, reason: Reason) -> None:
        self.ended(reason)

    @staticmethod
    def _reset(side: H2Connection, number: int | None, code: ErrorCodes | int | None) -> None:
        try:
            side.reset_stream(number or 0, code or 0)
        except (ProtocolError, KeyError):
            return  # it is closed already
