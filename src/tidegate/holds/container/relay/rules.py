"""Who makes the rules that capture a worker's connections, and is gone before the worker is there (HLD-6, HLD-7).

    python3 /relay rules PORT     in the network of a relay, with CAP_NET_ADMIN: makes addresses, routes, the table and
                                  the sockets, hands the sockets to the relay, and ends with 0
    python3 /relay prove WORD TARGETS    in the relay's container: knocks at canaries, and tries that all is captured

Both meet at an abstract unix socket, which only what is in that network can reach: the relay, which has no right, and
who makes the rules, which has no folder. The relay lets one in, once, before it lets its owner know that it is there;
so no worker was ever in the same network as that socket. What makes the rules runs the same code as every hold that
captures (holds/capture.py); sockets are all that outlives it, and a table that nobody without the right can change.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time

from tidegate.holds.container.relay.words import PATIENCE, RULES, say

PLACE = b"\0tidegate-rules"
DONE = b"+"
_TOGETHER = 16  # sockets that come in one message
_ROLES = 1024  # bytes that name them


def lay(port: int) -> int:
    """Make the rules and hand the sockets over; the exit status."""
    from tidegate.holds import capture, network

    signal.signal(signal.SIGALRM, lambda *_: os._exit(1))  # the first process of a container has to say that it may
    signal.alarm(int(PATIENCE))
    try:
        network.raise_loopback()
        made = capture.capture("on", port)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as wire:
            _connect(wire)
            words = " ".join(role for role, _ in made).encode("ascii")
            socket.send_fds(wire, [words], [fd for _, fd in made])
            taken = wire.recv(1) == DONE
    except OSError as error:
        say(f"tidegate-relay 1 {error.filename or 'the sockets'}: {error.strerror or error}")
        return 1
    if not taken:
        say("tidegate-relay 1 the relay did not take the sockets")
    return 0 if taken else 1


def _connect(wire: socket.socket) -> None:
    while True:  # the alarm ends it
        try:
            wire.connect(PLACE)
        except ConnectionRefusedError:
            time.sleep(0.02)  # the relay is still starting
        else:
            return


def take() -> list[tuple[str, int]]:
    """Wait for who makes the rules; the sockets that it hands over, with what each is for.

    Raises:
        OSError: when it does not come, or hands over something else.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(PLACE)
        server.listen(1)
        server.settimeout(RULES)
        with server.accept()[0] as wire:
            server.close()
            wire.settimeout(PATIENCE)
            words, fds, _flags, _peer = socket.recv_fds(wire, _ROLES, _TOGETHER)
            roles = words.decode("ascii").split()
            if not fds or len(roles) != len(fds):
                raise OSError(0, "not the sockets that were wanted")
            wire.send(DONE)
    return list(zip(roles, fds))  # noqa: B905 - looked at above; `strict` is newer than some images


def prove(word: str, targets: str) -> int:
    """Try from inside that no canary is reached and all is captured; the exit status."""
    from tidegate.holds import capture_proof, selftest
    from tidegate.model.errors import StartError

    try:
        places = [(family, kind, tuple(address)) for family, kind, address in json.loads(targets)]
        selftest.check_canaries(places, word.encode("ascii"), captured=True, apart=False)
        capture_proof.check_capture()
    except (StartError, OSError) as error:
        say(f"tidegate-relay 1 {getattr(error, 'what', error)}")
        return 0
    say("tidegate-relay 1 proven")
    return 0
