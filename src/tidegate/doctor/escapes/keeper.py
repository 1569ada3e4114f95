"""The process around a trial: it enters the small internet, sets up what the rows try, and has the table held in it.

It stays outside the hold, with the rights that the small internet came with; the front of the hold is executed, so
that it has the rights of the user only. At the end it prints as JSON what the rows answered and what the canaries
heard.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from typing import Any

from tidegate.doctor.escapes import rows as _rows  # noqa: F401 (fills the table)
from tidegate.doctor.escapes import world
from tidegate.doctor.escapes.bundle import write_bundle
from tidegate.doctor.escapes.lab import Lab
from tidegate.doctor.escapes.machine import Machine
from tidegate.doctor.escapes.table import TABLE
from tidegate.holds import capabilities
from tidegate.holds.sockets import listed_sockets

PATIENCE = 300  # seconds; a row that hangs is ended after twenty
GATE_PORT = 3128
_SURVIVORS = 0.5  # seconds; one would write every 20 ms
_LONGEST_PATH = 100  # bytes; an address takes 107
_MOST_LISTED = 500
FRONT = """\
import json, sys
wishes = json.loads(sys.argv[1])
sys.path[:] = wishes["path"]
from tidegate.doctor.escapes.held import main
main(wishes)
"""


def main(wishes: dict[str, Any]) -> None:
    """Run the trial that the wishes describe and print what came of it."""
    capabilities.die_with_parent()
    base = wishes["base"]
    listed = [path for path in listed_sockets() if len(path) < _LONGEST_PATH][:_MOST_LISTED]
    try:
        world.enter(base)
    except OSError as error:
        json.dump({"unready": f"{error.filename or 'unshare'}: {error.strerror}", "errno": error.errno}, sys.stdout)
        return
    machine = Machine(base)
    lab = Lab()
    try:
        answer = _trial(wishes, machine, lab, listed)
        answer["heard"] = [*machine.who_came(), *lab.heard, *_survivors(machine.survivor)]
        answer["asked"] = lab.asked
    finally:
        machine.close()
    answer["missing"] = {name: row.missing() for name, row in TABLE.items() if row.missing()}
    json.dump(answer, sys.stdout)


def _trial(wishes: dict[str, Any], machine: Machine, lab: Lab, listed: list[str]) -> dict[str, Any]:
    held = machine.listen() | machine.late_paths() | machine.paths()
    held |= {"listed": listed + machine.files, "outer_pid": os.getpid(), "other_pid": machine.other_task(GATE_PORT)}
    held["own_published"] = _free_port()
    held |= {"hold": wishes["hold"], "port": GATE_PORT, "rows": wishes.get("rows")}
    table = os.path.join(machine.workspace, "escapes.pyz")
    write_bundle(table)
    ours, theirs = socket.socketpair()
    order = {
        "path": [entry for entry in sys.path if entry],
        "channel": theirs.fileno(),
        "hold": wishes["hold"],
        "container": wishes.get("container"),
        "command": [os.path.realpath(sys.executable), "-I", table],
        "folder": machine.workspace,
        "hidden": [machine.hidden, machine.hidden_link + "/tidegate", machine.absent],
        "readonly": [machine.readonly, machine.readonly_file, machine.home + "/missing"],
        "person": machine.person,
        "programs": [os.path.join(machine.person, "tools")],
        "services": [
            f"localhost:{held['published']}",
            f"127.0.0.1:{held['published']}",
            f"localhost:{held['own_published']}",
            f"localhost:{held['open_tcp4']}",
        ],
        "publish": [held["own_published"]],
        "selftest": wishes["selftest"],
        "log": os.path.join(machine.hidden, "network.jsonl"),
        "environ": {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": machine.home,
            "TMPDIR": "/tmp/mine",
            "XDG_RUNTIME_DIR": machine.runtime,
            "HELD": json.dumps(held),
        },
    }
    out, err = os.path.join(wishes["base"], "out"), os.path.join(wishes["base"], "err")
    with open(out, "wb") as to_out, open(err, "wb") as to_err:
        front = subprocess.Popen(
            [*wishes.get("front", [sys.executable, "-I", "-c", FRONT]), json.dumps(order)],
            stdin=subprocess.DEVNULL,
            stdout=to_out,
            stderr=to_err,
            pass_fds=(theirs.fileno(),),
        )
    theirs.close()
    answer = _attend(front, ours, machine, lab)
    answer["said"] = _read(err)
    text = _read(out)
    try:
        answer["answers"] = json.loads(text)
    except ValueError:
        answer["answers"] = {}
        answer["said"] += text
    return answer


def _free_port() -> int:
    """A port of this small internet that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as wire:
        port: int = wire.getsockname()[1]
        return port


def _attend(front: subprocess.Popen[bytes], channel: socket.socket, machine: Machine, lab: Lab) -> dict[str, Any]:
    """Serve the canaries until the front has said how it went."""
    deadline = time.monotonic() + PATIENCE
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    poll.register(lab, select.POLLIN)
    told = b""
    try:
        while time.monotonic() < deadline:
            ready = dict(poll.poll(1000))
            if lab.fileno() in ready:
                lab.turn()
            if channel.fileno() not in ready:
                continue
            part = channel.recv(1 << 16)
            told += part
            if told == b"built\n":
                machine.listen_late()
                channel.send(b"x")
                told = b""
            elif told.endswith(b"\n") or not part:
                break
        front.wait(10)
        lab.turn()
        answer: dict[str, Any] = json.loads(told or b'{"error": "the front ended without a word"}')
    except (subprocess.TimeoutExpired, ValueError):
        answer = {"error": "the trial did not end"}
    finally:
        front.kill()
        front.wait()
        channel.close()
    return answer


def _survivors(path: str) -> list[tuple[str, str]]:
    """Whether somebody still writes there, when the task has ended: that process outlived it."""
    before = _read(path) if os.path.exists(path) else None
    until = time.monotonic() + _SURVIVORS
    while before is not None and time.monotonic() < until:
        after = _read(path)
        if after not in ("", before):  # it may be between emptying the file and writing
            return [("the machine after the end of the task", after)]
        time.sleep(_SURVIVORS / 20)
    return []


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
