"""Runs the classic BPF of seccomp, as the kernel's checker and interpreter do, for tests of filters."""

from __future__ import annotations

import struct


def run(program: bytes, number: int, architecture: int, arguments: tuple[int, ...] = ()) -> int:
    """What the filter answers to this call. Arguments are 64-bit words.

    Raises:
        AssertionError: for what the kernel would not load.
    """
    assert len(program) % 8 == 0
    code = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    assert 0 < len(code) <= 4096  # BPF_MAXINSNS
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *[word & (1 << 64) - 1 for word in words])
    accumulator = at = 0
    while True:
        assert at < len(code), "fell off the end"
        operation, then, otherwise, value = code[at]
        at += 1
        if operation == 0x20:
            assert value % 4 == 0, "not aligned"
            assert value <= len(data) - 4, "out of bounds"
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif operation == 0x54:
            accumulator &= value
        elif operation == 0x05:
            at += value
        elif operation == 0x15:
            at += then if accumulator == value else otherwise
        elif operation == 0x35:
            at += then if accumulator >= value else otherwise
        elif operation == 0x45:
            at += then if accumulator & value else otherwise
        else:
            assert operation == 0x06, f"unknown instruction {operation:#x}"
            return value
