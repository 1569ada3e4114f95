"""A worker's relay and its owner: nobody is let in without one, and nothing outlives it."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.unit.holds.container.relay.running import PATIENCE, Owner

if TYPE_CHECKING:
    from pathlib import Path


def test_nobody_is_let_in_before_the_way_is_open(owner: Owner) -> None:
    """HLD-7, B94: until the owner has answered a connection is reset; the neighbour: then it passes."""
    life = owner.life.accept()[0]
    with life:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with owner.client() as client:
                    refused = client.recv(1)
            except ConnectionResetError:
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline  # the relay is not up yet
                continue
            assert refused == b""
            break
        life.send(b"+")
        assert life.recv(1) == b"+"
        with owner.client() as client, owner.accepted() as gate:
            gate.sendall(b"hello")
            assert client.recv(10) == b"hello"


def test_the_owner_sees_at_once_that_the_relay_ended(owner: Owner) -> None:
    """HLD-7, B95: its connection ends with the relay, however that ends."""
    with owner.ready() as life:
        owner.process.kill()
        assert life.recv(1) == b""


def test_a_relay_whose_owner_left_cuts_all_and_takes_the_next_one(owner: Owner) -> None:
    """HLD-7, HLD-8: without an owner nothing passes and what was open is reset; the next owner has it back."""
    life = owner.ready()
    with owner.client() as client, owner.accepted():
        life.close()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    with owner.ready(), owner.client() as client, owner.accepted() as gate:
        gate.sendall(b"again")
        assert client.recv(10) == b"again"


def test_a_relay_without_an_owner_ends(tmp_path: Path) -> None:
    """HLD-8: nobody has to find what a crash left: after its grace it is gone, with status 3."""
    owner = Owner(tmp_path, grace=0.5)
    try:
        owner.ready().close()
        owner.gate.close()
        owner.life.close()
        (tmp_path / "life.sock").unlink()
        assert owner.process.wait(PATIENCE) == 3
    finally:
        owner.close()


def test_as_the_first_process_of_a_container_it_ends_when_told(owner: Owner) -> None:
    """HLD-8: `stop` of an engine sends SIGTERM and does not have to wait and kill."""
    with owner.ready():
        owner.process.send_signal(signal.SIGTERM)
        assert owner.process.wait(PATIENCE) == 0
