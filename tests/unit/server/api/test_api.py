"""The API put together: its table of operations, and a start and stop that leave nothing."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, cast

from tests.unit.server.api.running import Whole
from tests.unit.server.api.test_listener import is_cut, keep_idle
from tidegate.server.api.api import operations_of
from tidegate.server.api.operation import ANYONE, OWNER

if TYPE_CHECKING:
    from pathlib import Path


def test_the_table_holds_what_the_api_promises() -> None:
    """SRV-2: every resource is there, each method of a path once; what changes something is an owner's."""
    operations = operations_of(cast("Any", None))
    found = {(operation.method, operation.path) for operation in operations}
    assert len(found) == len(operations)
    for path in ("tasks", "questions", "rules", "settings", "events", "health", "log", "log/verify", "tokens"):
        assert ("GET", f"/api/{path}") in found
    for operation in operations:
        if operation.method != "GET":
            assert operation.role == OWNER or operation.path in {"/api/session", "/api/proof", "/api/webhook/answer"}
    assert {operation.path for operation in operations if operation.role == ANYONE} == {
        "/api/session",
        "/api/proof",
        "/api/webhook/answer",
        "/api/openapi.json",
    }
    assert [operation.path for operation in operations if operation.only_unix] == ["/api/codes"]


def test_a_stop_shuts_the_doors(tmp_path: Path) -> None:
    """SRV-1: connections that are open are closed by a stop, and nothing answers after it."""
    with Whole(tmp_path) as whole:
        with socket.create_connection(("127.0.0.1", whole.port), timeout=60) as idle:
            keep_idle(idle, whole.port)
            whole.on_loop(whole.api.stop())
            assert is_cut(idle)
        for family, address in ((socket.AF_INET, ("127.0.0.1", whole.port)), (socket.AF_UNIX, whole.path)):
            with socket.socket(family) as sock:
                assert sock.connect_ex(cast("Any", address)) != 0
    assert whole.warnings == []
