"""tidegate.doctor.server, with the product's own server."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.product import REPOSITORY, Product
from tests.served import Served
from tidegate.doctor.check import FAIL, OK, WARN, Check
from tidegate.doctor.server import check_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server of this user's."""
    with Served(Product(tmp_path, user=False)) as found:
        yield found


def rows(product: Product) -> dict[str, Check]:
    """Return the rows by name."""
    return {check.name: check for check in check_server(product.environment)}


def told(served: Served) -> dict[str, tuple[str, str]]:
    """Return state and text of the rows as a program of this user finds them.

    A new program has no capabilities. This process has some where the tests run as an ordinary user, so that no server
    of that user may look at it (ptrace(2), access mode checking).
    """
    program = (
        "import json, os, sys; sys.path[:0] = sys.argv[1:]; from tidegate.doctor.server import check_server\n"
        "print(json.dumps({row.name: (row.state, row.what) for row in check_server(os.environ)}))"
    )
    argv = [sys.executable, "-c", program, str(REPOSITORY / "src")]
    done = subprocess.run(argv, env=served.product.environment, capture_output=True, check=True, timeout=60)
    return {name: tuple(row) for name, row in json.loads(done.stdout).items()}


def test_no_row_where_none_has_ever_run(tmp_path: Path) -> None:
    """SRV-5: and nothing is made by looking."""
    product = Product(tmp_path, user=False)
    assert rows(product) == {}
    assert not product.state.exists()


def test_one_that_runs_and_one_that_ended(served: Served) -> None:
    """SRV-5: it answers with its tasks; ended as it should be there is nothing to mend."""
    assert served.tidegate("task", "create").returncode == 0
    found = told(served)
    assert {state for state, _ in found.values()} == {OK}
    assert sorted(found) == ["seal key", "server", "store"]
    assert f"(pid {served.pid}), 1 living task, API on port {served.info['api_port']}" in found["server"][1]
    served.stop()
    assert rows(served.product)["server"] == Check("server", OK, "none runs")


def test_what_a_killed_one_left_is_swept(served: Served) -> None:
    """SRV-5, HLD-8: named, and with --fix gone; a server starts after that as before."""
    served.kill()
    row = rows(served.product)["server"]
    assert row.state == WARN
    assert "front.sock, api.sock, server.json" in row.what
    done = served.tidegate("doctor", "--fix")
    assert "tidegate: server: mended" in done.stderr
    assert {path.name for path in (served.state / "run").iterdir()} == {"lock", "port", "pulse"}
    assert rows(served.product)["server"].state == OK
    with Served(served.product) as again:
        assert told(again)["server"][0] == OK
        # The neighbour: of one that lives nothing is ever taken, whatever was found before.
        assert row.mend is not None
        row.mend()
        assert told(again)["server"][0] == OK


def test_one_of_another_version_fails(served: Served) -> None:
    """SRV-5: it is named with how to replace it; so is one that no longer listens."""
    path = served.state / "run" / "server.json"
    info = path.read_text()
    path.write_text(json.dumps(json.loads(info) | {"version": "0.0.9"}))
    row = rows(served.product)["server"]
    assert (row.state, row.fix) == (FAIL, f"kill {served.pid}; tidegate serve")
    assert "0.0.9" in row.what
    path.write_text(info)
    (served.state / "run" / "front.sock").unlink()
    row = rows(served.product)["server"]
    assert (row.state, "nobody listens" in row.what) == (FAIL, True)
    path.write_text("{")
    assert rows(served.product)["server"].state == FAIL


def test_a_store_that_is_damaged_or_newer_fails(served: Served) -> None:
    """SRV-4, SRV-5: one line that says what to do; looking changes nothing."""
    served.stop()
    store = served.state / "tidegate.db"
    whole = store.read_bytes()
    assert rows(served.product)["store"].state == OK
    assert store.read_bytes() == whole
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("PRAGMA user_version = 9999")
    db.close()
    assert "newer tidegate" in rows(served.product)["store"].what
    store.write_bytes(whole[:4096] + b"\xff" * 4096 + whole[8192:])
    assert rows(served.product)["store"].state == FAIL
    store.write_bytes(whole)
    store.chmod(0o644)
    assert rows(served.product)["store"].fix == f"chmod 600 {store}"


def test_a_key_that_others_can_read_is_closed(served: Served) -> None:
    """JRN-2, SRV-5: safe to mend without a person; one that is no file of ours is not touched."""
    key = served.state / "keys" / "actions.key"
    key.chmod(0o644)
    row = rows(served.product)["seal key"]
    assert row.state == FAIL
    assert row.mend is not None
    row.mend()
    assert key.stat().st_mode & 0o777 == 0o600
    assert rows(served.product)["seal key"].state == OK
    served.stop()
    os.rename(key, f"{key}.away")
    assert "seal key" not in rows(served.product)
    os.symlink(f"{key}.away", key)
    row = rows(served.product)["seal key"]
    assert (row.state, row.mend) == (FAIL, None)
