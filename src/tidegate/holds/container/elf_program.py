"""A program of ours as a file: machine code and what it works on, as the one segment of a static ELF file (elf(5)).

For containers, in which a program may find no C library, no interpreter and nothing else
(docs/decisions/0012-a-holder-of-one-file.md). The file has no section and no symbol; it is mapped at a fixed place,
readable and executable and never writable, so that addresses of what is in it are known when it is made.
"""

from __future__ import annotations

import struct

BASE = 0x400000
HEADERS = 64 + 56
"""Bytes before the code: at BASE + HEADERS is its first instruction."""

_MACHINES = {"x86_64": 62, "aarch64": 183}  # EM_X86_64, EM_AARCH64


def elf_program(machine: str, code: bytes) -> bytes:
    """The file.

    Raises:
        KeyError: for a machine that there is no number for.
    """
    size = HEADERS + len(code)
    head = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)
    # type EXEC, machine, version, entry, offsets of program and section headers, flags, sizes and numbers of them
    head += struct.pack("<HHIQQQIHHHHHH", 2, _MACHINES[machine], 1, BASE + HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    # PT_LOAD, readable and executable; offset, addresses, sizes, alignment
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, size, size, 0x1000)
    return head + segment + code
