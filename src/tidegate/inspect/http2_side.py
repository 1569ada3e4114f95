"""One side of an HTTP/2 connection that is read: the h2 library, with bounds and without its haste (RFC 9113).

Rules of the file: bounds are said in the first SETTINGS and kept; GOAWAY is an event and not the end, so that what was
begun can end; a frame larger than its bound is not waited for. The table that headers are compressed with is ours and
small, whatever the other side would hold: each header is looked for in all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated
from h2.exceptions import FrameTooLargeError
from h2.settings import SettingCodes, Settings
from hyperframe.frame import GoAwayFrame

if TYPE_CHECKING:
    from h2.events import Event

    from tidegate.model.limits import Limits

FRAME_HEADER = 9  # RFC 9113 section 4.1
STREAMS = 100  # at once: RFC 9113 section 5.1.2 advises no fewer
STREAM_WINDOW = 1 << 18
WINDOW = 1 << 20  # of a connection: what one side may have sent that the other has not taken
HEADER_TABLE = 4096  # bytes: RFC 9113 section 6.5.2 begins with it, and we stay there
_FIRST_WINDOW = 65535  # RFC 9113 section 6.9.2


class Side(H2Connection):
    """See the head of the file. Few closed streams are remembered."""

    MAX_CLOSED_STREAMS = 1024

    def __init__(self, config: H2Configuration) -> None:
        super().__init__(config)
        self._frame_dispatch_table[GoAwayFrame] = self._going_away

    def _going_away(self, frame: GoAwayFrame) -> tuple[list[object], list[Event]]:
        event = ConnectionTerminated()
        event.error_code = frame.error_code
        event.last_stream_id = frame.last_stream_id
        return [], [event]

    def hear(self, data: bytes) -> list[Event]:
        """Take bytes; return what they say.

        Raises:
            H2Error: the other side broke the protocol, or its bounds.
        """
        events = self.receive_data(data)
        # Set only where it changes: setting it anew would forget that a change is to be told.
        if self.encoder.header_table_size > HEADER_TABLE:  # noqa: PLR1730
            self.encoder.header_table_size = HEADER_TABLE
        if len(self.incoming_buffer._data) > self.max_inbound_frame_size + FRAME_HEADER:  # noqa: SLF001
            self.close_connection(ErrorCodes.FRAME_SIZE_ERROR)
            raise FrameTooLargeError("a frame is larger than its bound")
        return events

    def go_away(self, last: int, code: int) -> None:
        """Say that no stream after `last` is taken; those before it go on."""
        self._prepare_for_sending([GoAwayFrame(0, last_stream_id=last, error_code=code)])


def make_side(limits: Limits, *, client: bool) -> Side:
    """Return our end of a connection that has begun: the client's end to a destination, or the server's to the task."""
    side = Side(H2Configuration(client_side=client, header_encoding=None))
    values = {
        SettingCodes.MAX_HEADER_LIST_SIZE: limits.header_bytes,
        SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
    }
    if client:
        values[SettingCodes.ENABLE_PUSH] = 0
    else:
        values[SettingCodes.MAX_CONCURRENT_STREAMS] = STREAMS
        values[SettingCodes.ENABLE_CONNECT_PROTOCOL] = 0  # until the destination has it
    side.local_settings = Settings(client=client, initial_values=values)
    side.decoder.max_header_list_size = limits.header_bytes
    side.initiate_connection()
    side.increment_flow_control_window(WINDOW - _FIRST_WINDOW)
    return side
