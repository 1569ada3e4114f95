"""That the kernel says whose a connection is, tried with one of our own (GAT-2). For root, whose tasks need it."""

from __future__ import annotations

import os
import socket

from tidegate.doctor.check import OK, WARN, Check
from tidegate.gate.identity import Peers, UnknownPeerError

_NAME = "connection owners"
_FIX = "modprobe -a inet_diag tcp_diag nf_conntrack_netlink; until then --hold netns, which need not know"


def check_owners() -> list[Check]:
    """Return the row, none for an ordinary user."""
    if os.geteuid() != 0:
        return []
    try:
        uid = _ask()
    except (OSError, UnknownPeerError) as error:
        return [Check(_NAME, WARN, f"the kernel does not say whose a connection is: {error}", _FIX)]
    if uid != os.geteuid():
        return [Check(_NAME, WARN, f"the kernel says that our own connection is of uid {uid}", _FIX)]
    return [Check(_NAME, OK)]


def _ask() -> int:
    peers = Peers()
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname(), 5):
            sock, peer = listener.accept()
            with sock:
                return peers.owner(sock, peer).uid
    finally:
        peers.close()
