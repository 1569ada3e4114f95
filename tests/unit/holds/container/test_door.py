"""What the listener for relays does with those who own tasks, turn by turn; with real relays in test_door_link.py."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidegate.holds.container import door
from tidegate.holds.container.certificates import open_authority
from tidegate.holds.container.door import Door, Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOW = time.time()  # noqa: TID251


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Door]:
    """A listener that is turned by hand."""
    authority = open_authority(str(tmp_path / "state"), NOW)
    owners = socket.socket(socket.AF_UNIX)
    owners.bind(str(tmp_path / "door.sock"))
    owners.listen(8)
    order = {
        "listener": authority.listener(NOW).decode(),
        "authority": authority.pem.decode(),
        "log": str(tmp_path / "relay.jsonl"),
    }
    with socket.create_server(("127.0.0.1", 0)) as tcp, owners:
        found = Door(tcp, owners, order)
        try:
            yield found
        finally:
            found._mark.close()
            for owner in [*found._owners.values(), *found._unknown]:
                found.leave(owner)
            found.loop.close()


@pytest.fixture
def owner(served: Door) -> Iterator[Callable[[bytes], socket.socket]]:
    """Say something as an owner; give back its end of the connection, when the listener has heard it."""
    ends = []

    def say(line: bytes) -> socket.socket:
        near, far = socket.socketpair()
        near.settimeout(10)
        ends.append(near)
        served._unknown.add(Owner(served, far))
        near.sendall(line)
        for _ in range(3):
            served.loop.turn(0.05)
        return near

    yield say
    for end in ends:
        end.close()


def line(**changes: object) -> bytes:
    """What an owner says."""
    return (
        json.dumps({"task": "t", "fingerprint": "f" * 64, "folder": "/", "ends_at": NOW + 86_400} | changes).encode()
        + b"\n"
    )


def test_an_owner_is_told_the_port(served: Door, owner: Callable[[bytes], socket.socket]) -> None:
    """HLD-4: once it has said whose it is."""
    assert json.loads(owner(line()).recv(100)) == {"port": served.port}
    assert list(served._owners) == ["f" * 64]


@pytest.mark.parametrize(
    "said",
    [
        b"nothing that is JSON\n",
        b"[]\n",
        b"{}\n",
        line(ends_at="later"),
        line(ends_at=None),
        b"x" * (door.LINE + 1),
        line() + line(),
    ],
    ids=["no JSON", "a list", "empty", "a word for a time", "no time", "too long", "two"],
)
def test_what_says_something_else_is_nobodys_owner(
    served: Door, owner: Callable[[bytes], socket.socket], said: bytes
) -> None:
    """HLD-7: the connection ends, and no certificate is worth anything by it."""
    end = owner(said)
    with contextlib.suppress(ConnectionResetError):
        assert end.recv(100) == b""
    assert not served._owners
    assert not served._unknown


def test_a_certificate_has_one_owner(served: Door, owner: Callable[[bytes], socket.socket]) -> None:
    """GAT-2: a second one is sent away, and the first keeps it."""
    first = owner(line())
    assert owner(line(folder="/tmp")).recv(100) == b""
    assert json.loads(first.recv(100))["port"] == served.port
    assert served._owners["f" * 64].folder == "/"


def test_an_owner_that_leaves_takes_its_certificate_with_it(
    served: Door, owner: Callable[[bytes], socket.socket]
) -> None:
    """HLD-4: revoked when the task ends; the next one may have it."""
    owner(line()).close()
    served.loop.turn(0.05)
    assert not served._owners
    assert json.loads(owner(line()).recv(100))["port"] == served.port


def test_refusals_are_folded_and_their_file_is_bounded(served: Door) -> None:
    """JRN-5's bound: who knocks in a loop fills no disk."""
    path = Path(served._log)
    for _ in range(100):
        served.refused("127.0.0.1:1", "the same")
    assert len(path.read_text().splitlines()) == 1
    path.write_bytes(b"x" * (door.LOG_BYTES + 1))
    served.refused("127.0.0.1:1", "another")
    assert len(path.read_text().splitlines()) == 1
    assert Path(f"{path}.1").stat().st_size == door.LOG_BYTES + 1
    assert path.stat().st_mode & 0o077 == 0


def test_without_owners_it_ends(
    served: Door, owner: Callable[[bytes], socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """HLD-8: a moment after the last one, and not before: a server that is started anew finds it."""
    monkeypatch.setattr(door, "ALONE", 0.5)
    end = owner(line())
    thread = threading.Thread(target=served.serve)
    thread.start()
    thread.join(1.5)
    assert thread.is_alive()
    end.close()
    thread.join(30)
    assert not thread.is_alive()
