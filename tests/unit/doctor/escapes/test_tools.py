"""What the rows are written with does what it says, outside any hold."""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING

import pytest

from tidegate.doctor.escapes import tools

if TYPE_CHECKING:
    from pathlib import Path


def test_a_raw_call_returns_or_raises() -> None:
    """The result of getpid; the errno of a call on a descriptor that is not there."""
    assert tools.syscall(tools.number(39, 172)) == os.getpid()
    with pytest.raises(OSError, match="syscall") as raised:
        tools.syscall(tools.number(3, 57), -1)
    assert raised.value.errno == errno.EBADF


def test_a_unix_socket_is_called_by_path_and_by_abstract_name(tmp_path: Path) -> None:
    """An abstract name begins with @; where nobody listens the call is refused."""
    tools.begin("this_row")
    for address, bound in ((f"{tmp_path}/s", f"{tmp_path}/s"), (f"@tools-{os.getpid()}", f"\0tools-{os.getpid()}")):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(bound)
            with pytest.raises(ConnectionRefusedError):
                tools.unix(address)
            server.listen()
            tools.unix(address)
            with server.accept()[0] as connection:
                assert connection.recv(99) == b"escaped-this_row"


def test_what_is_seen_and_must_not_be_is_said() -> None:
    """A row ends with what it saw."""
    with pytest.raises(AssertionError, match="a secret"):
        tools.wrong("a secret")


def test_of_many_places_none_may_work(tmp_path: Path) -> None:
    """The last refusal is the row's, whichever came before; one that works is named."""
    (tmp_path / "there").mkdir()
    gone, there = f"{tmp_path}/gone", f"{tmp_path}/there"
    assert tools.none_of(os.rmdir, (gone, "/proc"), "went").errno in {errno.EBUSY, errno.EACCES}
    assert tools.none_of(os.rmdir, (gone,), "went").errno == errno.ENOENT
    assert tools.none_of(os.rmdir, (), "went").errno == errno.ENOENT
    with pytest.raises(AssertionError, match=f"{there} went"):
        tools.none_of(os.rmdir, (there, gone), "went")
