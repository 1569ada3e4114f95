"""What is read of programs and libraries, on those of this machine."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tidegate.holds.container import elf

if TYPE_CHECKING:
    from pathlib import Path


def loaded() -> set[str]:
    """Return the shared libraries that this process has mapped."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        return {line.split(None, 5)[5].strip() for line in file if ".so" in line and "/" in line}


def test_a_program_names_its_loader() -> None:
    """HLD-4: the loader is the path that the kernel will look for, and it is here."""
    found = elf.interpreter(os.path.realpath(sys.executable))
    assert os.path.basename(found).startswith("ld-")
    assert os.path.exists(found)


def test_a_library_has_the_name_it_is_asked_for_by() -> None:
    """HLD-4: libc is among what is loaded, under the name that programs need."""
    names = {elf.soname(path) for path in loaded()}
    assert any(name.startswith("libc.") for name in names)


def test_of_what_is_no_such_file_nothing_is_known(tmp_path: Path) -> None:
    """Whatever it holds, also the beginning of a real one."""
    program = os.path.realpath(sys.executable)
    with open(program, "rb") as file:
        beginning = file.read(100)
    for number, content in enumerate((b"", b"#!/bin/sh\n", b"\x7fELF\x02\x01", beginning)):
        path = tmp_path / str(number)
        path.write_bytes(content)
        assert (elf.interpreter(str(path)), elf.soname(str(path))) == ("", "")
