"""starter.py: a program of some hundred bytes that hands its calls to somebody, and then becomes another program."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tidegate.holds import linux
from tidegate.holds.container import starter
from tidegate.holds.container.elf_program import HEADERS
from tidegate.holds.on_behalf import send_answer
from tidegate.holds.watcher import NOTIF_RECV, NOTIFICATION
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 180
# All that is set: a program that finds no HOME or SHELL looks its user up, which may take a connection.
VARIABLES = {"PATH": "/usr/bin:/bin", "HOME": "/its/home", "SHELL": "/bin/sh"}


class Post:
    """The other side: the socket, and the program that connects to it."""

    def __init__(self, folder: Path) -> None:
        self.door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.door.settimeout(PATIENCE)
        self.door.bind(str(folder / starter.SOCKET))
        self.door.listen()
        self.path = folder / "start"
        self.path.write_bytes(starter.program(str(folder)))
        self.path.chmod(0o755)
        self.child: subprocess.Popen[bytes] | None = None
        self.peer: socket.socket | None = None

    def begin(self, *argv: str) -> socket.socket:
        """Start the program; its connection."""
        self.child = subprocess.Popen([self.path, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=VARIABLES)
        self.peer = self.door.accept()[0]
        self.peer.settimeout(PATIENCE)
        return self.peer

    def end(self) -> tuple[int, bytes, bytes]:
        """Wait for its end: status, output, error."""
        assert self.child is not None
        out, err = self.child.communicate(timeout=PATIENCE)
        return self.child.returncode, out, err


@pytest.fixture
def post(tmp_path: Path) -> Iterator[Post]:
    """The program with a socket of this test's."""
    folder = tmp_path
    if len(os.fsencode(folder)) > 90:
        pytest.skip("the temporary folder's path is longer than the address of a unix socket")
    made = Post(folder)
    yield made
    made.door.close()
    if made.peer is not None:
        made.peer.close()
    if made.child is not None:
        with made.child:  # closes its streams: left open by a test that failed, they would fail the next one too
            made.child.kill()


def listener_of(peer: socket.socket) -> int:
    """The listener that comes with its word."""
    said, (listener,), _flags, _from = socket.recv_fds(peer, 9, 4)
    assert said == starter.TAKEN
    return listener


def answer(listener: int, code: int) -> int:
    """Answer the next call with this errno; the number of the call."""
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    assert poll.poll(PATIENCE * 1000)
    notification = bytearray(NOTIFICATION)
    fcntl.ioctl(listener, NOTIF_RECV, notification, True)
    send_answer(listener, int.from_bytes(notification[:8], "little"), code)
    return int.from_bytes(notification[16:20], "little")


def test_it_becomes_the_program_that_is_named(post: Post) -> None:
    """The same process, its arguments, variables and streams, once somebody answers; no_new_privs is set (HLD-13)."""
    peer = post.begin(
        "/bin/sh", "-c", 'echo $$ "$1" $HOME; grep -c "NoNewPrivs:.1" /proc/self/status; exit 7', "-", "x"
    )
    listener = listener_of(peer)
    peer.send(starter.TAKEN)
    assert answer(listener, errno.EBADF) == linux.NUMBERS["connect"]
    status, out, err = post.end()
    assert (status, err) == (7, b"")
    assert post.child is not None
    assert out.decode() == f"{post.child.pid} x /its/home\n1\n"
    os.close(listener)


def test_nothing_runs_before_somebody_answers(post: Post) -> None:
    """Until the other side has its listener and says so, and without it, the program that is named does not run."""
    peer = post.begin("/bin/sh", "-c", "echo ran")
    os.close(listener_of(peer))
    peer.close()
    assert post.end() == (starter.FAILED, b"", starter.SAYS)


def test_an_answer_that_is_none_ends_it(post: Post) -> None:
    """The trial call must have the watcher's answer; nobody there is ENOSYS (HLD-7, HLD-11)."""
    peer = post.begin("/bin/sh", "-c", "echo ran")
    listener = listener_of(peer)
    os.close(listener)
    peer.send(starter.TAKEN)
    assert post.end() == (starter.FAILED, b"", starter.SAYS)


def test_without_the_socket_it_ends(post: Post) -> None:
    """Nobody to hand over to: one line, and nothing runs (HLD-7)."""
    post.door.close()
    done = subprocess.run([post.path, "/bin/sh", "-c", "echo ran"], capture_output=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (starter.FAILED, b"", starter.SAYS)


def test_connections_go_to_who_answers_and_nobody_else_can(post: Post) -> None:
    """connect() and listen() are handed on, other calls are not, and a second listener is refused (HLD-14)."""
    code = "import socket; s = socket.socket(socket.AF_UNIX); print(s.connect_ex('/x')); s.listen()"
    peer = post.begin(sys.executable, "-I", "-c", code)
    listener = listener_of(peer)
    peer.send(starter.TAKEN)
    answer(listener, errno.EBADF)
    assert answer(listener, errno.EXFULL) == linux.NUMBERS["connect"]
    assert answer(listener, 0) == linux.NUMBERS["listen"]
    assert post.end()[:2] == (0, f"{errno.EXFULL}\n".encode())
    os.close(listener)


def test_another_machine_is_refused() -> None:
    """Where there is no code there is one clear error (HLD-7)."""
    with pytest.raises(StartError):
        starter.program("/x", "riscv64")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_what_it_works_on_is_where_the_code_looks(machine: str) -> None:
    """The address of the data, as the first instruction has it, and each pointer in it (unix(7), seccomp(2))."""
    made = starter.program("/some/where", machine)
    code = len(starter._CODE[machine])
    if machine == "x86_64":
        (distance,) = struct.unpack_from("<i", made, HEADERS + 3)
        assert 7 + distance == code
    else:
        (word,) = struct.unpack_from("<I", made, HEADERS)
        assert (word >> 5 & 0x7FFFF) * 4 + (word >> 29 & 3) == code
    data, base = made[HEADERS + code :], 0x400000 + HEADERS + code
    assert data[:2] + data[2:110].rstrip(b"\0") == b"\1\0/some/where/socket"
    count, calls = struct.unpack_from("<HxxxxxxQ", data, 112)
    name, length, parts, number, beside, size = struct.unpack_from("<QIxxxxQQQQ", data, 128)
    assert (name, length, number, size) == (0, 0, 1, 24)
    where, one = struct.unpack_from("<QQ", data, parts - base)
    assert data[where - base : where - base + one] == starter.TAKEN
    assert struct.unpack_from("<Qiii", data, beside - base) == (20, 1, 1, starter.LISTENER)
    assert calls + 8 * count == where
    (said,) = struct.unpack_from("<Q", data, 224)
    assert data[232 : 232 + said] == starter.SAYS


def test_the_branches_for_the_other_machine_lead_where_they_should() -> None:
    """On aarch64, which tests may not run on: every conditional branch, worked out again; all but one go to the end."""
    words = struct.unpack("<86I", starter._CODE["aarch64"])
    leads = {}
    for at, word in enumerate(words):
        if word >> 24 in (0xB6, 0xB7):  # tbz, tbnz of bit 63
            leads[at] = at + (word >> 5 & 0x3FFF)
        elif word >> 24 in (0xB5, 0x54):  # cbnz, b.cond
            leads[at] = at + (word >> 5 & 0x7FFFF)
    assert leads.pop(28) == 35
    assert len(leads) == 8
    assert set(leads.values()) == {78}
