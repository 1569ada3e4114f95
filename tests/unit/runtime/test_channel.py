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
    send(left, ("sockets", ("proxy", "streams")), (write, read))
    assert receive(right) == ({"a": (1, "x")}, ())
    value, (fd, other) = receive(right)
    assert value == ("sockets", ("proxy", "streams"))
    assert not os.get_inheritable(fd)
    os.write(fd, b"through")
    assert os.read(other, 10) == b"through"
    for one in (read, write, fd, other):
        os.close(one)
    left.close()
    right.close()


def test_as_many_descriptors_as_ports_can_need_arrive() -> None:
    """HLD-6: 253 descriptors beside one frame, the kernel's bound, arrive all of them."""
    left, right = socket.socketpair()
    send(left, "many", (left.fileno(),) * 253)
    value, fds = receive(right)
    assert (value, len(set(fds))) == ("many", 253)
    for fd in fds:
        os.close(fd)
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
