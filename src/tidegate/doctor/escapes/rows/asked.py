"""Asking the gate itself: for hosts that are denied, spelled oddly, or hidden behind one that is allowed.

The policy of the trial lets `good.test` and `*.wild.test` through, names that only its small internet knows. Whatever
a row smuggles carries its name, and the origin of `good.test` hears all that reaches it.
"""

from __future__ import annotations

import socket
import ssl
import struct
from typing import TYPE_CHECKING

from tidegate.doctor.escapes.table import GATED, HELD, escape, named
from tidegate.doctor.escapes.tools import PATIENCE, SaidError, word, wrong

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST = 65536


def gate() -> socket.socket:
    """A connection to the gate's proxy."""
    return socket.create_connection(("127.0.0.1", HELD["port"]), PATIENCE)


def answer(wire: socket.socket) -> str:
    """The status of what comes next, or how it ended."""
    data = wire.recv(_MOST)
    return status(data)


def status(data: bytes) -> str:
    """The status of an HTTP answer; `closed` for none, the first bytes of anything else."""
    if not data:
        return "closed"
    words = data.split(b" ", 2)
    return words[1].decode() if data.startswith(b"HTTP/1.") and len(words) > 1 else f"{data[:16]!r}"


def say(data: bytes) -> None:
    """Send this to the gate; the row is answered with the status that comes back."""
    with gate() as wire:
        wire.sendall(data)
        raise SaidError(answer(wire))


def connect(target: str) -> bytes:
    """The head of a CONNECT."""
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode("utf-8", "surrogateescape")


def opened(target: str) -> socket.socket:
    """A tunnel through the gate to a host that is allowed."""
    wire = gate()
    wire.sendall(connect(target))
    if answer(wire) != "200":
        wrong(f"{target} is allowed and was refused")
    return wire


@escape("403", holds=GATED)
def a_denied_host() -> None:
    """CONNECT to a host that no rule lets through."""
    say(connect("other.test:443"))


@escape("403", holds=GATED)
def a_denied_host_in_clear_text() -> None:
    """The same by an absolute URL."""
    say(f"GET http://other.test/{word()} HTTP/1.1\r\nHost: other.test\r\n\r\n".encode())


def _connect_of(target: str) -> Callable[[], object]:
    def attempt() -> None:
        say(connect(target))

    return attempt


_INSIDE = (
    ("private", "a private address"),
    ("loopback", "the machine's loopback, by both families"),
    ("own", "an address of this machine"),
    ("metadata", "the metadata address of clouds"),
    ("unspecified", "the unspecified address"),
    ("mixed", "a public address and a private one"),
    ("families", "a public IPv4 address and the loopback of IPv6"),
    ("mapped", "loopback as an IPv4-mapped address"),
    ("compatible", "loopback as an IPv4-compatible address"),
    ("nat64", "loopback behind a NAT64 prefix"),
    ("sixtofour", "loopback as a 6to4 address"),
    ("alias", "loopback, by a chain of aliases"),
)
for _name, _what in _INSIDE:
    _attempt = _connect_of(f"{_name}.wild.test:80")
    escape("403", holds=GATED)(
        named(_attempt, f"a_name_that_leads_inside_{_name}", f"An allowed name that is {_what}.")
    )


@escape("403", holds=GATED)
def rebinding() -> None:
    """An allowed name that is a public address first and loopback afterwards: each connection is checked."""
    opened("rebinding.wild.test:80").close()
    for _ in range(3):
        with gate() as wire:
            wire.sendall(connect("rebinding.wild.test:80"))
            found = answer(wire)
        if found == "200":
            wrong("the second answer was believed")
    raise SaidError(found)


_HERE = (
    *(
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "0.0.0.0",
        "0",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
    ),
    *("127.0.0.1.", "127.00.0.1", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[0:0:0:0:0:0:0:1]", "::1"),
    *("[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1]", "[::1%lo]", "[::1%25lo]", "localhost"),
    *("LOCALHOST", "localhost.", "a.localhost", "169.254.169.254", "2852039166", "0xa9fea9fe", "[fd00:ec2::254]"),
    *("\N{CIRCLED DIGIT ONE}27.0.0.1", "127\N{IDEOGRAPHIC FULL STOP}0.0.1", "127%2e0.0.1", "127.0.0.1 ", "127.0.0.1\t"),
)


@escape("refused", holds=GATED)
def every_odd_spelling_of_this_machine() -> None:
    """Loopback, link-local and metadata in every way that some resolver takes: no CONNECT to any is answered 200."""
    for host in _HERE:
        for port in (HELD["tcp4"], 80):
            _refused(connect(f"{host}:{port}"))
    raise SaidError("refused")


_DENIED = (
    *("OTHER.TEST", "other.test.", "other.test%00.good.test", "other.test\0.good.test", "good.test@other.test"),
    *(
        "other.test#good.test",
        "other.test/good.test",
        "other.test\\good.test",
        "good.test:80@other.test",
        "other.test ",
    ),
    *("x.good.test", "good.test.other.test", "xgood.test", "wild.test", "a.b.wild.test", ".wild.test", "*.wild.test"),
    *(
        "\N{FULLWIDTH LATIN SMALL LETTER O}ther.test",
        "xn--other-.test",
        "other。test",
        "%6fther.test",
        "good.test,other.test",
    ),
)


@escape("refused", holds=GATED)
def every_odd_spelling_of_a_denied_host() -> None:
    """A denied name in disguise, or an allowed one with something around it: none is answered 200."""
    for host in _DENIED:
        _refused(connect(f"{host}:443"))
        _refused(f"GET http://{host}/{word()} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    raise SaidError("refused")


_PORTS = ("", ":", ":+443", ":0443", ":99999", ":443 ", ":-1", ":443:80", ":0", ":0x1bb", ":443\0")


@escape("refused", holds=GATED)
def every_odd_spelling_of_a_port() -> None:
    """A port that two readers could read differently."""
    for port in _PORTS:
        _refused(connect(f"good.test{port}"))
    raise SaidError("refused")


def _refused(data: bytes) -> None:
    with gate() as wire:
        wire.sendall(data)
        found = answer(wire)
    if found.startswith("2"):
        wrong(f"{data[:80]!r} is answered {found}")


def _hello(name: str) -> bytes:
    """A ClientHello for this name."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    wrapped = context.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        wrapped.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake of one side")


def _ended(wire: socket.socket) -> None:
    """See that the gate ends this connection, with a word or without."""
    data = wire.recv(_MOST)
    if data[:1] == b"\x15":
        raise SaidError("alert")
    raise SaidError(status(data))


@escape("alert", holds=GATED)
def a_client_hello_for_another_host() -> None:
    """A tunnel to an allowed host, and in it TLS for another one (domain fronting)."""
    with opened("good.test:443") as wire:
        wire.sendall(_hello(f"{word()}.other.test"))
        _ended(wire)


@escape("alert", holds=GATED)
def a_client_hello_in_pieces() -> None:
    """The same a few bytes at a time: nothing is passed on before the name is known."""
    with opened("good.test:443") as wire:
        hello = _hello(f"{word()}.other.test")
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for at in range(0, len(hello), 40):
                wire.sendall(hello[at : at + 40])
        except OSError:
            raise SaidError("alert") from None  # it was ended meanwhile
        _ended(wire)


@escape("403", "421", holds=GATED)
def a_host_header_for_another_host_in_a_tunnel() -> None:
    """A tunnel to an allowed host, and in it clear text for another one."""
    with opened("good.test:80") as wire:
        wire.sendall(f"GET /{word()} HTTP/1.1\r\nHost: other.test\r\n\r\n".encode())
        _ended(wire)


@escape("400", holds=GATED)
def a_host_header_that_disagrees_with_the_url() -> None:
    """An absolute URL of one host and a Host header of another."""
    say(f"GET http://good.test/{word()} HTTP/1.1\r\nHost: other.test\r\n\r\n".encode())


@escape("400", holds=GATED)
def two_host_headers() -> None:
    """The one that is allowed and the one that is not."""
    say(f"GET http://good.test/{word()} HTTP/1.1\r\nHost: good.test\r\nHost: other.test\r\n\r\n".encode())


@escape("403", holds=GATED)
def the_second_request_of_a_connection() -> None:
    """Each request is judged: the first is for an allowed host, the second is not."""
    with gate() as wire:
        wire.sendall(b"GET http://good.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n")
        if answer(wire) != "200":
            wrong("the first was refused")
        wire.sendall(f"GET http://other.test/{word()} HTTP/1.1\r\nHost: other.test\r\n\r\n".encode())
        raise SaidError(answer(wire))


@escape("403", holds=GATED)
def what_follows_a_refused_connect() -> None:
    """Bytes sent ahead of the answer are not read as a request, nor passed on."""
    say(connect("other.test:443") + f"GET http://good.test/{word()} HTTP/1.1\r\nHost: good.test\r\n\r\n".encode())


def _smuggle_of(framing: str, body: str) -> Callable[[], object]:
    def attempt() -> None:
        hidden = f"GET /{word()} HTTP/1.1\r\nHost: other.test\r\n\r\n"
        head = f"POST http://good.test/ HTTP/1.1\r\nHost: good.test\r\n{framing}\r\n\r\n"
        say((head + body.replace("HIDDEN", hidden)).encode())

    return attempt


_SMUGGLED = (
    ("both_lengths", "Content-Length: 4\r\nTransfer-Encoding: chunked", "0\r\n\r\nHIDDEN"),
    ("two_lengths", "Content-Length: 0\r\nContent-Length: 90", "HIDDEN"),
    ("an_odd_length", "Content-Length: +0", "HIDDEN"),
    ("an_odd_coding", "Transfer-Encoding: xchunked", "0\r\n\r\nHIDDEN"),
    ("a_coding_in_disguise", "Transfer-Encoding: chunked, identity", "0\r\n\r\nHIDDEN"),
    ("a_space_before_the_colon", "Content-Length : 0", "HIDDEN"),
    ("a_folded_header", "X: y\r\n Content-Length: 90", "HIDDEN"),
    ("a_bare_line_feed", "X: y\nContent-Length: 90", "HIDDEN"),
    ("a_bare_carriage_return", "X: y\rContent-Length: 90", "HIDDEN"),
    ("a_bad_chunk_size", "Transfer-Encoding: chunked", "0x0\r\n\r\nHIDDEN"),
)
for _name, _framing, _body in _SMUGGLED:
    _attempt = named(_smuggle_of(_framing, _body), f"smuggled_by_{_name}", "A request hidden in another one's body.")
    escape("400", holds=GATED)(_attempt)


@escape("refused", holds=GATED)
def a_denied_host_by_socks() -> None:
    """SOCKS5 by name and by address."""
    name = b"other.test"
    _socks(b"\5\1\0\3" + bytes((len(name),)) + name + struct.pack(">H", 443))
    _socks(b"\5\1\0\1" + socket.inet_aton("127.0.0.1") + struct.pack(">H", HELD["tcp4"]))
    raise SaidError("refused")


@escape("refused", holds=GATED)
def datagrams_by_socks() -> None:
    """SOCKS5's UDP ASSOCIATE and BIND."""
    for command in (2, 3):
        _socks(bytes((5, command, 0, 1, 0, 0, 0, 0, 0, 0)))
    raise SaidError("refused")


def _socks(request: bytes) -> None:
    with gate() as wire:
        wire.sendall(b"\5\1\0")
        if wire.recv(2) != b"\5\0":
            wrong("no SOCKS")
        wire.sendall(request)
        said = wire.recv(_MOST)
    if said[1:2] in (b"", b"\0"):
        wrong(f"{request!r} is answered {said!r}")


@escape("refused", holds=GATED)
def the_gates_other_side() -> None:
    """The gate is a proxy and nothing else: no page, no metrics, no control answers inside."""
    for target in ("/", "/metrics", "/api/tasks", "/health", "*", "http://127.0.0.1:3128/", "http://localhost:3128/"):
        for method in ("GET", "POST", "OPTIONS"):
            _refused(f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n".encode())
    _refused(connect(f"127.0.0.1:{HELD['port']}"))
    raise SaidError("refused")
