"""An event as one line of JSON, and back (JRN-1, JRN-5).

Rules of the file: one object a line, ASCII only (a host can never move a cursor or end a line), keys always in
the same order, no header values, query strings or bodies because an event has no place for them. Written by hand
on the C escaper of the `json` module: importing `json` costs `run` 9 ms, and this is on the path of every
connection.
"""

from __future__ import annotations

from _json import encode_basestring_ascii as quote
from time import gmtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.model.event import Event

_MOST_KNOWN = 64  # of the parts that lines have in common: some hundred bytes each
_known: dict[tuple[object, ...], str] = {}
_second = -1
_second_text = ""


def timestamp(at: float) -> str:
    """Return Unix time `at` (seconds) as ISO 8601 in UTC with milliseconds and `Z`."""
    global _second, _second_text  # noqa: PLW0603  one formatted second serves all lines of that second
    millis = int(at * 1000)
    second, millis = divmod(millis, 1000)
    if second != _second:
        year, month, day, hour, minute, sec = gmtime(second)[:6]
        _second_text = f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{sec:02d}"
        _second = second
    return f"{_second_text}.{millis:03d}Z"


def line_of(event: Event) -> bytes:
    """Return the event as one line of JSON, its newline included."""
    same = (
        event.task, event.phase, event.verdict, event.rule, event.name, event.source, event.host, event.port,
        event.reason, event.address, event.how, event.method, event.status,
    )  # fmt: skip
    what = _known.get(same)
    if what is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        what = _known[same] = _what(event)
    count = f',"count":{event.count}' if event.count != 1 else ""
    fix = f',"fix":{quote(event.fix)}' if event.fix else ""
    kept = ',"kept":true' if event.kept else ""
    path = f',"path":{quote(event.path)}' if event.path else ""
    detail = f',"detail":{quote(event.detail)}' if event.detail else ""
    return (
        f'{{"at":"{timestamp(event.at)}{what},"bytes_up":{event.bytes_up},"bytes_down":{event.bytes_down}'
        f',"duration":{event.duration:.3f}{path}{detail}{count}{kept}{fix}}}\n'
    ).encode("ascii", "replace")


def _what(event: Event) -> str:
    # What the lines of one task for one destination have in common, behind the time.
    return (
        f'","type":"net.connection","task":{quote(event.task)}'
        f',"phase":"{event.phase.value}","verdict":"{event.verdict.value}"'
        f',"rule":{quote(event.rule)},"name":{quote(event.name)},"source":{quote(event.source)}'
        f',"host":{quote(event.host)},"port":{event.port},"reason":"{event.reason.word}"'
        f',"address":{quote(event.address)},"how":"{event.how.value}","method":{quote(event.method)}'
        f',"status":{event.status}'
    )


def lost_line(at: float, task: str, count: int, why: str) -> bytes:
    """Return the line that stands for `count` lines which could not be written."""
    return (
        f'{{"at":"{timestamp(at)}","type":"journal.lost","task":{quote(task)},"count":{count},"why":{quote(why)}}}\n'
    ).encode("ascii", "replace")
