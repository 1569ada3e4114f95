"""tidegate.runtime.ssh_agent: the filter alone; with sshd and git in tests/unit/cli/test_run_ssh_key.py."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ssh_server import make_key, need
from tidegate.holds.inside import SSH_AGENT, TaskSockets
from tidegate.runtime.ssh_agent import MAX_CLIENTS
from tidegate.runtime.ssh_keys import KeyUse, SshKeys
from tidegate.runtime.ssh_tools import ask, connect
from tidegate.wire.ssh_agent import FAILURE, read_identities


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[SshKeys]:
    """The process that serves one key for a.test."""
    need()
    (tmp_path / ".ssh").mkdir()
    make_key(tmp_path / "id")
    (tmp_path / ".ssh" / "known_hosts").write_text(f"a.test {make_key(tmp_path / 'host')}\n")
    folder = tmp_path / "run"
    folder.mkdir()
    made = SshKeys((KeyUse(str(tmp_path / "id"), "a.test"),), str(folder), {"HOME": str(tmp_path)})
    yield made
    made.close()
    assert not folder.exists()


def _serve(keys: SshKeys, path: Path) -> str:
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(path.parent)  # a socket's path is short
        listener.bind(path.name)
        listener.listen(64)
        keys.serve(TaskSockets((SSH_AGENT,), (listener.fileno(),)))
    return path.name


def _connect(name: str) -> socket.socket:
    made = connect(name)
    made.settimeout(20)
    return made


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the current one, for short names."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_key_is_listed_and_all_else_counted(keys: SshKeys, short: Path) -> None:
    """HLD-14: the list holds that key alone; what was refused is told at the end, with a count."""
    with _connect(_serve(keys, short / "s")) as client:
        listed = read_identities(ask(client, b"\x0b"))
        assert listed is not None
        assert len(listed) == 1
        assert [ask(client, message) for message in (b"\x13", b"\x11x")] == [FAILURE, FAILURE]
    assert keys.finish() == ("ssh-key: refused, what was asked for is no login by one of these keys ×2",)


def test_the_next_hold_takes_the_place_of_the_one_before(keys: SshKeys, short: Path) -> None:
    """POL-7, HLD-14: after the set-up command its socket is nobody's, and the command's is served."""
    first = _serve(keys, short / "s1")
    with _connect(first) as client:
        assert read_identities(ask(client, b"\x0b"))
    with _connect(_serve(keys, short / "s2")) as client:
        assert read_identities(ask(client, b"\x0b"))
    with pytest.raises(ConnectionRefusedError):
        _connect(first)


def test_connections_are_bounded_and_come_back(keys: SshKeys, short: Path) -> None:
    """Rule 6: one connection too many is closed at once; where one ended, the next is served. Nonsense ends its own."""
    name = _serve(keys, short / "s")
    held = [_connect(name) for _ in range(MAX_CLIENTS)]
    for client in held:
        assert read_identities(ask(client, b"\x0b"))
    with _connect(name) as client:
        assert client.recv(1) == b""
    held.pop().close()
    held[0].sendall(b"\xff\xff\xff\xff")
    assert held[0].recv(1) == b""
    deadline = time.monotonic() + 60
    while True:
        # Still one too many, it is closed with what we said unread: a reset, or a pipe that broke before.
        with contextlib.suppress(ConnectionError), _connect(name) as client:
            client.sendall(b"\0\0\0\1\x0b")
            if client.recv(1):
                break
        assert time.monotonic() < deadline
    for client in held:
        client.close()
