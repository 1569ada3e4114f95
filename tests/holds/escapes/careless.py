"""A proxy as one would write it in an afternoon: it believes every word and asks nobody. It stands where the gate does.

Whatever host is asked for, it passes the bytes on to the allowed origin of the small internet, which hears them.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from typing import TYPE_CHECKING

from tidegate.doctor.escapes.lab import GOOD
from tidegate.runtime.channel import ChannelClosedError, receive, send

if TYPE_CHECKING:
    from typing import NoReturn


def gate_main(channel: socket.socket, _open: int) -> NoReturn:
    """Speak with the front as the gate does (runtime/gate_process.py)."""
    try:
        receive(channel)
        send(channel, ("ready",))
        message, descriptors = receive(channel)
        for role, descriptor in zip(message[1], descriptors, strict=True):
            if role in ("proxy", "redirected"):
                threading.Thread(target=serve, args=(socket.socket(fileno=descriptor),), daemon=True).start()
        send(channel, ("serving",))
        while receive(channel)[0][0] != "finish":
            pass
        send(channel, ("summary", [], 0))
    except ChannelClosedError:
        pass
    finally:
        os._exit(0)


def serve(listener: socket.socket) -> None:
    """Take every connection."""
    while True:
        threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()


def talk(client: socket.socket) -> None:
    """Say yes, and pass on."""
    data = client.recv(65536)
    if data[:1] == b"\5":
        client.sendall(b"\5\0")
        client.recv(65536)
        client.sendall(b"\5\0\0\1" + bytes(6))
        data = b""
    elif data.startswith(b"CONNECT "):
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        data = b""
    with client, socket.create_connection((GOOD, 80)) as server:
        if data:
            server.sendall(data if data.endswith(b"\r\n\r\n") else data + b"\r\n\r\n")
        while True:
            for wire in select.select([client, server], [], [])[0]:
                part = wire.recv(65536)
                if not part:
                    return
                (server if wire is client else client).sendall(part)
