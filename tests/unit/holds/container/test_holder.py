"""holder.py: a program of a few hundred bytes."""

from __future__ import annotations

import io
import os
import signal
import struct
import subprocess
import sys
import tarfile
import time
from typing import TYPE_CHECKING

import pytest

from tidegate.holds import linux, seccomp
from tidegate.holds.container import holder
from tidegate.holds.container.engine import DOCKER, Engine
from tidegate.holds.selftest import FORBIDDEN_SOCKETS
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def program(tmp_path: Path) -> str:
    """The program as a file that can be run."""
    path = tmp_path / "holder"
    path.write_bytes(holder.program())
    path.chmod(0o755)
    return str(path)


def test_it_ends_where_a_forbidden_socket_can_be_had(program: str) -> None:
    """Without a filter it gets one (a packet socket as root, MPTCP or vsock else) and ends with 1 (HLD-11)."""
    assert subprocess.run([program], check=False, timeout=20).returncode == 1


def test_it_stays_where_none_can_be_had(program: str) -> None:
    """Behind the filter it sleeps; nothing ends it but a signal (HLD-11, HLD-13)."""
    inside = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from tidegate.holds import capabilities, seccomp\n"
        "capabilities.no_new_privileges(); seccomp.install(seccomp.program('netns'), listener=False)\n"
        "os.execv(sys.argv[2], [sys.argv[2]])"
    )
    source = os.path.dirname(os.path.dirname(os.path.dirname(linux.__file__)))
    child = subprocess.Popen([sys.executable, "-I", "-c", inside, source, program])
    try:
        for _ in range(200):
            with open(f"/proc/{child.pid}/comm", encoding="ascii") as file:
                if file.read() == "holder\n":
                    break
            time.sleep(0.05)
        time.sleep(0.3)
        assert child.poll() is None
    finally:
        child.kill()
    assert child.wait(20) == -signal.SIGKILL
    assert seccomp.NETNS == "netns"


@pytest.mark.parametrize(("machine", "number"), [("x86_64", 62), ("aarch64", 183)])
def test_it_is_a_file_for_each_machine(machine: str, number: int) -> None:
    """ELF of the right machine that ends with the table of what must fail; every family has its row."""
    made = holder.program(machine)
    assert made[:4] == b"\x7fELF"
    assert struct.unpack_from("<H", made, 18) == (number,)
    size = 3 * len(FORBIDDEN_SOCKETS) + 1
    table = struct.unpack(f"<{size}i", made[-4 * size :])
    assert table[:3] == FORBIDDEN_SOCKETS[0][1:]
    assert table[-1] == -1


def test_the_branches_of_both_programs_lead_where_they_should() -> None:
    """On aarch64, which tests may not run on: each branch and the address of the table, worked out again."""
    words = struct.unpack_from("<23I", holder.program("aarch64"), 120)

    def target(index: int, bits: int, shift: int) -> int:
        value = words[index] >> shift & (1 << bits) - 1
        return index + value - ((1 << bits) if value >> bits - 1 else 0)

    assert (words[0] >> 5 & 0x7FFFF) * 4 == 4 * 23
    assert target(3, 19, 5) == 15
    assert target(9, 19, 5) == 12
    assert target(11, 26, 0) == 1
    assert target(22, 26, 0) == 15


def test_another_machine_is_refused() -> None:
    """Where there is no code there is one clear error (HLD-7)."""
    with pytest.raises(StartError):
        holder.program("riscv64")


def test_the_image_holds_that_one_file() -> None:
    """Four empty folders that engines mount on, and the program; its name follows from its content."""
    with tarfile.open(fileobj=io.BytesIO(holder.image_tar())) as tar:
        assert [one.name for one in tar if one.isfile()] == ["holder"]
    assert holder.image_name().startswith("tidegate-holder:")


def test_an_image_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    """Only where the engine lacks it is it imported (HLD-4)."""
    program = tmp_path / "docker"
    program.write_text(f"#!/bin/sh\necho $1 >> {tmp_path}/log\n")
    program.chmod(0o755)
    engine = Engine(DOCKER, {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert holder.ensure_image(engine) == holder.image_name()
    assert (tmp_path / "log").read_text() == "image\n"
