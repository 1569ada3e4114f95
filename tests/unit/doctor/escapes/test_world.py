"""The small internet: every address is in it, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.holds import held

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import json, socket, sys
sys.path[:0] = [PATH]
from tidegate.doctor.escapes import world
world.enter(FOLDER)
server = socket.create_server(("0.0.0.0", 80))
found = {"names": [name for _, name in socket.if_nameindex()]}
with socket.create_connection(("8.8.8.8", 80), 5) as wire:
    found["own"] = wire.getsockname()[0]
    found["reached"] = server.accept()[0].getsockname()[0]
found["etc"] = open("/etc/resolv.conf").read()
print(json.dumps(found))
"""


def inside(folder: Path) -> dict[str, Any]:
    """What there is in there."""
    text = PROGRAM.replace("PATH", repr(held.SOURCE)).replace("FOLDER", repr(str(folder)))
    done = subprocess.run([sys.executable, "-I", "-c", text], capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_address_is_in_there(tmp_path: Path) -> None:
    """A connection to a public address arrives at a listener of the same namespace; loopback is its only interface."""
    found = inside(tmp_path)
    assert found["reached"] == "8.8.8.8"
    assert found["own"] == "203.0.113.77"
    assert "lo" in found["names"]
    assert "nameserver 192.0.2.53" in found["etc"]


def test_the_machine_keeps_its_files(tmp_path: Path) -> None:
    """What is bound over resolv.conf is bound in there only."""
    with open("/etc/resolv.conf", encoding="utf-8") as file:
        before = file.read()
    inside(tmp_path)
    with open("/etc/resolv.conf", encoding="utf-8") as file:
        assert file.read() == before


def test_it_fails_closed(tmp_path: Path) -> None:
    """A folder that cannot be written stops it with an error; nothing is tried in the machine's own network."""
    with pytest.raises(subprocess.CalledProcessError) as raised:
        inside(tmp_path / "missing")
    assert "FileNotFoundError" in raised.value.stderr
