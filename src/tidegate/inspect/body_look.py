"""Bodies that may have a secret's field in them, held until they were read: model.seams.Guard (INS-5).

Rules of the file: JSON and forms to a host of such a secret are held and read, what is multipart is looked through;
other bodies pass as they come, and a stand-in in them is worth nothing. One body is bounded, and so are all that a
task has waiting at once; what is sent on is what was read, with its length and without the coding it came in.
"""

from __future__ import annotations

import json

from tidegate.inspect.body_fields import FieldError, kind_of, put_values
from tidegate.inspect.coded_body import CodedError, TooLargeError, can_decode, decoded
from tidegate.model.reason import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tidegate.inspect.secrets import Secret

MOST = 4 << 20  # bytes of one body
ROOM = 4 * MOST  # of all that wait
_SHOWN = 200  # characters of a path that are on record


class BodyGuard:
    """Reads what one task sends to hosts whose secrets belong in a field of a body. `used` hears of each that did."""

    __slots__ = ("_by_host", "left", "used")

    def __init__(
        self,
        by_host: Mapping[tuple[str, int], Sequence[Secret]],
        used: Callable[[str, str, int], None],
        room: int = ROOM,
    ) -> None:
        self._by_host = dict(by_host)
        self.used = used
        self.left = room

    def covers(self, host: str, port: int) -> bool:
        """Whether what goes there is looked at."""
        return (host, port) in self._by_host

    def look(
        self,
        place: tuple[str, int],
        method: str,
        target: bytes,
        fields: Iterable[tuple[bytes, bytes]],
        *,
        socket: bool,
        empty: bool,
    ) -> BodyLook:
        """Begin to look at a request to a place that is covered; see the seam."""
        del method, socket  # any may have a body, and a WebSocket is refused at such a host
        named: dict[bytes, list[bytes]] = {}
        for name, value in fields:
            named.setdefault(name.lower(), []).append(value.strip())
        kinds, codings = named.get(b"content-type", []), named.get(b"content-encoding", [])
        kind = kind_of(kinds[0]) if kinds and not empty else ""
        look = BodyLook(self, place, self._by_host[place], kind, codings[0].lower() if codings else b"", target)
        if kind and len(kinds) > 1:
            look.refuse("and the body says twice what it is")
        elif kind and (len(codings) > 1 or not can_decode(look.coding)):
            look.refuse("and the body is compressed in a way that cannot be read: let the client send it plain")
        return look


class BodyLook:
    """One request: model.seams.Look."""

    __slots__ = ("_guard", "_held", "_kind", "_place", "_raw", "_secrets", "body", "coding", "path", "reason", "why")

    def __init__(
        self,
        guard: BodyGuard,
        place: tuple[str, int],
        secrets: Sequence[Secret],
        kind: str,
        coding: bytes,
        target: bytes,
    ) -> None:
        self._guard = guard
        self._place = place
        self._secrets = secrets
        self._kind = kind
        self._raw = bytearray()  # one piece: a chunk may be a byte
        self._held = 0
        self.coding = coding
        self.body = bool(kind)
        self.path = target.partition(b"?")[0].decode("latin-1")[:_SHOWN]
        self.reason = Reason.ALLOWED
        self.why = ""

    def refuse(self, why: str, secret: str = "", reason: Reason = Reason.SECRET_MISDIRECTED) -> None:
        """Let it not be sent."""
        one = next((one for one in self._secrets if one.name == secret), self._secrets[0])
        self.why = f"the secret {one.name} belongs in {one.place}, {why}"
        self.reason = reason
        self.let_go()

    def take(self, data: bytes | memoryview) -> None:
        """Take bytes of the body."""
        if not self.why and self._charge(len(data)):
            self._raw += data

    def _charge(self, size: int) -> bool:
        if self._held + size > MOST:
            self.refuse(f"and a body of more than {MOST >> 20} MiB is not read")
        elif size > self._guard.left:
            self.refuse("and too many bodies wait to be read", reason=Reason.OUT_OF_RESOURCES)
        else:
            self._held += size
            self._guard.left -= size
        return not self.why

    def done(self) -> bytes:
        """The body is whole: return what is to be sent in its place, unless `why` says now why it is not."""
        if self.why:
            return b""
        raw = bytes(self._raw)
        self._raw.clear()
        data = b""
        try:
            data = decoded(self.coding, raw, MOST)
            if len(data) > len(raw) and not self._charge(len(data) - len(raw)):
                return b""
            put: set[str] = set()
            data = put_values(self._kind, data, self._secrets, put)
            for name in sorted(put):
                self._guard.used(name, *self._place)
        except TooLargeError:
            self.refuse(f"and a body of more than {MOST >> 20} MiB is not read")
        except CodedError as error:
            self.refuse(f"and {error}")
        except FieldError as error:
            self.refuse(str(error), error.secret)
        return b"" if self.why else data

    def let_go(self) -> None:
        """Give back what is held for it."""
        self._guard.left += self._held
        self._held = 0
        self._raw.clear()

    def answer(self, line: str) -> bytes:
        """Return the body of the answer that refuses."""
        return json.dumps({"error": {"message": line}}).encode("ascii") + b"\n"
