"""What a task's output has made of the terminal, so that a screen of ours can come and go in the middle of it.

A question is drawn wherever the output happens to be: in an escape sequence, a character of several bytes, another
character set, a scroll region, with the mouse reported. `TAKE` makes a terminal plain from any such state, and
`Modes.give_back` puts back what the task had asked for, down to the beginning of the sequence that was cut in two.

Pure: bytes in, bytes out. It must never be fooled into anything but a wrong picture: what decides about keys is
lone_keys.py. See ECMA-48, xterm's ctlseqs, and the kitty keyboard protocol.
"""

from __future__ import annotations

import re

# Plain from whatever state: CAN ends a sequence, ST a string, ESC < leaves VT52; printing to a printer, held output.
PLAIN = b"\x18\x1b\\\x1b<\x1b[4i\x1b[?2026l"
# Only then the other screen: it keeps the cursor of the first one, which what follows would move.
OTHER_SCREEN = b"\x1b[?1049h"
BACK = b"\x1b[?1049l"
# ASCII in both sets; colours as the person has them, so that nothing is drawn in the colour of its background; no
# insert mode, reverse video, origin, margins or scroll region; keys as plain bytes, no reports of mouse, focus, paste.
SETTLE = (
    b"\x0f\x1b(B\x1b)B\x1b%G\x1b[0m\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\"
    b"\x1b[4l\x1b[20l\x1b[?5l\x1b[?6l\x1b[?69l\x1b[r\x1b[?1l\x1b>"
    b"\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l"
    b"\x1b[?2004l\x1b[?25l\x1b[?7l\x1b[2J\x1b[H"
)
USUAL = b"\x1b[0m\x1b[2J\x1b[H\x1b[?7h\x1b[?25h"
"""After our screen, before what the task had asked for."""

_ALTERNATE = frozenset((47, 1047, 1049))
_KEPT = frozenset((1, 7, 9, 25, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 2004))
_LONGEST = 512  # bytes of an unfinished sequence; longer ones are strings that nobody misses

_SEQUENCE = re.compile(
    rb"\x1b(?:\[\?(?P<modes>[0-9;]{1,64})(?P<set>[hl])|(?P<keypad>[=>])|(?P<all>c|\[!p)"
    rb"|\[(?P<keys>[=>][0-9;]{0,16}u|>4(?:;[0-9]{0,2})?m))"
)
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[ -/]*|[\]PX^_][^\x07\x18\x1a\x1b]*\x1b?)?")


class Modes:
    """Follows what is written to the terminal."""

    def __init__(self) -> None:
        self.alternate = False
        self.keys = False  # the task asked for keys in another form
        self._modes: dict[int, bool] = {}
        self._keypad = False
        self._tail = b""

    def feed(self, data: bytes) -> None:
        """Take bytes that were written."""
        whole = self._tail + data
        for found in _SEQUENCE.finditer(whole):
            self._take(found)
        self._tail = _unfinished(whole)

    def _take(self, found: re.Match[bytes]) -> None:
        if found["modes"]:
            on = found["set"] == b"h"
            for text in found["modes"].split(b";"):
                number = int(text or b"0")
                if number in _ALTERNATE:
                    self.alternate = on
                elif number in _KEPT:
                    self._modes[number] = on
        elif found["keypad"]:
            self._keypad = found["keypad"] == b"="
        elif found["keys"]:
            self.keys = True
        else:
            self._modes.clear()
            self._keypad = False
            self.alternate = self.alternate and found["all"] != b"c"

    def take(self) -> bytes:
        """Return what makes the terminal ours: cleared and plain."""
        keys = b"\x1b[>0u\x1b[>4;0m" if self.keys else b""
        return PLAIN + (b"" if self.alternate else OTHER_SCREEN) + SETTLE + keys

    def give_back(self) -> bytes:
        """Return what makes it the task's again."""
        keys = b"\x1b[<u\x1b[>4m" if self.keys else b""
        modes = b"".join(b"\x1b[?%d%c" % (number, b"h" if on else b"l") for number, on in sorted(self._modes.items()))
        keypad = b"\x1b=" if self._keypad else b""
        return keys + USUAL + (b"" if self.alternate else BACK) + modes + keypad + self._tail


def _unfinished(data: bytes) -> bytes:
    """Return the end of the data that is the beginning of a sequence or of a character, as far as it is short."""
    data = data[-_LONGEST:]
    last = data.rfind(b"\x1b")
    if last >= 0:
        # The ST of a string may be what is cut.
        before = data.rfind(b"\x1b", 0, last) if last == len(data) - 1 else -1
        for start in (before, last):
            if start >= 0 and _UNFINISHED.fullmatch(data, start):
                return data[start:]
    for count in range(1, min(3, len(data)) + 1):
        lead = data[-count]
        if lead & 0xC0 == 0xC0:
            needed = 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2
            return data[-count:] if needed > count else b""
        if lead < 0x80:
            break
    return b""
