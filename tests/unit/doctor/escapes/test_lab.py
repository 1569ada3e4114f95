"""Who answers in the small internet answers as the names are written, and hears."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.holds import held

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import json, socket, sys, threading
sys.path[:0] = [PATH]
from tidegate.doctor.escapes import lab, world
world.enter(FOLDER)
served = lab.Lab()
def serve():
    while True:
        served._selector.select()
        served.turn()
threading.Thread(target=serve, daemon=True).start()
def names(name):
    try:
        return sorted({found[4][0] for found in socket.getaddrinfo(name, 80)})
    except socket.gaierror as error:
        return error.args[0] == socket.EAI_NONAME
found = {name: names(name) for name in (*lab.NAMES, *lab.ALIASES, "none.test")}
found["again"] = names("rebinding.wild.test")
with socket.create_connection((lab.GOOD, 80), 5) as wire:
    wire.sendall(b"GET /escaped-x HTTP/1.1\\r\\n\\r\\n")
    found["answer"] = wire.recv(99).decode()
socket.create_connection(("10.9.8.7", 22), 5).sendall(b"y")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
    wire.sendto(b"escaped-z", ("9.9.9.9", 443))
for _ in range(100):
    if len(served.heard) >= 5: break
    threading.Event().wait(0.05)
found["heard"], found["asked"] = served.heard, served.asked
print(json.dumps(found))
"""


def test_names_and_canaries(tmp_path: Path) -> None:
    """Addresses of each family, aliases, a name that changes, one that does not exist; every visit is written down."""
    text = PROGRAM.replace("PATH", repr(held.SOURCE)).replace("FOLDER", repr(str(tmp_path)))
    done = subprocess.run([sys.executable, "-I", "-c", text], capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["good.test"] == ["1.2.3.4", "2600:beef::4"]
    assert found["mixed.wild.test"] == ["1.2.3.4", "10.0.0.1"]
    assert found["alias.wild.test"] == ["127.0.0.1", "::1"]
    assert found["nat64.wild.test"] == ["64:ff9b::7f00:1"]
    assert (found["rebinding.wild.test"], found["again"]) == (["1.2.3.4"], ["127.0.0.1"])
    assert found["none.test"] is True
    assert found["answer"].startswith("HTTP/1.1 200 OK")
    heard = [tuple(one) for one in found["heard"]]
    assert ("tcp 1.2.3.4 port 80", "GET /escaped-x HTTP/1.1\r\n\r\n") in heard
    assert ("tcp 10.9.8.7 port 22", "") in heard
    assert ("udp 0.0.0.0 port 443", "escaped-z") in heard
    assert "none.test" in found["asked"]
