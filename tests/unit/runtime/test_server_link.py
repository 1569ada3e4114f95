"""tidegate.runtime.server_link; the whole conversation is tried in tests/unit/server."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.descriptors import descriptors
from tidegate.model.errors import StartError
from tidegate.runtime.server_link import find_server, need_server


def test_no_server_is_found_where_none_runs(tmp_path: Path) -> None:
    """HLD-7: `run` works alone; no descriptor stays open, whether there never was one or it was killed."""
    before = descriptors()
    assert find_server(str(tmp_path), print) is None
    (tmp_path / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "run" / "front.sock"))
    assert find_server(str(tmp_path), print) is None
    with pytest.raises(StartError, match="needs the server") as raised:
        need_server(str(tmp_path), print, "tidegate exec")
    assert "tidegate serve" in raised.value.fix
    assert raised.value.exit_status == 78
    assert descriptors() <= before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything")
def test_a_server_that_cannot_be_reached_is_no_reason_to_run_alone(tmp_path: Path) -> None:
    """HLD-7: never a silent fall-back."""
    (tmp_path / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "run" / "front.sock"))
        server.listen()
        os.chmod(tmp_path / "run" / "front.sock", 0)
        with pytest.raises(StartError, match="cannot be reached"):
            find_server(str(tmp_path), print)


def test_a_server_is_spoken_to_in_json(tmp_path: Path) -> None:
    """What another program wrote is never unmarshalled."""
    (tmp_path / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "run" / "front.sock"))
        server.listen()
        link = find_server(str(tmp_path), print)
        assert link is not None
        assert link.dumps(("a", None)) == b'["a",null]'
        assert link.loads(b'["a",null]') == ["a", None]
        with server.accept()[0] as peer:
            peer.sendall(b"\x00\x00\x00\x02{]")
            link.configure({"task": "t1"})
            with pytest.raises(StartError):
                link.confirm()
        link.close()
