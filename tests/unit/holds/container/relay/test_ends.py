"""Both kinds of ends, with a real socket behind each: what is read, what its end is, and how it is cut."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tidegate.holds.container.relay.ends import Framed, Plain, connect_unix, listen_unix
from tidegate.holds.container.relay.words import CutError

if TYPE_CHECKING:
    import ssl
    from pathlib import Path


def as_it_is(sock: socket.socket) -> ssl.SSLSocket:
    """In place of TLS, which test_far.py has: the frames are the same."""
    sock.do_handshake = lambda: None  # type: ignore[attr-defined]
    return sock  # type: ignore[return-value]


class Wire(socket.socket):
    """A socket that takes an attribute."""


def pair() -> tuple[Wire, socket.socket]:
    """Two connected sockets."""
    ours, theirs = socket.socketpair()
    return Wire(fileno=ours.detach()), theirs


def test_a_plain_end_tells_nothing_yet_from_the_end() -> None:
    """GAT-5: None while nothing is there, bytes, b'' at the end; who reads no more is -1, not an error."""
    ours, theirs = socket.socketpair()
    end = Plain(ours)
    assert end.read() is None
    theirs.sendall(b"abc")
    assert end.read() == b"abc"
    theirs.shutdown(socket.SHUT_WR)
    assert end.read() == b""
    assert end.write(bytearray(b"xy")) == 2
    theirs.close()
    assert end.write(bytearray(b"xy")) == -1
    assert end.end()
    end.close(cut=False)


def test_frames_tell_an_end_that_was_sent_from_one_that_happened() -> None:
    """HLD-7: an empty frame is the end of a direction; without one the connection was cut."""
    for sent, last in ((b"\0\1+\0\2hi\0\0", b""), (b"\0\1+\0\2hi\0", None)):
        ours, theirs = pair()
        end = Framed(ours, as_it_is, b"G")
        theirs.sendall(sent)
        theirs.shutdown(socket.SHUT_WR)
        assert end.is_ready()
        assert end.read() == b"hi"
        if last is None:
            with pytest.raises(CutError):
                end.read()
        else:
            assert end.read() == last
        assert theirs.recv(10) == b"\0\1G"
        assert end.end()
        assert theirs.recv(10) == b"\0\0"
        end.close(cut=False)
        theirs.close()


def test_what_speaks_something_else_is_cut() -> None:
    """HLD-4 (c): the first frame of the other side must be the one word that there is."""
    ours, theirs = pair()
    end = Framed(ours, as_it_is, b"G")
    theirs.sendall(b"\0\1?")
    with pytest.raises(CutError):
        end.is_ready()
    end.close(cut=True)
    theirs.close()


def test_a_socket_is_made_in_the_place_of_one_that_was_left(tmp_path: Path) -> None:
    """HLD-8: a relay that was killed leaves its socket; nobody is there until the next one listens."""
    path = str(tmp_path / "s")
    listen_unix(path).close()
    with pytest.raises(ConnectionRefusedError):
        connect_unix(path)
    with listen_unix(path), connect_unix(path) as made:
        assert made.getpeername() == path
