"""The stream of events: what the bus says, as server-sent events.

    id: EPOCH-N          of the bus; sent back as Last-Event-ID, the stream goes on after it
    event: task | connection | open | question | rule | settings | server | hello | reset
    data: one JSON object

`hello` comes first and says from where the stream goes on: who reads the state after it misses nothing. `reset` says
that what was missed is gone and everything is to be read anew. A comment every `HEARTBEAT_SECONDS` shows that the line
lives. A stream ends when its token does, and with the server. Source: HTML Living Standard, section 9.2.

A stream is one plain coroutine and no asynchronous generator: one that is closed while it waits (the loop has ended)
could not be closed in CPython 3.11, and said so on standard error.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from tidegate.server.api.errors import ApiError
from tidegate.server.api.writing import to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from tidegate.server.bus import Bus, Message, Subscription

HEARTBEAT_SECONDS: Final = 10.0
RETRY_MILLISECONDS: Final = 1000
MAX_STREAMS: Final = 32  # of one token, or of the unix socket: nobody takes another's
HEARTBEAT: Final = b":\n\n"


def frame(kind: str, data: object, event_id: str = "") -> bytes:
    """Return one event. JSON has no line ends in it, so that one `data:` line holds it whole."""
    head = f"id: {event_id}\n" if event_id else ""
    return f"{head}event: {kind}\ndata: ".encode() + to_json(data) + b"\n\n"


class Streams:
    """All open streams. `alive` says of a token's id whether it is still good."""

    def __init__(self, bus: Bus, alive: Callable[[int], bool]) -> None:
        self._bus = bus
        self._alive = alive
        self._waits: set[asyncio.Timeout] = set()
        self._open: Counter[int] = Counter()  # by token
        self._stopped = False

    def look_again(self) -> None:
        """Have each stream see at once whether it may go on: a token was revoked. On the loop."""
        now = asyncio.get_running_loop().time()
        for wait in self._waits:
            if not wait.expired():
                wait.reschedule(now)

    def stop(self) -> None:
        """End all streams, and begin none from now on."""
        self._stopped = True
        self.look_again()

    def respond(self, request: Request, token: int, seen: Callable[[], None]) -> EventStream:
        """Return the stream for a request; `seen` is called as long as somebody reads it.

        Raises:
            ApiError: 503 where the token has `MAX_STREAMS` already.
        """
        if self._open[token] >= MAX_STREAMS or self._stopped:
            raise ApiError(503, "too many streams of events are open", fix="close one")
        return EventStream(lambda write: self._follow(request, token, seen, write))

    async def _follow(
        self, request: Request, token: int, seen: Callable[[], None], write: Callable[[bytes], Awaitable[None]]
    ) -> None:
        last_id = request.headers.get("last-event-id")
        subscription = self._bus.subscribe(last_id)
        self._open[token] += 1
        try:
            await write(f"retry: {RETRY_MILLISECONDS}\n\n".encode())
            if last_id is None:
                seen()
                await write(frame("hello", {}, self._bus.last_id))
            while not self._stopped and self._alive(token) and not await request.is_disconnected():
                seen()
                messages = await self._next(subscription)
                if messages is None:
                    return
                if not messages:
                    await write(HEARTBEAT)
                elif self._alive(token):
                    await write(b"".join(frame(message.kind, message.data, message.id) for message in messages))
        finally:
            self._open[token] -= 1
            subscription.close()

    async def _next(self, subscription: Subscription) -> list[Message] | None:
        """Return what the bus has, [] after a while or when it is time to look again."""
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS) as wait:
                self._waits.add(wait)
                return await subscription.next()
        except TimeoutError:
            return []
        finally:
            self._waits.discard(wait)


class EventStream(Response):
    """An answer whose end is not known: `follow` is given what writes, and returns at the end."""

    media_type = "text/event-stream"

    def __init__(self, follow: Callable[[Callable[[bytes], Awaitable[None]]], Awaitable[None]]) -> None:
        super().__init__()
        self._follow = follow

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  ASGI's signature
        """Send the frames as they come."""

        async def write(chunk: bytes) -> None:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})

        headers = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["method"] != "HEAD":
            await self._follow(write)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
