"""Where a value could have got to: looked for in all that tidegate and a task leave, and are while they are there.

assert found_in_processes(VALUE) == []              # environments and arguments of the whole machine
assert found_in_memory(VALUE, front.pid) == []      # of a process and all it started, but for the gate
"""

from __future__ import annotations

import glob
import os
import resource
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PIECE = 1 << 24


def found_in_processes(text: str) -> list[str]:
    """Say which processes of this machine have a text in their environment or arguments."""
    found = []
    for path in (*glob.glob("/proc/[0-9]*/environ"), *glob.glob("/proc/[0-9]*/cmdline")):
        try:
            with open(path, "rb") as file:
                data = file.read()
            if text.encode() in data:
                with open(f"{os.path.dirname(path)}/cmdline", "rb") as file:
                    found.append(f"{path}: {file.read()!r}")
        except OSError:
            continue
    return found


def found_in_files(text: str, folder: Path) -> list[Path]:
    """Return the files below a folder that have a text in them."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if text.encode() in path.read_bytes()]


def family(pid: int) -> list[int]:
    """Return a process and all that it and its children started."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def gates_are_known() -> bool:
    """Whether a gate can be told from the others by its limit: not where all of this machine's processes have none."""
    return resource.getrlimit(resource.RLIMIT_CORE)[1] != 0


def is_gate(pid: int) -> bool:
    """Whether a process keeps keys: its limit for cores is 1, which nobody else has."""
    try:
        with open(f"/proc/{pid}/limits", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("Max core file size"))
    except (OSError, StopIteration):
        return False
    return line.split()[4] == "1"


def found_in_memory(text: str, pid: int) -> list[int]:
    """Return which of a process's family have a text in memory; the gate is left out: there it belongs."""
    return [one for one in family(pid) if not is_gate(one) and has(one, text)]


def has(pid: int, text: str) -> bool:
    """Whether a process has a text in its memory."""
    wanted = text.encode()
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for begin, end in _ranges(pid):
                if _range_has(memory.fileno(), begin, end, wanted):
                    return True
    except OSError:
        return False  # it has ended meanwhile
    return False


def _ranges(pid: int) -> Iterator[tuple[int, int]]:
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    for line in lines:
        words = line.split(maxsplit=5)
        if words[1].startswith("r") and words[-1] not in ("[vvar]", "[vsyscall]"):
            begin, _, end = words[0].partition("-")
            yield int(begin, 16), int(end, 16)


def _range_has(memory: int, begin: int, end: int, wanted: bytes) -> bool:
    tail = b""
    while begin < end:
        try:
            data = os.pread(memory, min(_PIECE, end - begin), begin)
        except OSError:
            return False  # a hole
        if not data:
            return False
        if wanted in tail + data:
            return True
        tail = data[-len(wanted) :]
        begin += len(data)
    return False
