"""The lab's origins: small servers of one habit each, one thread a connection.

KINDS is the list; a kind is a function that is handed one connection. Every origin counts its connections and
requests and keeps what it received (the first MiB of it), so a test can say what did *not* arrive.
What it does not do: speak HTTP/2, or check what it is sent; strictness is the gate's business.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_KEEP = 1 << 20


class Connection:
    """One accepted connection with a read buffer; what is read is written to the origin's record."""

    def __init__(self, sock: socket.socket, origin: Origin) -> None:
        self.sock = sock
        self.origin = origin
        self.options = origin.options
        self.buffer = b""

    def recv(self) -> bytes:
        """Return what is there, b"" at end of file."""
        data = self.buffer or self.sock.recv(65536)
        if self.buffer:
            self.buffer = b""
        else:
            self.origin.note(data)
        return data

    def until(self, mark: bytes) -> bytes:
        """Read up to and with a mark; b"" where the end of file comes first."""
        while mark not in self.buffer:
            data = self.sock.recv(65536)
            if not data:
                return b""
            self.origin.note(data)
            self.buffer += data
        at = self.buffer.index(mark) + len(mark)
        found, self.buffer = self.buffer[:at], self.buffer[at:]
        return found

    def exactly(self, size: int) -> bytes:
        """Read so many bytes; fewer where the end of file comes first."""
        parts, left = [], size
        while left:
            data = self.recv()
            if not data:
                break
            parts.append(data[:left])
            self.buffer = data[left:]
            left -= len(parts[-1])
        return b"".join(parts)

    def head(self) -> bytes:
        """Read a request head; b"" at end of file."""
        head = self.until(b"\r\n\r\n")
        if head:
            self.origin.requests += 1
            self.origin.heads.append(head)
        return head

    def body(self, head: bytes) -> bytes:
        """Read the body that belongs to a head, as raw bytes."""
        if header(head, b"transfer-encoding").lower() == b"chunked":
            raw = b""
            while True:
                line = self.until(b"\r\n")
                size = int(line.split(b";")[0] or b"0", 16)
                raw += line
                if size == 0:
                    break
                raw += self.exactly(size + 2)
            while (line := self.until(b"\r\n")) not in (b"\r\n", b""):
                raw += line
            return raw + line
        return self.exactly(int(header(head, b"content-length") or b"0"))

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self.sock.sendall(data)

    def shut(self) -> None:
        """Say that no more will be sent."""
        if isinstance(self.sock, ssl.SSLSocket):
            with contextlib.suppress(OSError, ValueError):
                self.sock.unwrap()
        else:
            self.sock.shutdown(socket.SHUT_WR)

    def drain(self) -> None:
        """Read and record until end of file, so that what was sent is not taken back by a reset.

        TLS that has said its end reads no more; what still comes is then taken as it is, and not recorded.
        """
        try:
            while self.recv():
                pass
        except ssl.SSLError:
            while socket.socket.recv(self.sock, 65536):
                pass

    def reset(self) -> None:
        """Close with RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


def header(head: bytes, name: bytes) -> bytes:
    """Return the first value of a header, b"" where it is absent."""
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip()
    return b""


def reply(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    """Return a response with a length."""
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def _exchange(conn: Connection, make: Callable[[bytes, bytes], bytes]) -> None:
    """Answer requests on one connection until either side ends it."""
    while head := conn.head():
        body = conn.body(head)
        if conn.options.get("delay"):
            time.sleep(conn.options["delay"])
        answer = make(head, body)
        conn.send(answer.split(b"\r\n\r\n")[0] + b"\r\n\r\n" if head.startswith(b"HEAD ") else answer)
        if header(head, b"connection").lower() == b"close" or b" HTTP/1.0\r\n" in head or conn.options.get("close"):
            break
    conn.shut()
    conn.drain()


def http(conn: Connection) -> None:
    """200 with a fixed body. Options: status, headers, body, delay (s), close."""
    options = conn.options
    body = options.get("body", f"hello from {conn.origin.name}\n").encode("latin-1")
    answer = reply(body, options.get("status", "200 OK"), "".join(f"{line}\r\n" for line in options.get("headers", [])))
    _exchange(conn, lambda _head, _body: answer)


def echo(conn: Connection) -> None:
    """The body of the answer is the request, byte for byte (head and raw body)."""
    _exchange(conn, lambda head, body: reply(head + body))


def coded(conn: Connection) -> None:
    """The request, echoed with `codings` on it (default gzip).

    Options: codings, said (what Content-Encoding says of it), headers, framing (length, chunked or close), size (of
    the chunks, default 100), part (how much of the coded body is sent, default all).
    """
    from tests.coded import coded as put_on

    options = conn.options
    codings = options.get("codings", ["gzip"])

    def make(head: bytes, body: bytes) -> bytes:
        text = put_on(options.get("before", "").encode() + head + body, *codings)
        text = text[: options.get("part", len(text))]
        said = options.get("said", ", ".join(codings)).replace("raw-", "")
        lines = "".join(f"{line}\r\n" for line in (f"Content-Encoding: {said}", *options.get("headers", [])))
        if options.get("framing", "length") == "length":
            return reply(text, options.get("status", "200 OK"), lines)
        if options["framing"] == "close":
            return f"HTTP/1.1 200 OK\r\nConnection: close\r\n{lines}\r\n".encode() + text
        size = options.get("size", 100)
        chunks = [text[at : at + size] for at in range(0, len(text), size)]
        packed = b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in chunks) + b"0\r\n\r\n"
        return f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{lines}\r\n".encode() + packed

    if options.get("framing") == "close":
        options["close"] = True
    _exchange(conn, make)


def counting(conn: Connection) -> None:
    """The body of the answer is how many requests this origin has had."""
    _exchange(conn, lambda _head, _body: reply(str(conn.origin.requests).encode()))


def sink(conn: Connection) -> None:
    """Reads the body and answers with its raw size."""
    _exchange(conn, lambda _head, body: reply(str(len(body)).encode()))


def download(conn: Connection) -> None:
    """Answers with `size` zero bytes (default 1 MiB)."""
    _exchange(conn, lambda _head, _body: reply(bytes(conn.options.get("size", 1 << 20))))


def slow(conn: Connection) -> None:
    """A body of `size` bytes (default 5), one byte every `interval` seconds (default 0.1)."""
    if head := conn.head():
        conn.body(head)
        size = conn.options.get("size", 5)
        conn.send(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
        for _ in range(size):
            time.sleep(conn.options.get("interval", 0.1))
            conn.send(b"x")
    conn.shut()
    conn.drain()


def stream(conn: Connection) -> None:
    """Server-sent events in chunks: `count` of them (default 3), one every `interval` seconds, then a trailer."""
    if conn.head():
        conn.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n"
        )
        for number in range(conn.options.get("count", 3)):
            event = f"data: {number}\n\n".encode()
            conn.send(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            time.sleep(conn.options.get("interval", 0.1))
        conn.send(b"0\r\nX-End: yes\r\n\r\n")
    conn.drain()


def early(conn: Connection) -> None:
    """Answers 413 as soon as it has the head and reads no body; says that it closes, then drains."""
    if conn.head():
        conn.send(reply(b"too much\n", "413 Content Too Large", "Connection: close\r\n"))
    conn.shut()
    conn.drain()


def expect(conn: Connection) -> None:
    """Sends 100 Continue after the head, reads the body, answers with its raw size."""
    if head := conn.head():
        conn.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        conn.send(reply(str(len(conn.body(head))).encode()))
    conn.shut()
    conn.drain()


def websocket(conn: Connection) -> None:
    """Answers 101, then echoes bytes."""
    if conn.head():
        conn.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        raw(conn)


def raw(conn: Connection) -> None:
    """Echoes bytes until end of file, then ends its own side."""
    while data := conn.recv():
        conn.send(data)
    conn.shut()


def banner(conn: Connection) -> None:
    """Speaks first (`text`, default an SSH greeting), then echoes."""
    conn.send(conn.options.get("text", "SSH-2.0-lab\r\n").encode())
    raw(conn)


def half_close(conn: Connection) -> None:
    """Reads to the end of file, then answers `got N bytes` and closes."""
    size = 0
    while data := conn.recv():
        size += len(data)
    conn.send(f"got {size} bytes\n".encode())
    conn.shut()


def half_close_first(conn: Connection) -> None:
    """Sends `text` (default `bye`), ends its side at once, and still reads to the end of file."""
    conn.send(conn.options.get("text", "bye\n").encode())
    conn.shut()
    conn.drain()


def canary(conn: Connection) -> None:
    """Says nothing and records what comes."""
    conn.drain()


def silent(conn: Connection) -> None:
    """Never reads and never writes; stays open until the origin is closed."""
    conn.origin.closed.wait()


def reset(conn: Connection) -> None:
    """Answers the connection with RST; with `after_head`, once a request head came."""
    if conn.options.get("after_head"):
        conn.head()
    conn.reset()


def script(conn: Connection) -> None:
    """Plays `steps`, one after the other.

    Steps: ["send", text], ["head"], ["until", text], ["read", n], ["sleep", s], ["shut"], ["drain"], ["reset"].
    Texts are latin-1, so any byte can be sent. The connection closes after the last step.
    """
    for name, *args in conn.options["steps"]:
        if name == "send":
            conn.send(args[0].encode("latin-1"))
        elif name == "until":
            conn.until(args[0].encode("latin-1"))
        elif name == "read":
            conn.exactly(args[0])
        elif name == "sleep":
            time.sleep(args[0])
        else:
            getattr(conn, name)()


KINDS: dict[str, Callable[[Connection], None]] = {
    "http": http,
    "echo": echo,
    "coded": coded,
    "counting": counting,
    "sink": sink,
    "download": download,
    "slow": slow,
    "stream": stream,
    "early": early,
    "expect": expect,
    "websocket": websocket,
    "raw": raw,
    "banner": banner,
    "half-close": half_close,
    "half-close-first": half_close_first,
    "canary": canary,
    "silent": silent,
    "reset": reset,
    "script": script,
}


class Origin:
    """A listener that serves one kind, and its record."""

    def __init__(
        self,
        listener: socket.socket,
        handler: Callable[[Connection], None],
        options: dict[str, Any],
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.listener = listener
        self.handler = handler
        self.options = options
        self.context = context
        self.closed = threading.Event()
        self.connections = 0
        self.open: set[socket.socket] = set()
        self.requests = 0
        self.heads: list[bytes] = []
        self.sni: list[str | None] = []
        self.received = bytearray()
        self.received_size = 0
        self._lock = threading.Lock()
        host, port = listener.getsockname()[:2]
        self.port = port
        self.name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if context is not None:
            context.sni_callback = lambda _sock, name, _context: self.sni.append(name)
        target = self._accept if listener.type == socket.SOCK_STREAM else self._datagrams
        threading.Thread(target=target, daemon=True).start()

    def note(self, data: bytes) -> None:
        """Record bytes that came."""
        with self._lock:
            self.received_size += len(data)
            if len(self.received) < _KEEP:
                self.received += data[: _KEEP - len(self.received)]

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self.open.add(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        inner = sock
        try:
            with contextlib.suppress(OSError, ValueError, EOFError):
                # Who closes with bytes unread takes back what waits for others to be acknowledged (tcp(7), Nagle).
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self.context is not None:
                    inner = self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
                    with self._lock:
                        self.open.discard(sock)
                        self.open.add(inner)
                    inner.do_handshake()
                self.handler(Connection(inner, self))
        finally:
            with self._lock:
                self.open.discard(sock)
                self.open.discard(inner)
            inner.close()

    def _datagrams(self) -> None:
        while True:
            try:
                data, _ = self.listener.recvfrom(65536)
            except OSError:
                return
            if self.closed.is_set():
                return
            self.connections += 1
            self.note(data)

    def drop(self, *, with_reset: bool = False) -> None:
        """Cut the open connections; with RST where asked."""
        with self._lock:
            open_now = list(self.open)
        for sock in open_now:
            with contextlib.suppress(OSError):
                if with_reset:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop listening and cut what is open."""
        self.closed.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.drop()

    def stats(self) -> dict[str, Any]:
        """Return the record as JSON can carry it; bytes are latin-1."""
        with self._lock:
            return {
                "connections": self.connections,
                "open": len(self.open),
                "requests": self.requests,
                "heads": [head.decode("latin-1") for head in self.heads],
                "sni": list(self.sni),
                "received": self.received.decode("latin-1"),
                "received_size": self.received_size,
            }
