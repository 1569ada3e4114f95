"""A small assembler for the classic BPF that seccomp runs: labels in, bytes out.

Rules of the file: jumps go forward only and reach 255 instructions, as the kernel demands; a label that is missing
or too far is an error here, not a filter that means something else. It knows nothing of any policy.

seccomp(2), Documentation/networking/filter.rst. Offsets are those of `struct seccomp_data` on little-endian machines.
"""

from __future__ import annotations

import struct

LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
JUMP = 0x05  # BPF_JMP | BPF_JA
IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
IF_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
IF_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
RETURN = 0x06  # BPF_RET | BPF_K

ALLOW = 0x7FFF0000  # linux/seccomp.h, SECCOMP_RET_*
ERRNO = 0x00050000
NOTIFY = 0x7FC00000  # SECCOMP_RET_USER_NOTIF
KILL_PROCESS = 0x80000000

NUMBER = 0
ARCHITECTURE = 4
_ARGUMENTS = 16
_FAR = 255


def argument(index: int) -> int:
    """Where the low 32 bits of an argument are: all that the kernel looks at for an int or unsigned int."""
    return _ARGUMENTS + 8 * index


class Program:
    """Instructions in order. A jump names the label it goes to, or None for "just go on"."""

    def __init__(self) -> None:
        self._code: list[tuple[int, int, str | None, str | None]] = []
        self._labels: dict[str, int] = {}

    def label(self, name: str) -> None:
        """The next instruction is called `name`.

        Raises:
            ValueError: where another one is.
        """
        if name in self._labels:
            raise ValueError(f"label twice: {name}")
        self._labels[name] = len(self._code)

    def load(self, offset: int) -> None:
        """Take the 32-bit word at this offset of seccomp_data."""
        self._code.append((LOAD, offset, None, None))

    def mask(self, bits: int) -> None:
        """Keep these bits of what was loaded."""
        self._code.append((AND, bits, None, None))

    def if_equal(self, value: int, then: str | None = None, otherwise: str | None = None) -> None:
        """Go to `then` where the loaded word is `value`, else to `otherwise`."""
        self._code.append((IF_EQUAL, value, then, otherwise))

    def if_at_least(self, value: int, then: str | None = None, otherwise: str | None = None) -> None:
        """Go to `then` where the loaded word, unsigned, is `value` or more."""
        self._code.append((IF_AT_LEAST, value, then, otherwise))

    def if_any_bit(self, bits: int, then: str | None = None, otherwise: str | None = None) -> None:
        """Go to `then` where one of these bits is set."""
        self._code.append((IF_ANY_BIT, bits, then, otherwise))

    def give(self, answer: int) -> None:
        """End with this answer."""
        self._code.append((RETURN, answer, None, None))

    def assemble(self) -> bytes:
        """The program as `struct sock_filter[]`.

        Raises:
            ValueError: for a label that is missing, behind, or too far.
        """
        out = bytearray()
        for at, (code, value, then, otherwise) in enumerate(self._code):
            out += struct.pack("=HBBI", code, self._distance(at, then), self._distance(at, otherwise), value)
        return bytes(out)

    def _distance(self, at: int, label: str | None) -> int:
        if label is None:
            return 0
        if label not in self._labels:
            raise ValueError(f"no such label: {label}")
        distance = self._labels[label] - at - 1
        if not 0 <= distance <= _FAR:
            raise ValueError(f"label behind or too far: {label}")
        return distance
