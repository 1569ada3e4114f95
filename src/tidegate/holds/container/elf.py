"""Two facts about a program or a shared library: who starts it, and the name it is asked for by (elf(5)).

Rules of the file: 64-bit little-endian ELF, which is what both machines that there are holds for have; of anything else
nothing is known, and nothing raises but OSError for a file that cannot be read.
"""

from __future__ import annotations

import struct
from struct import unpack_from

_MAGIC = b"\x7fELF\x02\x01"
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NULL, _DT_STRTAB, _DT_SONAME = 0, 5, 14
_SEGMENT, _ENTRY = 56, 16  # bytes of Elf64_Phdr and Elf64_Dyn


def interpreter(path: str) -> str:
    """Return the path of the loader that a program names, '' where it names none (a static one)."""
    data = _read(path)
    for kind, offset, _address, size in _segments(data):
        if kind == _PT_INTERP:
            return data[offset : offset + size].rstrip(b"\0").decode("utf-8", "surrogateescape")
    return ""


def soname(path: str) -> str:
    """Return the name under which others look for a library, '' where it has none."""
    data = _read(path)
    segments = _segments(data)
    for kind, offset, _address, size in segments:
        if kind == _PT_DYNAMIC:
            found = dict(_entries(data[offset : offset + size]))
            strings = _at(found.get(_DT_STRTAB, 0), segments)
            if _DT_SONAME in found and strings:
                start = strings + found[_DT_SONAME]
                return data[start : data.index(b"\0", start)].decode("utf-8", "surrogateescape")
    return ""


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _segments(data: bytes) -> list[tuple[int, int, int, int]]:
    """Type, offset in the file, address in memory and size in the file of each segment."""
    if not data.startswith(_MAGIC):
        return []
    try:
        start, count = unpack_from("<Q", data, 32)[0], unpack_from("<H", data, 56)[0]
        found = []
        for number in range(count):
            kind, _flags, offset, address, _physical, size = unpack_from("<IIQQQQ", data, start + number * _SEGMENT)
            found.append((kind, offset, address, size))
    except struct.error:
        return []
    return found


def _entries(data: bytes) -> list[tuple[int, int]]:
    found = []
    for at in range(0, len(data) - _ENTRY + 1, _ENTRY):
        tag, value = unpack_from("<qQ", data, at)
        if tag == _DT_NULL:
            break
        found.append((tag, value))
    return found


def _at(address: int, segments: list[tuple[int, int, int, int]]) -> int:
    """Return where in the file what is loaded to an address lies, 0 for nowhere."""
    for kind, offset, start, size in segments:
        if kind == _PT_LOAD and start <= address < start + size:
            return offset + address - start
    return 0
