"""What capture adds to the self-test (HLD-6, HLD-11): what a task does around the proxy arrives at the gate, or fails.

Nobody but the gate can answer the probes: a connection to an address that no name has, and to one that no policy lets
through, is refused by it in words; a name that no policy lets through does not exist; a datagram comes back. Run after
the canaries' turn, so that what the kernel had to tell the gate about those is read before the task begins.

None of these addresses is outside this machine: the gate refuses them before it looks for a way.
"""

from __future__ import annotations

import _socket
from _socket import AF_INET, AF_INET6, SOCK_CLOEXEC, SOCK_DGRAM, SOCK_STREAM

from tidegate.holds import inside
from tidegate.holds.selftest import GATE_PATIENCE, KNOCK_PATIENCE, MARK, gate_silent, leak

NEVER_ISSUED = "198.19.255.254"  # the last address that a name could have
NEVER_ALLOWED = "fd00:ec2::254"  # metadata of a large cloud (ADR-1)
ELSEWHERE = "192.0.2.1"  # RFC 5737
DISCARD = 9
_NAME = b"\x08metadata\x06google\x08internal\0"
_QUESTIONS = (1, 28)  # A and AAAA, as one look-up of a C library
_NO_SUCH_NAME = 3
_LARGEST = 4096


def check_capture() -> None:
    """Try all of it.

    Raises:
        StartError: where something is not as it must be.
    """
    check_datagram()
    check_connection(AF_INET, NEVER_ISSUED)
    check_connection(AF_INET6, NEVER_ALLOWED)
    check_resolver(inside.GATE4)


def check_datagram(address: str = ELSEWHERE, port: int = DISCARD) -> None:
    """A datagram fails at once: while it is sent, or as on a closed port."""
    wire = _socket.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC)
    wire.settimeout(KNOCK_PATIENCE)
    try:
        wire.connect((address, port))
        wire.send(MARK)
        wire.recv(1)
    except TimeoutError:
        leak("a datagram to an address outside was swallowed and not refused")
    except OSError:
        return
    finally:
        wire.close()
    leak("a datagram to an address outside was answered")


def check_connection(family: int, address: str, port: int = 80) -> None:
    """A connection arrives at the gate, which refuses it in HTTP. Without IPv6 there is none to make."""
    try:
        wire = _socket.socket(family, SOCK_STREAM | SOCK_CLOEXEC)
    except OSError:
        return
    wire.settimeout(GATE_PATIENCE)
    try:
        try:
            wire.connect((address, port))
        except OSError as error:
            if family == AF_INET6:
                return  # no route: IPv6 is switched off, and nothing goes anywhere by it
            leak(f"a connection to an address outside is not captured ({error.strerror or error})")
        wire.sendall(b"GET / HTTP/1.1\r\nHost: %b\r\nUser-Agent: %b\r\n\r\n" % (_bracketed(address), MARK))
        answer = wire.recv(_LARGEST)
    except OSError as error:
        raise gate_silent(error) from error
    finally:
        wire.close()
    if answer.split(b" ", 2)[1:2] != [b"403"]:
        leak(f"the gate did not refuse a connection that it captured (it said {answer[:60]!r})")


def check_resolver(address: str) -> None:
    """A name that no policy lets through does not exist, and is not waited for."""
    wire = _socket.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC)
    wire.settimeout(GATE_PATIENCE)
    try:
        wire.connect((address, inside.DNS))
        for kind in _QUESTIONS:
            # RFC 1035 section 4.1: id, recursion desired, one question of class IN
            wire.send(bytes((0, kind, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)) + _NAME + bytes((0, kind, 0, 1)))
            answer = wire.recv(_LARGEST)
            if len(answer) < 12 or answer[:2] != bytes((0, kind)) or answer[3] & 15 != _NO_SUCH_NAME:
                leak(f"the resolver did not deny a never-allowed name (it said {answer[:12].hex()})")
    except OSError as error:
        raise gate_silent(error) from error
    finally:
        wire.close()


def _bracketed(address: str) -> bytes:
    return (f"[{address}]" if ":" in address else address).encode()
