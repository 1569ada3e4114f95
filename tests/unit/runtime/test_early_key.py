"""The key that a gate's child makes: the gate's own library reads it, and nothing of the child is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from _socket import socketpair
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import tidegate
from tidegate.inspect import first_key
from tidegate.inspect.first_key import Key
from tidegate.runtime.channel import ChannelClosedError
from tidegate.runtime.early_key import EarlyKey

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(tidegate.__file__).parents[1]


@pytest.fixture
def key() -> Iterator[EarlyKey]:
    """One, with a channel that nobody speaks on."""
    channel, front = socketpair()
    made = EarlyKey(channel)
    yield made
    made.close()
    channel.close()
    front.close()


def public(key: EarlyKey) -> ec.EllipticCurvePublicKey:
    """Its public key, by the library."""
    loaded = cast("ec.EllipticCurvePrivateKey", serialization.load_der_private_key(key.private, None))
    return loaded.public_key()


def test_the_child_signs_with_the_key_that_it_gave(key: EarlyKey) -> None:
    """INS-1: one key for both roots; after it is closed the child is gone, and what it gave stays."""
    for data in (b"names", b"addresses"):
        public(key).verify(key.sign(data), data, ec.ECDSA(hashes.SHA256()))
    child = key._child
    key.close()
    key.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    point = public(key).public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    assert point == key.point


def test_a_child_that_is_lost_before_it_gave_a_key_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """HLD-7: the gate makes one itself."""
    here = os.getpid()

    class Late(Key):
        """In the child it is not ready before that is killed."""

        def __init__(self) -> None:
            while os.getpid() != here:
                signal.pause()
            super().__init__()

    monkeypatch.setattr(first_key, "Key", Late)
    channel, front = socketpair()
    key = EarlyKey(channel)
    os.kill(key._child, signal.SIGKILL)
    public(key).verify(key.sign(b"x"), b"x", ec.ECDSA(hashes.SHA256()))
    key.close()
    channel.close()
    front.close()


def test_a_child_that_is_lost_while_it_signs_ends_the_start(key: EarlyKey) -> None:
    """HLD-7: what was given out as the key is never replaced by another."""
    assert len(key.point) == 65
    os.kill(key._child, signal.SIGKILL)
    os.waitid(os.P_PID, key._child, os.WEXITED | os.WNOWAIT)
    with pytest.raises(ChannelClosedError, match="lost"):
        key.sign(b"x")


def test_the_child_ends_with_its_gate_and_keeps_no_channel_open() -> None:
    """HLD-7: a gate that is killed is seen at once by its front, and leaves no process."""
    code = (
        "import os, sys\nfrom _socket import socket\nfrom tidegate.runtime.early_key import EarlyKey\n"
        "key = EarlyKey(socket(fileno=int(sys.argv[1])))\nos.write(1, b'%d\\n' % key._child)\nos.kill(os.getpid(), 9)\n"
    )
    ours, theirs = socketpair()
    gate = subprocess.Popen(
        [sys.executable, "-c", code, str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(SOURCES)},
    )
    theirs.close()
    with gate:
        assert gate.stdout is not None
        assert int(gate.stdout.readline()) > 0
        assert ours.recv(1) == b""
        assert gate.stdout.read() == b"", "which the child has open, too, until it ends"
    assert gate.returncode == -signal.SIGKILL
    ours.close()
