"""A front whose engine has another network than the trial: `python carried.py ORDER`.

The carrier of transport `vm` is then on this machine's network as that engine sees it, where the listener is not. As in
Docker Desktop something of the machine's leads there: each connection to the listener's port in the engine's network is
passed on to the trial's own. Nothing else of the hold is touched, and the self-test runs.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from typing import Any

HERE = "127.0.0.1"


def listener_in(network: str, port: int) -> socket.socket:
    """A listening socket in another network namespace; a socket stays in the one that it was made in."""
    from tidegate.holds import linux

    own, other = (os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in ("/proc/self/ns/net", network))
    linux.call("setns", other, linux.CLONE_NEWNET)
    try:
        return socket.create_server((HERE, port))
    finally:
        linux.call("setns", own, linux.CLONE_NEWNET)
        os.close(own)
        os.close(other)


def pass_on(listener: socket.socket, port: int) -> None:
    """Lead whoever comes to that port of our own network."""
    while True:
        near = listener.accept()[0]
        far = socket.create_connection((HERE, port))
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=move, args=(source, sink), daemon=True).start()


def move(source: socket.socket, sink: socket.socket) -> None:
    """Pass one direction on, and its end."""
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for one in (source, sink):
            one.close()


def lead(network: str, port: int) -> None:
    """Have a child do that for as long as we live."""
    from tidegate.holds import capabilities, control

    listener = listener_in(network, port)
    if os.fork() == 0:
        try:
            capabilities.die_with_parent()
            control.close_all_but((listener.fileno(),))
            pass_on(listener, port)
        finally:
            os._exit(1)
    listener.close()


def main() -> None:
    """Hold the table, with that way to the listener."""
    order = json.loads(sys.argv[1])
    sys.path[:] = order["path"]
    from tidegate.doctor.escapes.held import main as hold
    from tidegate.holds.container import door_link

    register = door_link.register
    engine = os.path.dirname(os.environ["DOCKER_HOST"].removeprefix("unix://"))
    with open(os.path.join(engine, "pid"), encoding="ascii") as file:
        network = f"/proc/{int(file.read())}/ns/net"

    def registered(*words: Any, **more: Any) -> Any:
        route = register(*words, **more)
        lead(network, route.port)
        return route

    door_link.register = registered
    hold(order)


if __name__ == "__main__":
    main()
