"""tidegate.server.peers: real processes on real sockets."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from tests.holds.held import AS_USER, PYTHON
from tidegate.server import peers
from tidegate.server.peers import refusal

# Connects, then waits for a byte; says first whether it could. Flags of unshare(2) are given.
_PEER = textwrap.dedent("""
    import ctypes, os, socket, sys
    flags = int(sys.argv[2], 16)
    if flags and ctypes.CDLL(None, use_errno=True).unshare(flags):
        print("cannot", ctypes.get_errno(), flush=True); sys.exit()
    if flags & 0x20000000 and os.fork():
        os.wait(); os._exit(0)
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(sys.argv[1])
    print("connected", flush=True)
    if len(sys.argv) > 3:
        os._exit(0)
    sock.recv(1)
""")
NEWUSER, NEWPID, NEWNET, NEWNS = 0x10000000, 0x20000000, 0x40000000, 0x00020000


def _asked(folder: Path, flags: int, *more: str, prefix: tuple[str, ...] = ()) -> str:
    path = str(folder / "s")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        os.chmod(path, 0o777)
        server.listen()
        server.settimeout(20)
        argv = [*prefix, PYTHON, "-c", _PEER, path, hex(flags), *more]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as peer:
            assert peer.stdout is not None
            said = peer.stdout.readline()
            if said.startswith("cannot"):
                pytest.skip(f"this machine does not let a process have such namespaces: {said}")
            assert said.startswith("connected")
            if more:
                peer.wait(20)
            sock, _ = server.accept()
            with sock:
                answer = refusal(sock)
    os.unlink(path)
    return answer


def test_this_users_process_may_come_in(tmp_path: Path) -> None:
    """SRV-1: same user, same namespaces."""
    assert _asked(tmp_path, 0) == ""


@pytest.mark.parametrize("flags", [NEWUSER, NEWUSER | NEWPID, NEWUSER | NEWPID | NEWNET | NEWNS])
def test_a_process_in_a_tasks_namespaces_is_refused(tmp_path: Path, flags: int) -> None:
    """HLD-15: what every hold has, a user namespace of its own, is enough."""
    assert _asked(tmp_path, flags) == "a process inside a task cannot speak to the server"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make them without a user namespace")
def test_a_pid_namespace_alone_is_refused_and_a_network_or_mounts_alone_are_not(tmp_path: Path) -> None:
    """HLD-15: a service with a private /tmp is no task; a process with numbers of its own may be."""
    assert "inside a task" in _asked(tmp_path, NEWPID)
    assert _asked(tmp_path, NEWNS) == ""
    assert _asked(tmp_path, NEWNET) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_another_user_is_refused() -> None:
    """SRV-1: not root's business, nor anybody's but the server's own user."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # pytest's own are closed to others
        os.chmod(folder, 0o755)
        why = _asked(Path(folder), 0, prefix=(sys.executable, AS_USER, "-"))
    assert "another user" in why
    assert "12345" in why


def test_one_that_is_gone_is_refused(tmp_path: Path) -> None:
    """HLD-15: fails closed; who cannot be looked at may be anybody."""
    assert _asked(tmp_path, 0, "go") != ""


def test_an_older_kernel_gives_no_handle_by_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Linux 6.5 the process is held by its number."""
    monkeypatch.setattr(peers, "SO_PEERPIDFD", 9999)
    assert _asked(tmp_path, 0) == ""
    assert _asked(tmp_path, 0, "go") != ""
    assert _asked(tmp_path, NEWUSER) != ""
