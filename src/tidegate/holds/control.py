"""Messages between the front and init: one packet of ASCII each, descriptors beside it (SCM_RIGHTS).

The words are in hold.py. A packet is whole or it is not there (SOCK_SEQPACKET, unix(7)); end of file means that the
other side is gone, and each side ends at that.
"""

from __future__ import annotations

import _socket
import os
import struct

from tidegate.holds import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_MESSAGE = 4096
MAX_DESCRIPTORS = 253  # SCM_MAX_FD, net/scm.h
_INT = struct.calcsize("i")


def pair() -> tuple[int, int]:
    """Two connected descriptors: one for the front, one for the child."""
    here, there = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC)
    return here.detach(), there.detach()


def send(control: int, message: str, descriptors: Sequence[int] = ()) -> None:
    """Send one message, and copies of the descriptors.

    Raises:
        OSError: where the other side is gone.
    """
    beside = []
    if descriptors:
        rights = struct.pack(f"{len(descriptors)}i", *descriptors)
        beside.append((_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights))
    wire = _socket.socket(fileno=control)
    try:
        wire.sendmsg([message.encode("ascii", "replace")[:MAX_MESSAGE]], beside, _socket.MSG_NOSIGNAL)
    finally:
        wire.detach()


def receive(control: int) -> tuple[str, list[int]] | None:
    """The next message and its descriptors, which are the caller's to close. None: the other side is gone."""
    wire = _socket.socket(fileno=control)
    room = _socket.CMSG_SPACE(MAX_DESCRIPTORS * _INT)
    try:
        try:
            data, beside, _flags, _from = wire.recvmsg(MAX_MESSAGE, room, _socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            # It ended without reading what we said. The kernel tells that once, and before what it said itself.
            data, beside, _flags, _from = wire.recvmsg(MAX_MESSAGE, room, _socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return None
    finally:
        wire.detach()
    descriptors: list[int] = []
    for level, kind, rights in beside:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            descriptors += struct.unpack(f"{len(rights) // _INT}i", rights)
    if not data:
        return None
    return data.decode("ascii", "replace"), descriptors


def send_failed(control: int, stage: str, error: BaseException) -> None:
    """Say that a step failed: `failed STAGE ERRNO TEXT`. Silent where nobody listens any more."""
    number = getattr(error, "errno", None) or 0
    text = getattr(error, "filename", None) or str(error)
    try:
        send(control, f"failed {stage} {number} {text}".replace("\n", " "))
    except OSError:
        return  # nobody listens any more


def parse_failed(message: str) -> tuple[str, int, str]:
    """The stage, errno and text of a `failed` message."""
    _word, _, rest = message.partition(" ")
    stage, _, rest = rest.partition(" ")
    number, _, text = rest.partition(" ")
    return stage, int(number) if number.isdigit() else 0, text


def close_all_but(kept: Sequence[int]) -> None:
    """Close every descriptor above 2 but these, by close_range(2)."""
    low = 3
    for descriptor in sorted(set(kept)):
        if descriptor > low:
            linux.call("close_range", low, descriptor - 1, 0)
        low = max(low, descriptor + 1)
    linux.call("close_range", low, 0xFFFFFFFF, 0)


def orders(wire: int) -> tuple[str, int, list[int]]:
    """Wait for the front's word with what is answered at, and the descriptors behind it; end where it is gone."""
    received = receive(wire)
    if received is None or not received[1]:
        os._exit(0)
    os.close(wire)
    message, (listener, *own) = received
    return message, listener, own
