"""The fence is tried before the task's first instruction, from inside and as confined as the task will be (HLD-11).

Each probe does what a task would do to get around the gate. Two things judge it: here, that the attempt failed at once
and that a never-allowed name comes back from the gate with 403; and in the front, that no canary heard the word
(canaries.py). One probe that does not fail as it must and the task does not start.

Knocking sends one short word to this machine's own addresses, nothing further. It takes about a millisecond.
"""

from __future__ import annotations

import _socket
import errno
import os

from tidegate.holds.seccomp import LANDLOCK, NETNS, OPEN
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

GATE_PATIENCE = 10.0  # seconds; the gate may still be starting
KNOCK_PATIENCE = 1.0  # seconds; behind the fence each try fails at once
NEVER_ALLOWED = b"metadata.google.internal:80"  # ADR-1: no policy lets it through
MARK = b"tidegate-selftest"
_REFUSED = (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.EPERM, errno.EACCES, errno.ESOCKTNOSUPPORT)
_LARGEST_ANSWER = 4096

FORBIDDEN_SOCKETS: tuple[tuple[str, int, int, int], ...] = (
    ("a vsock socket", 40, _socket.SOCK_STREAM, 0),
    ("a packet socket", 17, _socket.SOCK_RAW, 0x0300),  # ETH_P_ALL in network order
    ("a raw IPv4 socket", _socket.AF_INET, _socket.SOCK_RAW, 1),
    ("a raw IPv6 socket", _socket.AF_INET6, _socket.SOCK_RAW, 58),
    ("an MPTCP socket", _socket.AF_INET, _socket.SOCK_STREAM, 262),
    ("an SCTP socket", _socket.AF_INET, _socket.SOCK_STREAM, 132),
)


def check_confinement(status: str, *, bounding: bool = True) -> None:
    """Read from /proc/self/status that nothing is left: no capability, no_new_privs, a filter.

    `bounding` says that this user could empty the bounding set, which gives nothing where no_new_privs is set.

    Raises:
        StartError: where something is.
    """
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        if int(fields[name], 16) and (bounding or name != "CapBnd"):
            leak(f"the task would keep capabilities ({name} {fields[name].strip()})")
    if fields["NoNewPrivs"].strip() != "1":
        leak("no_new_privs is not set")
    if fields["Seccomp"].strip() != "2":
        leak("the seccomp filter is not there")


def check_sockets(kind: str) -> None:
    """Try to make sockets that could lead around the gate.

    Raises:
        StartError: where one can be made.
    """
    if kind == OPEN:
        return
    wanted = list(FORBIDDEN_SOCKETS)
    if kind == LANDLOCK:
        wanted.append(("a datagram socket", _socket.AF_INET, _socket.SOCK_DGRAM, 0))
    elif kind != NETNS:
        wanted += [
            ("an IPv4 socket", _socket.AF_INET, _socket.SOCK_STREAM, 0),
            ("an IPv6 socket", _socket.AF_INET6, _socket.SOCK_DGRAM, 0),
        ]
    for name, family, type_, protocol in wanted:
        try:
            _socket.socket(family, type_ | _socket.SOCK_CLOEXEC, protocol).close()
        except OSError as error:
            if error.errno in _REFUSED:
                continue
            raise
        leak(f"{name} can be made inside")


def check_watcher(address: bytes | str = b"") -> None:
    """Connect to a socket of our own at this address: somebody answers for such calls. A path is removed afterwards.

    Raises:
        StartError: where nobody does; without an answer no task could connect to anything.
    """
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    client = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    try:
        server.bind(address)
        server.listen(1)
        client.connect(server.getsockname())
    except OSError as error:
        raise StartError(
            f"nobody answers for the unix sockets of the task ({error.strerror})",
            fix="start it again; this hold needs Linux 5.9",
            code="watcher",
        ) from error
    finally:
        if isinstance(address, str) and os.path.lexists(address):
            os.unlink(address)
        server.close()
        client.close()


def knock(
    targets: Iterable[tuple[int, int, object]], word: bytes, *, captured: bool = False, apart: bool = True
) -> list[str]:
    """Try to reach every canary and say the word. Which ones answered: a connection that is made is seen here, too.

    `apart` says that the task has folders of its own, in which nothing of the machine's is in sight. Where connections
    are `captured`, one can be made, and must be ended by the gate: a canary never ends one. Whether
    a datagram arrived is for the front to see.
    """
    reached = []
    said = []  # all knock before one is waited for: the gate takes them together
    for family, kind, address in targets:
        if apart and family == _socket.AF_UNIX and isinstance(address, str) and os.path.lexists(address):
            reached.append(f"{address!r}")  # the watcher would refuse it, but it must not even be in sight
        try:
            wire = _socket.socket(family, kind | _socket.SOCK_CLOEXEC)
        except OSError:
            continue
        wire.settimeout(KNOCK_PATIENCE)
        try:
            wire.connect(address)  # type: ignore[arg-type]
            wire.send(word)
        except OSError:
            wire.close()
            continue
        said.append((wire, kind, f"{address!r}"))
    for wire, kind, name in said:
        try:
            ended = kind == _socket.SOCK_DGRAM or (captured and _ended(wire))
        except OSError:
            continue
        finally:
            wire.close()
        if not ended and name not in reached:
            reached.append(name)
    return reached


def _ended(wire: _socket.socket) -> bool:
    """Whether the other side ends this connection; it may still be starting."""
    wire.settimeout(GATE_PATIENCE)
    try:
        while wire.recv(_LARGEST_ANSWER):
            pass
    except TimeoutError:
        return False
    return True


def check_canaries(
    targets: Iterable[tuple[int, int, object]], word: bytes, *, captured: bool = False, apart: bool = True
) -> None:
    """Knock at every canary.

    Raises:
        StartError: where one could be reached.
    """
    reached = knock(targets, word, captured=captured, apart=apart)
    if reached:
        leak(f"a probe from inside reached {', '.join(reached)} of this machine")


def ask_gate(port: int) -> None:
    """A never-allowed name through the gate must come back refused, by the gate, before anything else.

    Raises:
        StartError: where the answer is not 403, or there is none in time.
    """
    wire = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    wire.settimeout(GATE_PATIENCE)
    try:
        wire.connect(("127.0.0.1", port))
        wire.sendall(
            b"CONNECT %b HTTP/1.1\r\nHost: %b\r\nUser-Agent: %b\r\n\r\n" % (NEVER_ALLOWED, NEVER_ALLOWED, MARK)
        )
        answer = b""
        while b"\r\n" not in answer and len(answer) < _LARGEST_ANSWER:
            part = wire.recv(_LARGEST_ANSWER)
            if not part:
                break
            answer += part
    except OSError as error:
        raise gate_silent(error) from error
    finally:
        wire.close()
    fields = answer.split(b"\r\n", 1)[0].split(b" ", 2)
    if len(fields) < 2 or not fields[0].startswith(b"HTTP/1.") or fields[1] != b"403":
        leak(f"the gate did not refuse a never-allowed name (it said {answer[:60]!r})")


def gate_silent(error: OSError) -> StartError:
    """The gate does not answer."""
    return StartError(
        f"the gate does not answer inside the hold ({error.strerror or error})",
        fix="start it again; if it stays so, this is a bug of tidegate",
        code="gate-silent",
    )


def leak(what: str) -> NoReturn:
    """Stop the start.

    Raises:
        StartError: always.
    """
    raise StartError(
        f"the self-test of the hold failed: {what}",
        fix="the task was not started; report it, it is a bug of tidegate or of the kernel",
        code="self-test",
    )
