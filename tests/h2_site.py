"""An HTTP/2 server for the tests of inspection: TLS with ALPN h2, one thread a connection, the h2 library inside.

    with H2Site(listener, context) as site:  # `context` may be changed for the next connection
        site.answers["/big"] = ([(":status", "200")], bytes(1_000_000), [("grpc-status", "0")])
        ... site.requests, site.connections, site.open

A path that is not in the table is answered with what was asked: its headers and body as text. Whoever asks may take it
back, or leave, in the same bytes: h2 has read all of them before the first is looked at here.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Self

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset, WindowUpdated
from h2.exceptions import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

Fields = list[tuple[str, str]]


class H2Site:
    """Serves until it is left."""

    def __init__(self, listener: socket.socket, context: ssl.SSLContext) -> None:
        context.set_alpn_protocols(["h2"])
        self._listener = listener
        self.context = context
        self.answers: dict[str, tuple[Fields, bytes, Fields]] = {}
        self.requests: list[Fields] = []
        self.bodies: list[bytes] = []
        self.resets: list[int] = []
        self.connections = 0
        self.open = 0
        self._lock = threading.Lock()
        self.silent = False  # it answers nothing
        self.leaves = False  # it closes as soon as it has answered
        self.extra: Callable[[H2Connection, int], None] | None = None

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                sock = self._listener.accept()[0]
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self.open += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            self._talk(sock)
        finally:
            sock.close()
            with self._lock:
                self.open -= 1

    def _talk(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, ssl.SSLError), self.context.wrap_socket(sock, server_side=True) as inner:
            conn = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
            conn.initiate_connection()
            conn.increment_flow_control_window(1 << 20)
            inner.sendall(conn.data_to_send())
            asked: dict[int, tuple[Fields, bytearray]] = {}
            waiting: dict[int, tuple[bytes, Fields]] = {}
            while data := inner.recv(65536):
                for event in conn.receive_data(data):
                    if isinstance(event, RequestReceived):
                        fields = [(str(name), str(value)) for name, value in event.headers]
                        asked[event.stream_id] = fields, bytearray()
                        self.requests.append(fields)
                    elif isinstance(event, DataReceived):
                        asked[event.stream_id][1].extend(event.data)
                        conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    elif isinstance(event, StreamEnded):
                        self._answer(conn, event.stream_id, *asked.pop(event.stream_id), waiting)
                    elif isinstance(event, StreamReset):
                        self.resets.append(event.stream_id)
                        waiting.pop(event.stream_id, None)
                    elif isinstance(event, WindowUpdated):
                        for number in list(waiting):
                            self._go_on(conn, number, waiting)
                inner.sendall(conn.data_to_send())
                if self.leaves and self.bodies and not waiting:
                    inner.shutdown(socket.SHUT_WR)
                    while inner.recv(65536):  # what is left unread would make a reset of the end, and cut the answer
                        pass
                    return

    def _answer(
        self, conn: H2Connection, number: int, fields: Fields, body: bytearray, waiting: dict[int, tuple[bytes, Fields]]
    ) -> None:
        self.bodies.append(bytes(body))
        if self.silent:
            return
        path = dict(fields)[":path"]
        text = "".join(f"{name}: {value}\n" for name, value in fields).encode() + bytes(body)
        headers, answer, trailers = self.answers.get(path, ([(":status", "200")], text, []))
        try:
            conn.send_headers(number, headers)
        except ProtocolError:
            return
        waiting[number] = answer, trailers
        self._go_on(conn, number, waiting)
        if self.extra is not None:
            self.extra(conn, number)

    def _go_on(self, conn: H2Connection, number: int, waiting: dict[int, tuple[bytes, Fields]]) -> None:
        try:
            self._send(conn, number, waiting)
        except ProtocolError:
            waiting.pop(number, None)

    @staticmethod
    def _send(conn: H2Connection, number: int, waiting: dict[int, tuple[bytes, Fields]]) -> None:
        data, trailers = waiting[number]
        while data:
            room = min(conn.local_flow_control_window(number), conn.max_outbound_frame_size)
            if room <= 0:
                break
            conn.send_data(number, data[:room])
            data = data[room:]
        waiting[number] = data, trailers
        if not data:
            del waiting[number]
            if trailers:
                conn.send_headers(number, trailers, end_stream=True)
            else:
                conn.end_stream(number)
