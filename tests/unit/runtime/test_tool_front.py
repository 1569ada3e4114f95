"""tidegate.runtime.tool_front, with a gate that is the test's. Whole runs are in tests/holds/test_tools_held.py."""

from __future__ import annotations

import json
import os
import socket
import threading
from typing import TYPE_CHECKING, Any

from tests.product import PATIENCE
from tidegate.runtime.task import Order
from tidegate.runtime.tool_front import be_front
from tidegate.tools.declaration import Tool
from tidegate.tools.program import NOT_STARTED, Forked, see_through

if TYPE_CHECKING:
    from pathlib import Path


def test_a_gate_that_does_not_serve_it_starts_nothing(tmp_path: Path) -> None:
    """SRV-6: sockets of a new network arrive with a control; where that is closed, the program has not run."""
    mark = tmp_path / "mark"
    tool = Tool("t", ("/bin/touch", str(mark)), "", {}, "")
    order = Order(
        task="t", phase="runtime", command=("true",), folder=str(tmp_path), environ={}, shares=(),
        hidden=(), readonly=(), selftest=True, log="",
    )  # fmt: skip
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    heard: list[Any] = []

    def be_gate() -> None:
        data, fds, _flags, _address = socket.recv_fds(ours, 65536, 250)
        heard.append((json.loads(data)["hold"], len(fds)))
        for fd in fds:
            os.close(fd)

    gate = threading.Thread(target=be_gate)
    gate.start()
    with ours, theirs:
        ran = see_through(
            lambda _folder: Forked(lambda: be_front(order, tool, {}, theirs, ("", ()))),
            b"",
            seconds=PATIENCE,
            most=1000,
            base=str(tmp_path),
        )
        gate.join(PATIENCE)
    assert (ran.status, ran.output, mark.exists()) == (NOT_STARTED, b"", False)
    assert ran.errors
    ((roles, count),) = heard
    assert "proxy" in roles
    assert count == len(roles) + 1
