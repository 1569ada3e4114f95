"""Sockets that appear while a task runs in a container, and a client inside that tries them."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

PATIENCE = 120
PYTHON = (os.path.realpath(sys.executable), "-I", "-c")
NEEDS = ("/usr", sys.base_prefix)
"""What of this machine the client needs in an image without Python, as shares."""

CLIENT = """
import errno, os, socket, sys, time
def connect(path):
    with socket.socket(socket.AF_UNIX) as wire:
        return errno.errorcode.get(wire.connect_ex(path), 'done')
own = socket.socket(socket.AF_UNIX)
own.bind('own.sock')
own.listen()
print('up', flush=True)
while not os.path.exists('go'):
    time.sleep(0.02)
print(*map(connect, ('late.sock', './own.sock', *sys.argv[1:])), flush=True)
"""
"""Listens in its folder, says so, waits for the file `go`, and says how its connections went."""


def serve(folder: Path, name: str = "late.sock") -> socket.socket:
    """A listener there, whoever may use it."""
    wire = socket.socket(socket.AF_UNIX)
    before = os.umask(0)
    try:
        wire.bind(str(folder / name))
    finally:
        os.umask(before)
    wire.listen()
    wire.settimeout(0)
    return wire


def reached(wire: socket.socket) -> bool:
    """Whether somebody came."""
    try:
        wire.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def wait_for(path: Path) -> None:
    """Wait until a task has made this."""
    until = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < until, f"{path} was not made"
        time.sleep(0.02)
