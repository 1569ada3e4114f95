"""What a task can do about its own question through the terminal: nothing (ASK-5, HLD-13)."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.person import READY, Person
from tests.product import PYTHON, Product
from tests.served import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.api import Lab

USERS = ["root", "user"] if os.geteuid() == 0 else ["user"]

# Each says "done" where it got what it wanted: a key pressed, or a place to press it. REAL is the person's terminal,
# FRONT the process that asks.
ATTEMPTS = {
    "push_a_key_into_its_terminal": "fcntl.ioctl(0, termios.TIOCSTI, b'a')",
    "push_a_key_into_dev_tty": "fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), termios.TIOCSTI, b'a')",
    "paste_by_the_console": "fcntl.ioctl(0, 0x541C, b'\\x03')",
    "open_the_persons_terminal": "assert os.fstat(os.open(REAL, os.O_RDWR)).st_dev == DEVICE",
    "find_it_under_another_name": (
        "assert any(os.stat('/dev/pts/' + name).st_dev == DEVICE for name in os.listdir('/dev/pts')) or "
        "os.stat('/dev/tty').st_dev == DEVICE"
    ),
    "open_the_fronts_descriptors": "os.open('/proc/%d/fd/0' % FRONT, os.O_RDWR)",
    "read_the_fronts_memory": "open('/proc/%d/mem' % FRONT, 'rb').close()",
    "trace_the_front": "assert ctypes.CDLL(None).ptrace(16, FRONT, 0, 0) == 0",
    "signal_the_front": "os.kill(FRONT, 0)",
    "take_a_descriptor_of_the_front": (
        "handle = os.pidfd_open(FRONT); assert ctypes.CDLL(None).syscall(438, handle, 0, 0) >= 0"
    ),
    "have_the_master_of_its_own_pty": (
        "assert any('ptmx' in os.readlink('/proc/self/fd/' + name) for name in os.listdir('/proc/self/fd'))"
    ),
}

PROGRAM = """
import ctypes, fcntl, json, os, sys, termios
REAL, DEVICE, FRONT = {real!r}, {device!r}, {front!r}
said = {{}}
for name, code in {attempts!r}.items():
    try:
        exec(code)
        said[name] = "done"
    except BaseException as error:
        said[name] = type(error).__name__
with open("said.new", "w") as file:
    json.dump(said, file)
os.rename("said.new", "said")
"""


@pytest.mark.parametrize("user", USERS)
def test_no_trick_with_the_terminal_answers_a_question(user: str, tmp_path: Path, lab: Lab) -> None:
    """ASK-5, HLD-13, HLD-15: keys, the person's terminal, and the front's descriptors and memory are out of reach."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("http", "1.2.3.4", 80)
    product = Product(tmp_path, user=user == "user")
    line = (
        f"while [ ! -e program ]; do sleep 0.05; done; curl -sS http://a.test/ & sleep 0.5; {PYTHON} -I program; wait"
    )
    words = ("run", "--ask", "--quiet", "--profile", "closed", "--ask-for", "a.test", "--", "sh", "-c", line)
    with Person.at(product, *words) as person:
        front = until(lambda: _front(person.pid), "no front")
        real = os.readlink(f"/proc/{front}/fd/0")
        device = os.stat(real).st_dev
        program = PROGRAM.format(real=real, device=device, front=front, attempts=ATTEMPTS)
        (product.folder / "program.new").write_text(program)
        (product.folder / "program.new").chmod(0o644)
        (product.folder / "program.new").rename(product.folder / "program")
        person.sees("a.test:80", READY)
        said = json.loads(until(lambda: (product.folder / "said").exists() and (product.folder / "said").read_text()))
        assert READY in person.look(1.0)
        assert {name for name, how in said.items() if how == "done"} == set()
        assert set(said) == set(ATTEMPTS)
        assert origin.connections == 0
        person.press("d")
        person.sees("a person refused it")
        assert person.end() == 0


def _front(pid: int) -> int:
    """The process of tidegate's that has children: the one that asks."""
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        if b"boot.py" in file.read():
            return pid
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return next((found for child in file.read().split() if (found := _front(int(child)))), 0)
