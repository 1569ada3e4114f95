"""Run inside a task as ssh's ProxyCommand: `python connect.py HOST PORT` opens a tunnel through the gate.

What `nc -X connect` does where netcat is there. A refusal is printed: the line that the gate answers with.
"""

from __future__ import annotations

import os
import socket
import sys
import threading


def main(host: str, port: str) -> None:
    """Carry standard input and output through a CONNECT."""
    sock = socket.create_connection(("127.0.0.1", 3128))
    sock.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += sock.recv(1) or sys.exit("the gate closed")
    if not head.startswith(b"HTTP/1.1 200"):
        sys.exit(sock.makefile().readline().strip())

    def inward() -> None:
        while data := sock.recv(65536):
            os.write(1, data)
        os._exit(0)

    threading.Thread(target=inward, daemon=True).start()
    while data := os.read(0, 65536):
        sock.sendall(data)
    sock.shutdown(socket.SHUT_WR)
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
