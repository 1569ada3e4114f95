"""Look-ups: what a name tells outside, and where it leads when connections are captured."""

from __future__ import annotations

import os
import socket
import struct
import time

from tidegate.doctor.escapes.table import CAPTURING, FENCED, HELD, NO_FAMILY, escape
from tidegate.doctor.escapes.tools import PATIENCE, SaidError, word, wrong

RESOLVER = "198.18.0.2"
_KINDS = (1, 28, 5, 15, 16, 33, 65, 10, 255)  # A, AAAA, CNAME, MX, TXT, SRV, HTTPS, NULL, ANY
_NO_SUCH_NAME = 3


def _ask(name: str, kind: int, *, stream: bool = False) -> bytes:
    labels = b"".join(bytes((len(label),)) + label.encode() for label in name.split("."))
    query = struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if stream else socket.SOCK_DGRAM) as wire:
        wire.settimeout(PATIENCE)
        wire.connect((RESOLVER, 53))
        wire.sendall((struct.pack(">H", len(query)) if stream else b"") + query)
        return wire.recv(4096)[2 if stream else 0 :]


@escape("EAI_NONAME", "EAI_AGAIN", holds=FENCED)
def labels_as_a_channel() -> None:
    """A look-up that carries something in its labels causes no packet outside: a denied name is not asked for."""
    try:
        socket.gethostbyname(f"{word()}.other.test")
    except socket.gaierror as error:
        known = {socket.EAI_NONAME: "EAI_NONAME", socket.EAI_AGAIN: "EAI_AGAIN"}
        raise SaidError(known.get(error.errno or 0, str(error))) from None


@escape("no such name", holds=CAPTURING)
def labels_of_every_kind() -> None:
    """The same for every kind of record, over UDP and TCP."""
    for kind in _KINDS:
        for stream in (False, True):
            found = _ask(f"{word()}.k{kind}.other.test", kind, stream=stream)
            if found[3] & 15 != _NO_SUCH_NAME:
                wrong(f"kind {kind} is answered {found[:12].hex()}")
    raise SaidError("no such name")


@escape("nothing", holds=CAPTURING)
def labels_of_an_allowed_name() -> None:
    """A look-up below an allowed name is answered here, and asks nobody outside until there is a connection."""
    for kind in _KINDS:
        _ask(f"{word()}.wild.test", kind)
    socket.getaddrinfo(f"{word()}.wild.test", 443)
    raise SaidError("nothing")


@escape("ECONNRESET", "403", holds=CAPTURING)
def a_captured_name_that_leads_inside() -> None:
    """A name that is allowed and is the machine's loopback, by whoever knows no proxy."""
    with socket.create_connection(("loopback.wild.test", 80), PATIENCE) as wire:
        wire.sendall(f"GET /{word()} HTTP/1.1\r\nHost: loopback.wild.test\r\n\r\n".encode())
        said = wire.recv(4096)
    if not said:
        raise ConnectionResetError(104, "closed")
    raise SaidError(said.split(b" ", 2)[1].decode())


@escape("403", "421", holds=CAPTURING)
def a_captured_connection_for_another_host() -> None:
    """A captured connection to an allowed name, and a Host header for another one."""
    with socket.create_connection(("good.test", 80), PATIENCE) as wire:
        wire.sendall(f"GET /{word()} HTTP/1.1\r\nHost: other.test\r\n\r\n".encode())
        said = wire.recv(4096)
    raise SaidError(said.split(b" ", 2)[1].decode() if said else "closed")


@escape("ECONNRESET", "403", holds=CAPTURING)
def an_address_that_no_name_has() -> None:
    """Addresses of the synthetic range that were given to nobody."""
    with socket.create_connection(("198.19.200.200", 80), PATIENCE) as wire:
        wire.sendall(f"GET /{word()} HTTP/1.1\r\nHost: good.test\r\n\r\n".encode())
        said = wire.recv(4096)
    raise SaidError(said.split(b" ", 2)[1].decode() if said else "closed")


@escape("ECONNRESET", "403", holds=CAPTURING)
def the_gates_own_listener() -> None:
    """The address that captured connections are sent to is nowhere itself: it has no way out for who calls it."""
    with socket.create_connection((RESOLVER, HELD["port"]), PATIENCE) as wire:
        wire.sendall(f"GET http://other.test/{word()} HTTP/1.1\r\nHost: other.test\r\n\r\n".encode())
        said = wire.recv(4096)
    raise SaidError(said.split(b" ", 2)[1].decode() if said else "closed")


@escape("ENETUNREACH", "ECONNREFUSED", holds=FENCED, offline=NO_FAMILY, captured="403")
def other_proxy_settings() -> None:
    """Proxy variables are a courtesy: without them, or with others, a program gets no further."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    import urllib.request

    started = time.monotonic()
    other = urllib.request.ProxyHandler({"http": f"http://{HELD['own4'] or '10.0.0.1'}:80"})
    try:
        urllib.request.build_opener(other).open(f"http://good.test/{word()}", timeout=PATIENCE)
    except urllib.error.URLError as error:
        if time.monotonic() - started > PATIENCE / 2:
            wrong("it was not refused at once")
        if isinstance(error.reason, OSError):
            raise error.reason from None
        raise SaidError(str(error.code if isinstance(error, urllib.error.HTTPError) else error)) from None
