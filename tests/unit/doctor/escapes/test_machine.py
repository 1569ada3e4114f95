"""What stands around a hold hears who comes, and goes."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from typing import TYPE_CHECKING

import pytest

from tidegate.doctor.escapes.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def base() -> Iterator[str]:
    """A folder with a short path: an address of a unix socket takes 107 bytes."""
    folder = tempfile.mkdtemp(dir="/var/tmp")
    yield folder + "/base"
    shutil.rmtree(folder)


def test_who_comes_is_heard_and_nothing_stays(base: str) -> None:
    """What was said over TCP, UDP and unix sockets is told with where; sockets in /tmp and /run are removed."""
    machine = Machine(base)
    try:
        where = machine.listen()
        files = [where[name] for name in ("unix_tmp", "unix_run", "unix_home", "unix_work", "unix_folder")]
        assert all(os.path.exists(path) for path in files)
        assert machine.who_came() == []
        with socket.create_connection(("127.0.0.1", where["tcp4"])) as wire:
            wire.sendall(b"one")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
                other.sendto(b"two", ("127.0.0.1", where["udp4"]))
            with socket.socket(socket.AF_UNIX) as third:
                third.connect(where["unix_tmp"])
                assert sorted(said for _, said in machine.who_came()) == ["", "one", "two"]
        with socket.create_connection(("127.0.0.1", where["open_tcp4"])):
            assert machine.who_came() == []
    finally:
        machine.close()
    assert not any(os.path.exists(path) for path in files)


def test_files_are_where_the_rows_are_told(base: str) -> None:
    """Hidden, read-only and linked ones exist; the folder that is to be absent does not."""
    paths = Machine(base).paths()
    assert os.path.isfile(paths["hidden"] + "/secret")
    assert os.path.isfile(paths["readonly_file"])
    assert os.path.islink(paths["hidden_link"])
    assert not os.path.exists(paths["absent"])
