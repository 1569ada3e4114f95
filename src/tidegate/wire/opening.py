"""The first bytes of a client inside a tunnel: TLS, clear-text HTTP, SSH or something else (GAT-9, B115, B116).

The gate holds these bytes until they are judged. TLS is read by client_hello.py. What looks like an HTTP/1
request line must then be a well-formed head by the same strict parser as everywhere, and every host it names is
reported: the Host field and the host of an absolute target. Lenient origins skip empty lines in front and take a
bare LF, so looking is lenient where reading is strict: what only a lenient parser would read is refused.

What it does not see: requests after the first one, and HTTP/2 in clear text, whose :authority is compressed.
Other protocols are told apart after their first line at the latest, so that a client that waits for an answer
is not held up.
"""

from __future__ import annotations

from tidegate.model.destination import Destination, split_authority
from tidegate.model.host import Host, HostError, canonical_host
from tidegate.model.limits import DEFAULT_LIMITS, Limits
from tidegate.model.reason import Reason
from tidegate.model.value import Value
from tidegate.wire.client_hello import ClientHello, ClientHelloReader
from tidegate.wire.errors import WireError, shown_host
from tidegate.wire.first_bytes import Speaks
from tidegate.wire.grammar import FIELD, TOKEN
from tidegate.wire.http1 import MAX_METHOD, head_end, parse_request_head

_PREFACE = b"PRI * HTTP/2.0\r\n"  # RFC 9113 section 3.4
_TLS_RECORDS = range(20, 25)  # record types; client_hello.py judges the rest
_LOOPBACK6 = bytes(15) + b"\1"
_MAX_EMPTY = 64  # bytes of empty lines in front
_LINE_REST = 64  # what a request line holds besides its target, generously
_LINE = FIELD + b"\x0b\x0c"  # white space to parsers made of str.split()
_WHITE = bytes.maketrans(b"\t\x0b\x0c", b"   ")
# All that Python's str.split() takes for white space in a latin-1 request line.
_LENIENT = bytes.maketrans(b"\t\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0", b" " * 9)
_METHODS = tuple(b"GET HEAD POST PUT DELETE PATCH OPTIONS TRACE CONNECT PROPFIND REPORT MKCOL".split())
_AFTER_METHOD = frozenset(b" \x7f" + bytes(range(0x20)))


class Opening(Value):
    """What the client began with. `hosts` are all that a clear-text HTTP head names, `hello` is set with TLS."""

    speaks: Speaks
    hello: ClientHello | None = None
    hosts: tuple[Host, ...] = ()


_SSH = Opening(Speaks.SSH)
_OTHER = Opening(Speaks.OTHER)
_HTTP2 = Opening(Speaks.HTTP2)


class OpeningReader:
    """Reads an opening from bytes as they come. `held` are all bytes so far, to be sent on once they are judged."""

    __slots__ = ("_answer", "_hello", "_limits", "_searched", "held")

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.held = bytearray()
        self._limits = limits
        self._answer: Opening | None = None
        self._hello: ClientHelloReader | None = None
        self._searched = 0

    @property
    def speaks_so_far(self) -> Speaks | None:
        """What the bytes so far can still become: TLS or HTTP while one of them is open, else the answer's."""
        if self._answer is not None:
            return self._answer.speaks
        if not self.held:
            return None
        return Speaks.TLS if self._hello is not None else Speaks.HTTP

    def feed(self, data: bytes | bytearray | memoryview) -> Opening | None:
        """Take more bytes; return the opening, or None while more are needed. Later bytes change nothing.

        Raises:
            WireError: BAD_TLS, or what the HTTP parser says of a malformed head.
        """
        self.held += data
        if self._answer is None and self.held:
            self._answer = self._read_tls(data) if self.held[0] in _TLS_RECORDS else self._read_clear()
        return self._answer

    def _read_tls(self, data: bytes | bytearray | memoryview) -> Opening | None:
        if self._hello is None:
            self._hello = ClientHelloReader()
        answer = self._hello.feed(data)
        if answer is None:
            return None
        return Opening(Speaks.TLS, answer) if isinstance(answer, ClientHello) else _OTHER

    def _read_clear(self) -> Opening | None:
        speaks = clear_text_speaks(self.held, self._limits)
        if speaks is not Speaks.HTTP:
            return None if speaks is None else {Speaks.SSH: _SSH, Speaks.HTTP2: _HTTP2}.get(speaks, _OTHER)
        end = head_end(self.held, self._searched, self._limits)
        if end < 0:
            self._searched = len(self.held)
            return None
        return Opening(Speaks.HTTP, hosts=_hosts(bytes(self.held[:end]), self._limits))


def clear_text_speaks(data: bytes | bytearray, limits: Limits = DEFAULT_LIMITS) -> Speaks | None:
    """Return what bytes that are not TLS speak, None while it is open.

    HTTP is the answer where even a lenient parser would see an HTTP/1 request line: after empty lines, with a bare
    LF, with other white space between the words.
    """
    line = data.lstrip(b"\r\n")
    if len(data) - len(line) > _MAX_EMPTY:
        return Speaks.HTTP
    if line[:4] == b"SSH-":
        return Speaks.SSH
    if line[: len(_PREFACE)] == _PREFACE:
        return Speaks.HTTP2
    room = limits.target_bytes + _LINE_REST
    end = line.find(b"\n", 0, room)
    first = bytes(line[:end] if end >= 0 else line[:room])
    odd = first.rstrip(b"\r").translate(None, _LINE)
    known = _known_method(first.rstrip(b"\r"))
    if known or (known is None and end < 0):
        if known and (odd or end >= 0):
            return Speaks.HTTP if odd or b"HTTP/" in first.upper() else Speaks.OTHER
        return None if len(line) < room else Speaks.HTTP
    if odd:
        first = first[: first.index(odd[:1])]
    word = first.translate(_WHITE).split(b" ", 1)[0]
    if len(word) > MAX_METHOD or word.translate(None, TOKEN):
        return Speaks.OTHER
    if odd or end >= 0:
        return Speaks.HTTP if b"HTTP/" in first.upper() else Speaks.OTHER
    return None if len(line) < room else Speaks.HTTP


def _known_method(line: bytes) -> bool | None:
    # Whether a lenient parser finds a method of HTTP in front of this line, None while that is open. Behind one even
    # control bytes are no reason to take the line for another protocol: http.server, for one, lets them pass.
    text = line.translate(_LENIENT).lstrip(b" ")
    rest = text.lstrip(TOKEN)
    word = text[: len(text) - len(rest)]
    if rest:
        return word in _METHODS and rest[0] in _AFTER_METHOD
    return None if any(method.startswith(word) for method in _METHODS) else False


def opening_verdict(opening: Opening, destination: Destination, *, strict: bool) -> Reason | None:
    """Return why an opening is refused in a tunnel to `destination`, or None.

    `strict` is the policy's `tls: strict`. A tunnel to an address literal may carry any SNI as far as this goes:
    there the caller asks the policy about the name as well (GAT-9).
    """
    hello = opening.hello
    if hello is not None:
        if hello.sni is None:
            return Reason.SNI_REQUIRED if strict else None
        if destination.host.is_literal or hello.sni == destination.host.text:
            return None
        return Reason.SNI_MISMATCH
    if strict:
        return Reason.TLS_REQUIRED
    if any(host != destination.host and not _both_loopback(host, destination.host) for host in opening.hosts):
        return Reason.TUNNEL_HOST_MISMATCH
    return None


def _both_loopback(one: Host, other: Host) -> bool:
    # The same services under another name: who may reach localhost:80 may say 127.0.0.1 in its Host.
    return all(
        host.text == "localhost" if host.packed is None else host.packed[:1] == b"\x7f" or host.packed == _LOOPBACK6
        for host in (one, other)
    )


def _hosts(head_bytes: bytes, limits: Limits) -> tuple[Host, ...]:
    head = parse_request_head(head_bytes, limits)
    authorities = head.values(b"host")
    scheme, separator, behind = head.target.partition(b"://")
    if head.method == "CONNECT":
        authorities.append(head.target)
    elif separator and b"/" not in scheme:
        for sign in (b"/", b"?", b"#"):
            behind = behind.split(sign, 1)[0]
        authorities.append(behind)
    found = []
    for authority in authorities:
        try:
            found.append(canonical_host(split_authority(authority)[0]))
        except HostError as error:
            detail = f"inside the tunnel: {error.what}"
            raise WireError(Reason.BAD_HOST, detail, raw=shown_host(authority)) from None
    return tuple(dict.fromkeys(found))
