"""One side of an HTTP/2 connection that is read: the h2 library, with bounds and without its haste (RFC 9113).

Rules of the file: bounds are said in the first SETTINGS and kept; GOAWAY is an event and not the end, so that what was
begun can end; what came is heard in pieces (http2_frames.py). The table that headers are compressed with is ours and
small, whatever the other side would hold: each header is looked for in all of it. Of a block with more fields than are
allowed only as many are looked at as show that: a thousand fit into a frame and take the library longest to judge. Who
uses what is left of such a block has to refuse it (`too_many`).

What a side weighs counts once for each open connection: settings and tables are lists and not the library's deques, of
760 bytes each; what handles a frame is looked up and not kept twelve times; and the circle that holds a side is broken
when it is `done`, since nobody looks for garbage for long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated
from h2.exceptions import FrameTooLargeError
from h2.settings import SettingCodes, Settings
from hpack import Decoder
from hyperframe.frame import Frame, GoAwayFrame

from tidegate.inspect.http2_frames import PREFACE, Frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from h2.events import Event
    from hpack import HeaderTuple

    from tidegate.model.limits import Limits

STREAMS = 100  # at once: RFC 9113 section 5.1.2 advises no fewer
STREAM_WINDOW = 1 << 18
WINDOW = 1 << 20  # of a connection: what one side may have sent that the other has not taken
HEADER_TABLE = 4096  # bytes: RFC 9113 section 6.5.2 begins with it, and we stay there
_FIRST_WINDOW = 65535  # RFC 9113 section 6.9.2
_FUNCTIONS: dict[type[Frame], Callable[..., Any]] = {}  # that handle frames: the same for every side
_CONFIGURATION = {client: H2Configuration(client_side=client, header_encoding=None) for client in (True, False)}
_PSEUDO = 5  # names that begin with a colon, at most: RFC 9113 section 8.3, RFC 8441


class _Decoder(Decoder):
    """Hands on as many fields as show that there are too many."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most + _PSEUDO + 1

    def decode(self, data: bytes, raw: bool = False) -> Iterable[HeaderTuple]:
        fields = super().decode(data, raw)
        return list(fields)[: self._most]


class _Values(list[int]):
    """The values of one setting: the one in force, then those that are still to be acknowledged."""

    __slots__ = ()

    def popleft(self) -> int:
        """As of a deque."""
        return self.pop(0)


class _Entries(list[Any]):
    """The entries of a table that headers are compressed with, the newest first: a hundred at most."""

    __slots__ = ()

    def appendleft(self, entry: tuple[bytes, bytes]) -> None:
        """As of a deque."""
        self.insert(0, entry)


class _Settings(Settings):
    """The library's, lighter: most of them have one value for ever."""

    def __init__(self, client: bool, initial_values: dict[SettingCodes, int] | None = None) -> None:
        super().__init__(client=client, initial_values=initial_values)
        self._settings: dict[SettingCodes | int, Any] = {
            code: _Values(values) for code, values in self._settings.items()
        }

    def __setitem__(self, key: SettingCodes | int, value: int) -> None:
        fresh = key not in self._settings
        super().__setitem__(key, value)
        if fresh:
            self._settings[key] = _Values(self._settings[key])


class _Handlers:
    """What handles a frame, by its class: the library's table, whose twelve bound methods weigh 1.4 KB."""

    __slots__ = ("_side", "_table")

    def __init__(self, side: Side, table: dict[type[Frame], Callable[..., Any]]) -> None:
        self._side: Side | None = side
        self._table = table

    def __getitem__(self, kind: type[Frame]) -> Callable[..., Any]:
        """Return what handles it, bound; KeyError where nothing does."""
        return self._table[kind].__get__(self._side)  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Handle nothing more."""
        self._side, self._table = None, {}


class Side(H2Connection):
    """See the head of the file. Few closed streams are remembered."""

    MAX_CLOSED_STREAMS = 1024

    def __init__(self, config: H2Configuration, limits: Limits) -> None:
        super().__init__(config)
        self._frame_dispatch_table: Any = _Handlers(self, self._functions(self._frame_dispatch_table))
        self._frames = Frames(0 if config.client_side else PREFACE)
        self._most = limits.header_fields
        self.decoder = _Decoder(limits.header_fields)
        self.decoder.max_header_list_size = limits.header_bytes
        for coder in (self.encoder, self.decoder):
            coder.header_table.dynamic_entries = _Entries()  # type: ignore[assignment]

    @classmethod
    def _functions(cls, table: dict[type[Frame], Any]) -> dict[type[Frame], Callable[..., Any]]:
        if not _FUNCTIONS:
            _FUNCTIONS.update((kind, method.__func__) for kind, method in table.items())
            _FUNCTIONS[GoAwayFrame] = cls._going_away
        return _FUNCTIONS

    def _going_away(self, frame: GoAwayFrame) -> tuple[list[object], list[Event]]:
        event = ConnectionTerminated()
        event.error_code = frame.error_code
        event.last_stream_id = frame.last_stream_id
        return [], [event]

    @property
    def waits(self) -> bool:
        """Whether some of what came is still to be heard."""
        return self._frames.waits

    def hear(self, data: bytes) -> list[Event]:
        """Take bytes; return what the next piece of all that came says. Where some of it `waits`, hear b"" next.

        Raises:
            H2Error: the other side broke the protocol, or its bounds.
        """
        self._frames.add(data)
        try:
            piece = self._frames.take()
        except FrameTooLargeError:
            self.close_connection(ErrorCodes.FRAME_SIZE_ERROR)
            raise
        events = self.receive_data(piece)
        # Set only where it changes: setting it anew would forget that a change is to be told.
        if self.encoder.header_table_size > HEADER_TABLE:  # noqa: PLR1730
            self.encoder.header_table_size = HEADER_TABLE
        return events

    def calm(self) -> None:
        """No stream is open: forget those that were."""
        _ = self.open_inbound_streams  # the library takes those that are closed out while it counts

    def done(self) -> None:
        """Nothing more is heard or said: let go of itself."""
        self._frame_dispatch_table.clear()

    def too_many(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether a block has more fields than are allowed."""
        return sum(name[:1] != b":" for name, _ in headers) > self._most

    def go_away(self, last: int, code: int) -> None:
        """Say that no stream after `last` is taken; those before it go on."""
        self._prepare_for_sending([GoAwayFrame(0, last_stream_id=last, error_code=code)])


def make_side(limits: Limits, *, client: bool) -> Side:
    """Return our end of a connection that has begun: the client's end to a destination, or the server's to the task."""
    side = Side(_CONFIGURATION[client], limits)
    values = {
        SettingCodes.MAX_HEADER_LIST_SIZE: limits.header_bytes,
        SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
    }
    if client:
        values[SettingCodes.ENABLE_PUSH] = 0
    else:
        values[SettingCodes.MAX_CONCURRENT_STREAMS] = STREAMS
        values[SettingCodes.ENABLE_CONNECT_PROTOCOL] = 0  # until the destination has it
    side.local_settings = _Settings(client, values)
    side.remote_settings = _Settings(not client)
    side.initiate_connection()
    side.increment_flow_control_window(WINDOW - _FIRST_WINDOW)
    return side
