"""What a user of its own could reach on the network that it shares with this machine, or leave behind (`uid`)."""

from __future__ import annotations

import os
import pwd
import socket
import struct

from tidegate.doctor.escapes.table import HELD, UID, escape, neighbour
from tidegate.doctor.escapes.tools import nested, tcp, unshare, word, wrong

_SO_MARK = 36


@escape("ECONNREFUSED", holds=(UID,))
def the_gate_of_another_user() -> None:
    """What another task's gate listens on, which is in the table for that task's uid (B84)."""
    tcp(socket.AF_INET, "127.0.0.1", HELD["tcp4"])


@escape("ECONNREFUSED", holds=(UID,))
def a_service_of_this_machine_directly() -> None:
    """A listener of this machine's loopback, without the proxy (B82)."""
    tcp(socket.AF_INET, "127.0.0.1", HELD["api_tcp4"])


@escape("ECONNREFUSED", holds=(UID,))
def a_service_of_this_machine_from_a_server_port() -> None:
    """The same from a port that the task's own server listened on a moment ago: only beginnings count."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        wire.bind(("127.0.0.1", port))
        wire.settimeout(5)
        wire.connect(("127.0.0.1", HELD["api_tcp4"]))
        wire.sendall(word().encode())


@escape("ECONNREFUSED", holds=(UID,))
def an_abstract_name_of_this_machine() -> None:
    """Abstract unix sockets are of the network that is shared (B85)."""
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect("\0" + HELD["unix_abstract"][1:])
        wire.sendall(word().encode())


@escape("EPERM", holds=(UID,))
def a_mark_of_our_own() -> None:
    """A socket with another task's mark would count as that one's server."""
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, _SO_MARK, 1)


@escape("EPERM", holds=(UID,))
def being_another_user_in_a_namespace() -> None:
    """A namespace inside has this user and no other, so its sockets stay this user's."""
    unshare(0x10000000)
    with open("/proc/self/uid_map", "w", encoding="ascii") as file:
        file.write("0 0 1")


@escape("EPERM", holds=(UID,))
def a_program_with_the_owners_rights() -> None:
    """A set-user-id file in the workspace would be its owner's outside."""
    path = os.path.join(HELD["workspace"], "helper-of-ours")
    with open(path, "w", encoding="ascii"):
        pass
    try:
        os.chmod(path, 0o4755)
    finally:
        os.unlink(path)


@escape("EOPNOTSUPP", holds=(UID,))
def a_program_with_capabilities() -> None:
    """File capabilities, set by the root of a namespace inside, would be kept on the disk."""
    path = os.path.join(HELD["workspace"], "capable")
    with open(path, "w", encoding="ascii"):
        pass
    try:
        nested()
        os.setxattr(path, "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0))
    finally:
        os.unlink(path)


@neighbour(holds=(UID,))
def own_servers_on_the_shared_loopback() -> None:
    """A server of the task's own, by both families, and after it was started again on the same port."""
    port = 0
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.1")):
        with socket.create_server((address, port if family == socket.AF_INET else 0), family=family) as server:
            port = server.getsockname()[1] if family == socket.AF_INET else port
            with socket.create_connection(server.getsockname()[:2], 5) as client, server.accept()[0] as there:
                there.sendall(b"hello")
                if client.recv(9) != b"hello":
                    wrong("nothing came back")


@neighbour(holds=(UID,))
def a_name_and_a_home() -> None:
    """Programs ask for their user's name and home."""
    found = pwd.getpwuid(os.getuid())
    with open(os.path.join(found.pw_dir, "mine"), "w", encoding="ascii") as file:
        file.write(found.pw_name)
