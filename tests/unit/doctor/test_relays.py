"""tidegate.doctor.relays, with a real authority and listener; images with engines in tests/holds/test_relays.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.doctor.check import FAIL, OK
from tidegate.doctor.relays import check_relays
from tidegate.holds.container import door_link
from tidegate.holds.container.certificates import open_authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A machine without engines, with a state folder of its own."""
    (tmp_path / "tidegate").mkdir(0o700)
    yield {"PATH": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    for process in door_link._started:
        process.kill()
        process.wait(30)
    door_link._started.clear()


def test_where_none_was_used_there_is_no_row(environ: dict[str, str], tmp_path: Path) -> None:
    """HLD-4: and nothing is made by looking."""
    assert check_relays(environ) == []
    assert not (tmp_path / "tidegate" / "run").exists()


def test_a_listener_that_answers_is_fine(environ: dict[str, str], tmp_path: Path) -> None:
    """HLD-4: asked as a relay asks it, with a certificate that is worth nothing afterwards."""
    open_authority(str(tmp_path / "tidegate"), door_link.now())
    authority, listener = check_relays(environ)
    assert (authority.state, listener.state) == (OK, OK), listener
    assert "run/ca" in authority.what
    assert "127.0.0.1" in listener.what


def test_an_authority_that_others_can_read_fails(environ: dict[str, str], tmp_path: Path) -> None:
    """HLD-4, HLD-7: with the command that mends it; the listener is not asked with it."""
    open_authority(str(tmp_path / "tidegate"), door_link.now())
    (tmp_path / "tidegate" / "run" / "ca" / "authority.pem").chmod(0o644)
    (row,) = check_relays(environ)
    assert row.state == FAIL
    assert "chmod 600" in row.fix


def test_a_listener_that_does_not_let_us_in_fails(environ: dict[str, str], tmp_path: Path) -> None:
    """HLD-7: one that runs with another authority than the one that is kept: its tasks have no route."""
    state = tmp_path / "tidegate"
    authority = open_authority(str(state), door_link.now())
    keys = authority.task("a", door_link.now())
    route = door_link.register(
        str(state), "a", keys, str(tmp_path), authority, now=door_link.now(), warn=lambda _line: None
    )
    (state / "run" / "ca" / "authority.pem").unlink()
    open_authority(str(state), door_link.now())
    listener = check_relays(environ)[-1]
    route.close()
    assert listener.state == FAIL, listener
    assert "relay.jsonl" in listener.fix
