"""Frames between the front and its gate: four bytes of length, then plain data.

To a gate's process that is marshalled: both ends are ours and forked from one another, which is what `marshal` needs;
it is in the interpreter itself and carries 10,000 rules in a few milliseconds. To a server it is JSON, since `marshal`
must never read what another program wrote. A task never holds either end. Descriptors travel beside a frame
(SCM_RIGHTS, unix(7)).
"""

from __future__ import annotations

import marshal
from _socket import CMSG_SPACE, MSG_CMSG_CLOEXEC, SCM_RIGHTS, SOL_SOCKET
from struct import calcsize, pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

NO_ONE, WAIT, ASK = "no", "wait", "ask"
"""Who is asked about a connection (ASK-4): nobody, who watches the server, or who is at the front's terminal."""

LENGTH = 4
_INT = calcsize("i")
_MOST = 253  # SCM_MAX_FD, net/scm.h: what the kernel lets through in one message
MAX_FRAME = 256 * 1024 * 1024  # 8 MiB of policy text is at most a tenth of this once it is rules


class ChannelClosedError(Exception):
    """The other end is gone."""


def frame(value: Any, dumps: Callable[[Any], bytes] = marshal.dumps) -> bytes:
    """Return one value as a frame."""
    body = dumps(value)
    return len(body).to_bytes(LENGTH, "big") + body


def descriptors_of(ancillary: Iterable[tuple[int, int, bytes]]) -> list[int]:
    """Return the descriptors that came beside some bytes."""
    found: list[int] = []
    for level, kind, payload in ancillary:
        if level == SOL_SOCKET and kind == SCM_RIGHTS:
            found += unpack(f"{len(payload) // _INT}i", payload[: len(payload) // _INT * _INT])
    return found


def send(channel: socket, value: Any, fds: Sequence[int] = (), dumps: Callable[[Any], bytes] = marshal.dumps) -> None:
    """Send one value, and copies of these descriptors beside it.

    Raises:
        ChannelClosedError: when the other end is gone.
    """
    data = frame(value, dumps)
    try:
        if fds:
            sent = channel.sendmsg([data], [(SOL_SOCKET, SCM_RIGHTS, pack(f"{len(fds)}i", *fds))])
            data = data[sent:]
        channel.sendall(data)
    except OSError as error:
        raise ChannelClosedError(str(error)) from None


def receive(channel: socket) -> tuple[Any, tuple[int, ...]]:
    """Return the next value and the descriptors that came beside it.

    Raises:
        ChannelClosedError: when the other end is gone, or speaks something else.
    """
    fds: tuple[int, ...] = ()
    try:
        head, ancillary, _flags, _address = channel.recvmsg(LENGTH, CMSG_SPACE(_MOST * _INT), MSG_CMSG_CLOEXEC)
        fds = tuple(descriptors_of(ancillary))
        if not head:
            raise ChannelClosedError("end of file")
        head += _exactly(channel, LENGTH - len(head))
        length = int.from_bytes(head, "big")
        if length > MAX_FRAME:
            raise ChannelClosedError("a frame is too large")
        return marshal.loads(_exactly(channel, length)), fds  # noqa: S302  both ends are ours, see the head comment
    except (OSError, ValueError, EOFError, TypeError) as error:
        raise ChannelClosedError(str(error)) from None


def _exactly(channel: socket, count: int) -> bytes:
    parts = []
    while count:
        part = channel.recv(min(count, 1 << 20))
        if not part:
            raise ChannelClosedError("end of file in the middle of a frame")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
