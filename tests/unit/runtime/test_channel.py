"""tidegate.runtime.channel."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from tidegate.runtime.channel import ChannelClosedError, receive, send


def test_values_and_descriptors_arrive_in_order() -> None:
    """HLD-1: the listener made inside the namespace reaches the gate beside a frame, and works there."""
    left, right = socket.socketpair()
    read, write = os.pipe()
    send(left, {"a": (1, "x")})
    send(left, ("listener",), write)
    assert receive(right) == ({"a": (1, "x")}, -1)
    value, fd = receive(right)
    assert value == ("listener",)
    os.write(fd, b"through")
    assert os.read(read, 10) == b"through"
    for one in (read, write, fd):
        os.close(one)
    left.close()
    right.close()


def test_a_large_policy_passes() -> None:
    """POL-4: a policy of many rules is larger than one socket buffer."""
    left, right = socket.socketpair()
    big = [("rule", number) for number in range(100_000)]
    sender = threading.Thread(target=send, args=(left, big))
    sender.start()
    assert receive(right)[0] == big
    sender.join()
    left.close()
    right.close()


@pytest.mark.parametrize("junk", [b"", b"\x00\x00", b"\x00\x00\x00\x08abc", b"\xff\xff\xff\xff", b"\x00\x00\x00\x01?"])
def test_an_end_or_junk_is_a_closed_channel(junk: bytes) -> None:
    """HLD-7: the other end's death at any byte is seen as its end, never as a value or another error."""
    left, right = socket.socketpair()
    left.sendall(junk)
    left.close()
    with pytest.raises(ChannelClosedError):
        receive(right)
    right.close()


def test_sending_to_a_dead_end_says_so() -> None:
    """HLD-7: a front whose gate died is told at its next word."""
    left, right = socket.socketpair()
    right.close()
    with pytest.raises(ChannelClosedError):
        send(left, "x")
    left.close()
