"""elf_program.py: machine code as a file."""

from __future__ import annotations

import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from tidegate.holds import linux
from tidegate.holds.container.elf_program import BASE, HEADERS, elf_program

if TYPE_CHECKING:
    from pathlib import Path

EXITS_WITH_7 = {
    "x86_64": bytes.fromhex("bf07000000 b83c000000 0f05"),  # exit(7)
    "aarch64": struct.pack("<3I", 0xD28000E0, 0xD2800BA8, 0xD4000001),
}


def test_its_first_instruction_is_the_codes(tmp_path: Path) -> None:
    """The kernel takes the file and begins with the code (HLD-4)."""
    path = tmp_path / "program"
    path.write_bytes(elf_program(linux.MACHINE, EXITS_WITH_7[linux.MACHINE]))
    path.chmod(0o755)
    assert subprocess.run([path], check=False, timeout=20).returncode == 7


@pytest.mark.parametrize("machine", EXITS_WITH_7)
def test_nothing_of_it_can_be_written(machine: str) -> None:
    """One segment at a fixed place, readable and executable, that is the whole file (HLD-13)."""
    made = elf_program(machine, b"12345678")
    kind, flags, offset, address, _physical, size, _memory, _align = struct.unpack_from("<IIQQQQQQ", made, 64)
    assert (kind, flags, offset, address, size) == (1, 5, 0, BASE, len(made))
    assert struct.unpack_from("<Q", made, 24) == (BASE + HEADERS,)
    assert made[HEADERS:] == b"12345678"


def test_a_machine_without_a_number_is_none() -> None:
    """Nothing is made for a machine that is not known (HLD-7)."""
    with pytest.raises(KeyError):
        elf_program("riscv64", b"")
