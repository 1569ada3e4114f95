"""The command line's side of the API."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from tests.unit.server.api.running import Whole
from tidegate.cli.api_client import ApiClient, segment
from tidegate.model.errors import EXIT_CANNOT_START, StartError, TidegateError

if TYPE_CHECKING:
    from pathlib import Path


def test_the_server_of_this_user_is_found_and_asked(whole: Whole) -> None:
    """SRV-1: get, post and delete over the unix socket in the state folder."""
    client = ApiClient()
    assert client.get("/api/health")["role"] == "owner"
    made = client.post("/api/tokens", {"name": "ä"})
    assert client.get("/api/tokens")["tokens"] == [made["token"]]
    assert client.delete(f"/api/tokens/{made['token']['id']}") == {"ok": True}
    whole.task(name="one")
    assert client.get("/api/tasks", living=False, limit=5, before=None)["tasks"] == []
    assert len(client.get("/api/tasks", living=True)["tasks"]) == 1


def test_what_the_server_refuses_is_an_error_of_the_house(whole: Whole) -> None:
    """HLD-16: its sentence, fix and code come through as they are."""
    with pytest.raises(TidegateError) as caught:
        ApiClient().get("/api/questions/7")
    assert (caught.value.what, caught.value.code) == ("there is no question 7", "no-such-question")
    assert whole.path


@pytest.mark.parametrize("left", ["nothing", "a socket", "a folder that is a file"])
def test_no_server_is_one_clear_line(tmp_path: Path, left: str) -> None:
    """HLD-16: where none runs, or one was killed and left its socket: exit 78 and what starts one."""
    path = tmp_path / "api.sock"
    if left == "a socket":
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(path))
    elif left == "a folder that is a file":
        (tmp_path / "file").touch()
        path = tmp_path / "file" / "api.sock"
    with pytest.raises(StartError) as caught:
        ApiClient(str(path)).get("/api/health")
    assert caught.value.exit_status == EXIT_CANNOT_START
    assert str(caught.value) == "no server runs here: tidegate serve starts one"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno",
        b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\n{}",
        b'HTTP/1.1 500 Oh\r\nContent-Length: 13\r\n\r\n{"error": []}',
        b"nonsense\r\n\r\n",
    ],
)
def test_what_is_no_api_is_said(tmp_path: Path, answer: bytes) -> None:
    """HLD-16: something else behind the socket, or one that ends, is one line and no trace."""
    path = str(tmp_path / "api.sock")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(path)
        sock.listen()

        def serve() -> None:
            found, _ = sock.accept()
            with found:
                found.recv(65536)
                found.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(TidegateError, match="the server"):
            ApiClient(path).get("/api/health")
        thread.join(10)


def test_events_are_read_as_they_come(whole: Whole) -> None:
    """SRV-1: id, kind and data of each; they end with the server."""
    events = ApiClient().events()
    first, kind, data = next(events)
    assert (kind, data) == ("hello", {})
    task = whole.task(name="one")
    event_id, kind, data = next(found for found in events if found[1] == "task")
    assert data["id"] == task["id"]
    assert event_id != first
    again = ApiClient().events(first)
    assert next(found for found in again if found[1] == "task")[0] == event_id
    again.close()
    whole.on_loop(whole.api.stop())
    assert not list(events)


def test_a_segment_of_a_path_stays_one() -> None:
    """SRV-1: what is put into a path cannot be more than one part of it."""
    assert segment("a/../b?c#d") == "a%2F..%2Fb%3Fc%23d"
