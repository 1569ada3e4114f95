"""The answer to one plain request: interim heads, the final head, and the body, passed on as they come.

Rules of the file:

* A read is passed on at once, however small (B55); a client that is slow stops the reading (B56).
* An answer whose length is ambiguous, or that ends too soon, is 502 while nothing of it was passed on, and cuts both
  connections after that (GAT-4).
* What an origin sends behind its answer poisons its connection: it is not used again.

Sources: RFC 9110 section 15.2, RFC 9112 sections 6 and 9.
"""

from __future__ import annotations

from tidegate.gate.cleaned import TRAILER, CleanedBody, cleaned
from tidegate.gate.reactor import IN
from tidegate.model.reason import Reason
from tidegate.wire.body import make_body
from tidegate.wire.errors import WireError
from tidegate.wire.framing import Kind, response_framing
from tidegate.wire.headers import accepts_websocket, keeps_alive, response_head_bytes
from tidegate.wire.http1 import parse_response_head, response_head_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.gate.forward import Exchange
    from tidegate.gate.origin import Origin
    from tidegate.gate.request import Request
    from tidegate.wire.body import Body
    from tidegate.wire.framing import Framing
    from tidegate.wire.http1 import ResponseHead

SIZE = 1 << 16
SMALL = 1 << 12
ROUNDS = 16  # reads in one turn before others get theirs
TURN = 0.002  # seconds, likewise: chunks of a byte or two cost much more than their bytes
_BUFFER = bytearray(SIZE)
_VIEW = memoryview(_BUFFER)
_PROXY_AUTHENTICATION_REQUIRED = 407


class Answering:
    """Reads one answer from the origin of an exchange. `begun` once part of the final head is on its way."""

    __slots__ = (
        "_body",
        "_buffer",
        "_close",
        "_ended",
        "_exchange",
        "_held",
        "_interim",
        "_keep_origin",
        "_proxied",
        "_request",
        "_room",
        "_seen",
        "_version",
        "begun",
        "open_ended",
    )

    def __init__(self, exchange: Exchange, request: Request, *, proxied: bool) -> None:
        self._exchange = exchange
        self._request = request
        self._version = request.head.version
        self._proxied = proxied
        self._buffer = b""
        self._seen = 0
        self._body: Body | CleanedBody | None = None
        self._held: CleanedBody | None = None  # the body, where it is looked through
        self._keep_origin = False
        self._close = False
        self._ended = False  # all is passed on but what the client has not taken yet
        self._interim = 0  # bytes of interim heads
        self._room = SIZE  # what one read takes
        self.begun = False
        self.open_ended = False  # the client knows by the end of its connection that the body is whole

    def read(self, origin: Origin, *, through: bool = True) -> None:
        """Read what the origin sends until there is nothing, or the client does not take it.

        Not `through` where an event has just told of new bytes: then a short read has emptied the socket.
        """
        exchange = self._exchange
        receive, clock = origin.source.recv_into, exchange.gate.clock
        late = clock() + TURN
        for _ in range(ROUNDS):
            if self._held is not None and self._held.pending:
                if not self._pour():
                    return
                if clock() > late:
                    break
                continue
            try:
                room = self._room
                count = receive(_BUFFER, room)
            except BlockingIOError:
                return
            except OSError:
                self._lost()
                return
            if not count:
                self._eof()
                return
            exchange.touched = exchange.gate.reactor.now
            try:
                self._take(origin, count)
            except WireError as error:
                exchange.fail(error.reason)
                return
            except OSError:
                exchange.abort(Reason.CLIENT_GONE)
                return
            if exchange.answer is not self or exchange.origin is not origin or exchange.client.blocked:
                return
            waits = self._held is not None and self._held.pending
            if count < room and not through and not origin.ending and not waits:
                return
            if clock() > late:
                self._room = SMALL
                break
        else:
            self._room = min(2 * self._room, SIZE)
        exchange.gate.reactor.again(exchange, origin.fd, IN)

    def resume(self) -> None:
        """The client takes bytes again."""
        exchange = self._exchange
        if self._ended:
            self._complete()
        elif exchange.origin is not None:
            self.read(exchange.origin)

    def _pour(self) -> bool:
        """Pass on one more piece of what a coding made of bytes that came before; False where reading stops."""
        exchange, body = self._exchange, self._held
        assert body is not None, "something of it waits"
        try:
            spans = body.more()
            if spans:
                self._send(b"".join(spans))
        except WireError as error:
            exchange.fail(error.reason)
            return False
        except OSError:
            exchange.abort(Reason.CLIENT_GONE)
            return False
        if body.done:
            self._end(behind=False)
            return False
        return not exchange.client.blocked

    def _take(self, origin: Origin, count: int) -> None:
        body = self._body
        if body is None:
            self._head(origin, bytes(_VIEW[:count]))
            return
        used, spans = body.feed(_VIEW[:count])
        if spans:
            self._send(spans[0] if len(spans) == 1 else b"".join(spans))
        if used < count:
            self._keep_origin = False  # it said something behind its answer
        if body.done:
            self._end(behind=False)

    def _send(self, data: bytes | memoryview) -> None:
        self._count(data)
        self._exchange.client.send(data)

    def _count(self, data: bytes | memoryview) -> None:
        exchange = self._exchange
        if exchange.allowance is not None and not exchange.allowance.spend(len(data)):
            raise WireError(exchange.allowance.reason, "")
        if exchange.entry is not None:
            exchange.entry.down += len(data)

    def _head(self, origin: Origin, data: bytes) -> None:
        exchange = self._exchange
        limits = exchange.task.policy.limits
        buffer = self._buffer + data if self._buffer else data
        while True:
            end = response_head_end(buffer, self._seen, limits)
            if end < 0:
                self._seen = len(buffer)
                self._buffer = buffer
                return
            raw = buffer[:end]
            known = origin.heads.find(raw)
            if known is not None and self._ordinary():
                self._buffer = b""
                self._keep_origin = True
                self._begin(known.status, known.framing, known.out, buffer[end:])
                return
            head = parse_response_head(raw, limits)
            buffer, self._seen = buffer[end:], 0
            if head.status >= 200:
                break
            if head.status == 101:
                self._switch(head, buffer)
                return
            self._interim += end
            if self._interim > limits.header_bytes:
                raise WireError(Reason.UPSTREAM_RESPONSE, "its interim answers do not end")
            if self._version == (1, 1):
                self._send(self._clean(response_head_bytes(head, close=False, without=exchange.without)))
        self._buffer = b""
        self._final(origin, raw, head, buffer)

    def _ordinary(self) -> bool:
        # Whether what is made of a head follows from its bytes alone, as long as the head asks for no end.
        exchange = self._exchange
        return (
            exchange.keep
            and exchange.body is None
            and exchange.cleaner is None
            and not self._proxied
            and self._version == (1, 1)
            and self._request.method != "HEAD"
        )

    def _switch(self, head: ResponseHead, rest: bytes) -> None:
        exchange = self._exchange
        if not (self._request.websocket and accepts_websocket(self._request.head, head)):
            exchange.fail(Reason.UPSTREAM_RESPONSE)
            return
        if exchange.entry is not None:
            exchange.entry.status = 101
        self._send(response_head_bytes(head, close=False, switching=True, without=exchange.without))
        exchange.switch(rest)

    def _final(self, origin: Origin, raw: bytes, head: ResponseHead, rest: bytes) -> None:
        exchange, request = self._exchange, self._request
        if self._proxied and head.status == _PROXY_AUTHENTICATION_REQUIRED:
            exchange.fail(Reason.UPSTREAM_PROXY)
            return
        entry = exchange.entry if 300 <= head.status < 400 else None
        if entry is not None and entry.led(head.get(b"location") or b""):
            exchange.fail(Reason.REDIRECT_REFUSED)
            return
        exchange.heard(head)
        framing = response_framing(head, request.method)
        without = exchange.without
        if exchange.cleaner is not None:
            head, self._held = cleaned(exchange.cleaner, head, framing, request.head)
            if self._held is not None:
                without |= TRAILER
        until_close = framing.kind is Kind.CLOSE
        chunked = not framing.empty and b"transfer-encoding" in head.names
        decode = chunked and self._version == (1, 0)
        uploading = exchange.body is not None
        self._keep_origin = not until_close and not uploading and keeps_alive(head)
        self._close = (
            until_close or decode or uploading or not exchange.keep or (exchange.pinned and not self._keep_origin)
        )
        out = self._clean(
            response_head_bytes(head, close=self._close, client_version=self._version, decode=decode, without=without)
        )
        self.open_ended = (until_close and not chunked) or decode
        if self._keep_origin and not self._close and self._ordinary():
            origin.heads.keep(raw, head, framing, out)
        self._begin(head.status, framing, out, rest, decode=decode)

    def _begin(self, status: int, framing: Framing, out: bytes, rest: bytes, *, decode: bool = False) -> None:
        exchange = self._exchange
        if exchange.entry is not None:
            exchange.entry.status = status
        if framing.kind is Kind.LENGTH and framing.length == len(rest) and self._held is None:
            self.begun = True
            whole = out + rest  # all of it came at once
            self._count(whole)
            exchange.client.post(whole)
            self._end(behind=False)
            return
        if framing.empty:
            self.begun = True
            self._count(out)
            exchange.client.post(out)
            self._end(behind=bool(rest))
            return
        body: Body | CleanedBody | None = self._held
        if body is None:
            body = make_body(framing, Reason.UPSTREAM_RESPONSE, decode=decode)
        self._body = body
        used, spans = body.feed(rest) if rest else (0, [])  # a body that is none from its first bytes is 502
        self.begun = True
        self._send(b"".join((out, *spans)))
        if used < len(rest):
            self._keep_origin = False
        if body.done:
            self._end(behind=False)

    def _end(self, *, behind: bool) -> None:
        if behind:
            self._keep_origin = False
        self._ended = True
        if not self._exchange.client.blocked:
            self._complete()

    def _complete(self) -> None:
        exchange = self._exchange
        exchange.complete(keep_origin=self._keep_origin, close=self._close)

    def _eof(self) -> None:
        exchange, body = self._exchange, self._body
        if body is None:
            self._lost()
            return
        try:
            body.eof()
        except WireError:
            exchange.abort(Reason.UPSTREAM_CLOSED)
            return
        if isinstance(body, CleanedBody):
            try:
                rest = body.rest()
                if rest:
                    self._send(rest)
            except WireError as error:
                exchange.abort(error.reason)
                return
            except OSError:
                exchange.abort(Reason.CLIENT_GONE)
                return
        self._keep_origin = False
        self._end(behind=False)

    def _clean(self, head: bytes) -> bytes:
        cleaner = self._exchange.cleaner
        return head if cleaner is None else cleaner.all(head)

    def _lost(self) -> None:
        exchange = self._exchange
        if self.begun:
            exchange.abort(Reason.UPSTREAM_CLOSED)
        elif self._buffer or not exchange.retry():
            exchange.fail(Reason.UPSTREAM_CLOSED)
