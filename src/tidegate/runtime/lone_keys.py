"""Keys that a person pressed, told from everything else that comes from a terminal.

A program can make a terminal answer: its title, its colours, where its cursor is. What it answers comes as if it had
been typed, and may hold letters that the program chose. So a key counts only when it stands alone: outside of every
escape sequence and string, with nothing before or after it for a moment. Pasted text, keys held down, mouse reports
and answers never do.

Rules of the file: all that the terminal sends goes through here from the beginning, so that no sequence is seen from
its middle. Pure: the time comes in as seconds of any monotonic clock.
"""

from __future__ import annotations

from tidegate.model.closed import Closed

ALONE = 0.06  # seconds of quiet on both sides; a key held down repeats every 33 ms
_ESCAPE_KEY = 0.5  # seconds after which an ESC alone was the Escape key
_FORGOTTEN = 2.0  # seconds after which nothing more comes of an unfinished sequence

_CAN, _SUB, _ESC, _BEL = 0x18, 0x1A, 0x1B, 0x07


class _State(Closed):
    GROUND = "ground"
    ESCAPE = "escape"
    CONTROL = "control"  # CSI, and SS3 with one byte
    STRING = "string"
    STRING_ESCAPE = "string-escape"
    RAW = "raw"  # the three bytes of an old mouse report


class LoneKeys:
    """See the head of the file."""

    def __init__(self) -> None:
        self._state = _State.GROUND
        self._raw = 0
        self._bare = False  # the byte before was the bracket of a CSI
        self._last = float("-inf")
        self._key: str | None = None

    def feed(self, data: bytes, now: float) -> None:
        """Take what the terminal sent."""
        if not data:
            return
        quiet = now - self._last
        if quiet >= (_ESCAPE_KEY if self._state is _State.ESCAPE else _FORGOTTEN):
            self._state = _State.GROUND
        lone = len(data) == 1 and quiet >= ALONE and self._state is _State.GROUND
        self._last = now
        self._key = None
        for byte in data:
            self._step(byte)
        if lone and self._state is _State.GROUND and data[0] < 0x7F:
            self._key = chr(data[0])

    def take(self, now: float) -> str:
        """Return the key that has stood alone by now, once; '' where there is none."""
        if self._key is None or now - self._last < ALONE:
            return ""
        key, self._key = self._key, None
        return key

    def forget(self, *, but: str = "") -> None:
        """Forget a key that was pressed too early to mean what is asked, but for these."""
        if self._key is not None and self._key not in but:
            self._key = None

    def patience(self, now: float) -> float | None:
        """Return the seconds until `take` may have one, None where it will not."""
        return None if self._key is None else max(0.0, self._last + ALONE - now)

    def _step(self, byte: int) -> None:
        state = self._state
        if state is _State.RAW:
            self._raw -= 1
            self._state = _State.RAW if self._raw else _State.GROUND
        elif byte in (_CAN, _SUB):
            self._state = _State.GROUND
        elif state is _State.STRING:
            if byte == _BEL:
                self._state = _State.GROUND
            elif byte == _ESC:
                self._state = _State.STRING_ESCAPE
        elif byte == _ESC:
            self._state = _State.ESCAPE
        elif state in (_State.ESCAPE, _State.STRING_ESCAPE):
            self._after_escape(byte)
        elif state is _State.CONTROL and 0x40 <= byte <= 0x7E:
            self._raw = 3
            self._state = _State.RAW if byte == ord("M") and self._bare else _State.GROUND
        self._bare = byte == ord("[") and state is _State.ESCAPE

    def _after_escape(self, byte: int) -> None:
        if byte in b"[O":
            self._state = _State.CONTROL
        elif byte in b"]PX^_":
            self._state = _State.STRING
        elif not 0x20 <= byte <= 0x2F:
            self._state = _State.GROUND
