"""The guard of one task's model services: each request is looked at before any of it is sent (INS-8).

Rules of the file:

* A body is held until it is whole and was looked at; what is sent on is what was looked at, without the coding it came
  in. One body is bounded, and so are all that a task has waiting at once.
* A refusal is said in the form of the service's own errors, so that an agent shows it.
* A WebSocket carries calls that nobody looks at. It is refused with the status on which agents go on over HTTP.

It knows no connection: who has one feeds a Look and obeys it.
"""

from __future__ import annotations

import json

from tidegate.inspect.coded_body import CodedError, TooLargeError, decoded
from tidegate.inspect.model_guard import find_call, why_head_refused, why_refused
from tidegate.inspect.model_services import LOOK, SERVICES
from tidegate.model.reason import Reason
from tidegate.policy.model_hosts import MODEL_HOSTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidegate.inspect.model_services import Call, Service

MOST = 32 * 1024 * 1024
"""Bytes of one body: what Anthropic takes at most."""

ROOM = 4 * MOST  # bytes of all bodies that wait
_SHOWN = 200  # characters of a path that are on record


class Guard:
    """Looks at the requests of one task. `places` are (host, port) of policy.guarded; unknown ones are left out."""

    __slots__ = ("_services", "left")

    def __init__(self, places: Iterable[tuple[str, int]], room: int = ROOM) -> None:
        known = ((place, MODEL_HOSTS.get(place[0], "")) for place in places)
        self._services = {place: SERVICES[name] for place, name in known if name}
        self.left = room  # bytes that may still be held

    def covers(self, host: str, port: int) -> bool:
        """Whether what goes there is looked at."""
        return (host, port) in self._services

    def look(
        self,
        place: tuple[str, int],
        method: str,
        target: bytes,
        fields: Sequence[tuple[bytes, bytes]],
        *,
        socket: bool,
        empty: bool,
    ) -> Look:
        """Begin to look at a request to a place that is covered.

        `socket` says that it would become a WebSocket, `empty` that no body follows.
        """
        service = self._services[place]
        look = Look(self, service, target)
        call = None if socket else find_call(service, method, target)
        if socket:
            look.refuse(Reason.MODEL_SOCKET, "its calls could not be looked at")
        elif call is None:
            look.refuse(Reason.MODEL_GUARD, f"no agent calls {method} here")
        else:
            why = why_head_refused(call, fields, empty=empty)
            if why:
                look.refuse(Reason.MODEL_GUARD, why)
            else:
                look.begin(call, fields)
        return look


class Look:
    """One request. `why` says why it is refused, '' while it is not; `body` whether its body is to be fed."""

    __slots__ = ("_call", "_coding", "_guard", "_held", "_raw", "_service", "body", "path", "reason", "why")

    def __init__(self, guard: Guard, service: Service, target: bytes) -> None:
        self._guard = guard
        self._service = service
        self._call: Call | None = None
        self._coding = b""
        self._raw = bytearray()  # one piece: a chunk may be a byte
        self._held = 0  # of the guard's room
        self.path = target.partition(b"?")[0].decode("latin-1")[:_SHOWN]
        self.reason = Reason.ALLOWED
        self.why = ""
        self.body = False

    def refuse(self, reason: Reason, why: str) -> None:
        """Let it not be sent."""
        self.reason, self.why = reason, why
        self.let_go()

    def begin(self, call: Call, fields: Iterable[tuple[bytes, bytes]]) -> None:
        """Take note of what is called, and of how its body is coded."""
        self._call = call
        self.body = call.body == LOOK
        self._coding = next(
            (value.strip().lower() for name, value in fields if name.lower() == b"content-encoding"), b""
        )

    def take(self, data: bytes | memoryview) -> None:
        """Take bytes of the body."""
        if not self.why and self._charge(len(data)):
            self._raw += data

    def _charge(self, size: int) -> bool:
        if self._held + size > MOST:
            self.refuse(Reason.MODEL_BODY, f"{MOST >> 20} MiB at most")
        elif size > self._guard.left:
            self.refuse(Reason.OUT_OF_RESOURCES, "too many calls wait at once")
        else:
            self._held += size
            self._guard.left -= size
        return not self.why

    def done(self) -> bytes:
        """The body is whole: return what is to be sent in its place, plain, unless `why` says now why it is not."""
        call = self._call
        if self.why or call is None or call.shape is None:
            return b""
        raw = bytes(self._raw)
        self._raw.clear()
        try:
            data = decoded(self._coding, raw, MOST)
        except TooLargeError as error:
            self.refuse(Reason.MODEL_BODY, str(error))
            return b""
        except CodedError as error:
            self.refuse(Reason.MODEL_GUARD, str(error))
            return b""
        if len(data) > len(raw) and not self._charge(len(data) - len(raw)):
            return b""
        why = why_refused(call.shape, data)
        if why:
            self.refuse(Reason.MODEL_GUARD, why)
            return b""
        return data

    def let_go(self) -> None:
        """Give back the room that this one took; the second call and later ones do nothing."""
        self._guard.left += self._held
        self._held = 0
        self._raw.clear()

    def answer(self, line: str) -> bytes:
        """Return the body of the answer that refuses, as the service would say it, in ASCII."""
        status = self.reason.status
        kind = self._call.shape.name if self._call is not None and self._call.shape is not None else self._service.error
        if kind == "anthropic":
            word = "permission_error" if status == 403 else "request_too_large" if status == 413 else "api_error"
            said: object = {"type": "error", "error": {"type": word, "message": line}}
        elif kind == "google":
            word = "PERMISSION_DENIED" if status == 403 else "INVALID_ARGUMENT" if status == 413 else "UNAVAILABLE"
            said = {"error": {"code": status, "message": line, "status": word}}
        else:
            error = {"message": line, "type": "invalid_request_error", "param": None, "code": self.reason.metric}
            said = {"error": error}
        return json.dumps(said).encode("ascii") + b"\n"
