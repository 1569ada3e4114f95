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

How bytes move is in http2_flow.py and http2_stream.py, how streams end in http2_ends.py, how the destination is let go
and reached again in http2_again.py, what happens to secrets in http2_secrets.py. It does no I/O and knows no clock.
What it does not do: push (it is switched off), priorities (they are advice).
"""

from __future__ import annotations

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
from h2.exceptions import H2Error
from h2.settings import SettingCodes

from tidegate.inspect.http2_again import Again
from tidegate.inspect.http2_flow import MOST_PIECES
from tidegate.inspect.http2_held import Held
from tidegate.inspect.http2_request import (
    ALT_SVC,
    checked,
    checked_trailers,
    fields_of_method,
    judged,
    method_of,
    misframed,
)
from tidegate.inspect.http2_secrets import Swap
from tidegate.inspect.http2_side import STREAMS
from tidegate.inspect.http2_stream import Stream
from tidegate.model.reason import Reason
from tidegate.model.verdict import How
from tidegate.wire.authority import HTTPS_PORT, host_field
from tidegate.wire.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from h2.events import Event

    from tidegate.model.decision import Decision
    from tidegate.model.limits import Limits
    from tidegate.model.seams import Guard, Line, Secrets

    Headers = list[tuple[bytes, bytes]]

MOST_RESETS = 100  # beyond the streams that were answered: "rapid reset", CVE-2023-44487
MOST_IDLE_FRAMES = 1000  # while nothing moves either way: the windows of a long answer are opened by as many
_ENDLESS = "its interim answers do not end"
_STAYS = frozenset((ALT_SVC, b"proxy-authorization", b"proxy-connection", b"proxy-authenticate", b"host"))


class Http2(Again):
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
        secrets: Secrets | None = None,
    ) -> None:
        super().__init__(decision, limits, failure, guard, None if secrets is None else secrets.bodies)
        self._open_line = open_line
        self._most_fields = limits.header_fields
        self._authority = host_field(decision.destination, HTTPS_PORT)
        self._swap = Swap(secrets, decision.destination)
        self._resets = self._idle = self._moved = 0
        self._most_interim = limits.header_bytes

    def take_client(self) -> bytes:
        """Return what the client is to be sent."""
        return self._client.data_to_send()

    def take_upstream(self) -> bytes:
        """Return what the destination is to be sent."""
        return self._other.data_to_send() if self._other is not None and self._failure is None else b""

    def calm(self) -> None:
        """Take note that time has passed: who pings a quiet stream from time to time does not flood."""
        self._idle = self._idle_up = 0

    # What the client says.

    @property
    def client_waits(self) -> bool:
        """Whether some of what the client said is still to be looked at."""
        return not self.over and self._client.waits

    @property
    def upstream_waits(self) -> bool:
        """Whether some of what the destination said is."""
        return not self.over and self._other is not None and self._other.waits

    def from_client(self, data: bytes) -> None:
        """Take plain bytes of the client, and look at the next piece of them; see the seam."""
        try:
            events = self._client.hear(data)
        except H2Error:
            self.ended(Reason.BAD_REQUEST)  # the library has put GOAWAY into what is to be sent
            return
        if self.moved != self._moved:
            self._moved = self.moved
            self._idle = 0
        for event in events:
            if self.over:
                return
            try:
                self._on_client(event)
            except H2Error:
                self.ended(Reason.BAD_REQUEST)
                return
        if self._idle > MOST_IDLE_FRAMES or self._resets - self._answers > MOST_RESETS:
            self._client.go_away(self._last, ErrorCodes.ENHANCE_YOUR_CALM)
            self.ended(Reason.BAD_REQUEST)

    def _on_client(self, event: Event) -> None:
        self._idle += 1
        if isinstance(event, RequestReceived):
            self._request(event.stream_id, event.headers, ends=event.stream_ended is not None)
        elif isinstance(event, DataReceived):
            if event.data:
                self._idle = 0  # of a stream that was refused as well: many clients read the answer after their upload
            if (held := self._held.get(event.stream_id)) is not None:
                held.look.take(event.data)
                if event.data:
                    held.beats = 0
                    self.moved += 1
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
        self.moved += 1
        pseudo = {name: value for name, value in headers if name[:1] == b":"}
        method = method_of(pseudo)
        line = self._open_line(method)
        reason, detail = judged(self._decision, pseudo, headers, method, ends=ends)
        if self._client.too_many(headers):
            reason, detail = Reason.HEADERS_TOO_LARGE, f"there are more than {self._most_fields} header fields"
        if reason is None and misframed(headers, ends=ends):
            reason, detail = Reason.BAD_FRAMING, "its content-length is not that of its body"
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
            elif held.expects:
                self._client.send_headers(number, [(b":status", b"100")])  # the destination has heard nothing yet
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
                stream.look = look
                try:
                    stream.up.hold(content if stream.up.scrub is None else stream.up.scrub.put(content))
                    stream.up.ended = True
                    self._pass(stream, up=True)
                except WireError as error:
                    self._drop(stream, ErrorCodes.NO_ERROR, error.reason, error.detail)
                return
        look.let_go()
        self._maybe_over()

    def _pass_on(self, number: int, headers: Headers, line: Line, *, ends: bool) -> Stream | None:
        """Open the destination's stream for one of the client's; None where the client is told something else."""
        if self._other is None and not self._draining and not self._reach(number, headers, line, ends=ends):
            return None
        if (
            self._draining
            or self._premature(headers)
            or self._upstream.open_outbound_streams >= self._upstream.remote_settings.max_concurrent_streams
        ):
            line.write(How.REFUSED, Reason.UPSTREAM_CLOSED)
            self._reset(self._client, number, ErrorCodes.REFUSED_STREAM)  # the client tries again
            return None
        out = [(name, value) for name, value in headers if name[:1] == b":" and name != b":authority"]
        out.append((b":authority", self._authority))
        out += [field for field in headers if field[0][:1] != b":" and field[0] not in _STAYS]
        try:
            out = self._swap.asked(out)
            fields = fields_of_method(self._decision, headers, ends=ends)
        except WireError as error:
            self._refuse(number, headers, line, error.reason, error.detail)
            return None
        upstream = self._upstream.get_next_available_stream_id()
        self._hear(b"authorization", headers)
        stream = Stream(number, upstream, line, headers)
        stream.up.look_through(fields)
        self._by_client[number] = self._by_upstream[upstream] = stream
        self._last = max(self._last, number)
        line.up += sum(len(name) + len(value) for name, value in out)
        self._upstream.send_headers(upstream, out, end_stream=ends)
        stream.over_up = ends
        return stream

    # What the destination says.

    def from_upstream(self, data: bytes) -> None:
        """Take plain bytes of the destination, likewise."""
        self._pieces = MOST_PIECES
        if self.moved != self._moved_up:
            self._moved_up = self.moved
            self._idle_up = 0
        try:
            for event in self._upstream.hear(data):
                if self.over:
                    return
                self._idle_up += 1
                self._on_upstream(event)
        except H2Error:
            self.upstream_ended(Reason.UPSTREAM_RESPONSE)
            return
        if self._idle_up > MOST_IDLE_FRAMES and not self.over:  # each of its pings is answered, whether it reads or not
            self.upstream_ended(Reason.UPSTREAM_RESPONSE)
            self._upstream.go_away(0, ErrorCodes.ENHANCE_YOUR_CALM)

    def _finish(self, stream: Stream | None, event: TrailersReceived | StreamEnded, *, up: bool) -> None:
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
        if way.trailers is not None and not up:
            way.trailers = self._swap.clean(way.trailers)
        elif way.trailers is None:
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
        if headers is None or len(status) != 3 or not status.isdigit() or status < b"100" or status == b"101":
            self._drop(stream, ErrorCodes.PROTOCOL_ERROR, Reason.UPSTREAM_RESPONSE)
            return
        kept = [field for field in headers if field[0] != ALT_SVC]
        # An end with the headers stays one: gRPC's "trailers only" is told by it.
        ends = isinstance(event, ResponseReceived) and event.stream_ended is not None
        try:
            if isinstance(event, ResponseReceived):
                kept, scrub = self._swap.answered(kept, stream.asked, empty=ends)
                stream.down.look_through(scrub)
            else:
                kept = self._swap.clean(kept)
        except WireError as error:
            self._drop(stream, ErrorCodes.INTERNAL_ERROR, error.reason, error.detail)
            return
        size = sum(len(name) + len(value) for name, value in kept)
        stream.line.down += size
        if not isinstance(event, ResponseReceived):
            stream.interim += size
            if stream.interim > self._most_interim:
                self._drop(stream, ErrorCodes.PROTOCOL_ERROR, Reason.UPSTREAM_RESPONSE, _ENDLESS)
                return
        self.moved += 1
        if isinstance(event, ResponseReceived):
            stream.answered = True
            self._hear(b"www-authenticate", headers)
            if status[:1] == b"3" and stream.line.led(dict(headers).get(b"location", b"")):
                self._drop(stream, ErrorCodes.REFUSED_STREAM, Reason.REDIRECT_REFUSED)
                return
            stream.line.status = int(status)
            self._answers += 1
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
