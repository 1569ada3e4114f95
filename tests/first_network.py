"""The network that these tests were started in, which is the machine's own: the tests themselves have another."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest


def in_first_network(*command: str) -> str:
    """Run a command there and return what it says. Skips the test where there is no way there."""
    here = os.readlink("/proc/self/ns/net")
    pid = os.getppid()
    while pid > 1:
        try:
            if os.readlink(f"/proc/{pid}/ns/net") != here:
                break
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            pid = 0
    nsenter = shutil.which("nsenter")
    if pid <= 1 or nsenter is None or os.geteuid() != 0:
        pytest.skip("the network that these tests were started in cannot be entered here")
    done = subprocess.run((nsenter, f"--net=/proc/{pid}/ns/net", *command), capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"the network that these tests were started in: {done.stderr.strip()}")
    return done.stdout.strip()
