"""Lines of connections that are open now, where they outlive the process that writes them.

The file is memory that a gate shares with its front (memfd_create(2)): one slot for each line, written whole by one
call and cleared once the connection's own line is in the log. Who is left when the gate was killed reads what stands
there. A slot does not cross a page, so that no signal ends a write in its middle.

What does not fit a slot, or the file, is not kept: see `fits`.
"""

from __future__ import annotations

import os

SLOT = 2048  # bytes; a line is about 400
SLOTS = 512
_LENGTH = 2  # bytes of a slot that say how long its line is; 0 for none


def fits(line: bytes) -> bool:
    """Whether a line can be kept."""
    return len(line) <= SLOT - _LENGTH


def put_line(fd: int, slot: int, line: bytes) -> None:
    """Write the line of a slot (from 0); b"" clears it.

    Raises:
        OSError: when the memory cannot be had.
    """
    os.pwrite(fd, len(line).to_bytes(_LENGTH, "big") + line, slot * SLOT)


def left_lines(fd: int) -> tuple[bytes, ...]:
    """Return the lines that stand there, by slot."""
    size = os.fstat(fd).st_size
    if not size:
        return ()
    data = os.pread(fd, size, 0)
    found = []
    for start in range(0, size, SLOT):
        begin = start + _LENGTH
        end = begin + int.from_bytes(data[start:begin], "big")
        if begin < end <= min(start + SLOT, size):
            found.append(data[begin:end])
    return tuple(found)


def write_left(path: str, lines: tuple[bytes, ...], at: float) -> int:
    """Put lines that were left into a log, as connections that ended at `at` (Unix seconds); return how many.

    What cannot be written is left out: the log's own writer is gone, and nobody waits for it.
    """
    import json
    from datetime import datetime

    from tidegate.journal.tasklog import open_log
    from tidegate.model.errors import StartError

    done = []
    for line in lines:
        try:
            said = json.loads(line)
            began = datetime.fromisoformat(said["at"]).timestamp()
            said["duration"] = round(max(0.0, at - began), 3)
        except (ValueError, KeyError, TypeError):
            continue
        done.append(json.dumps(said, separators=(",", ":")).encode() + b"\n")
    if not done:
        return 0
    try:
        fd = open_log(path)
    except StartError:
        return 0
    try:
        os.write(fd, b"".join(done))
    except OSError:
        return 0
    finally:
        os.close(fd)
    return len(done)
