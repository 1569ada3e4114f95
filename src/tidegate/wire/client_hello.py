"""The TLS ClientHello, read without terminating TLS: which host does the client name (GAT-9, B115).

RFC 8446 section 4.1.2 and 5.1, RFC 6066 section 3 (server_name), RFC 7301 (ALPN). Invariant: the answer is the
same for every way the bytes are cut, into reads or into TLS records. At most 16 KiB are looked at.

The first bytes decide whether this is TLS at all: any record of major version 3, or what lenient servers take for
one (`_begins_tls`). From there on all that is not a well-formed ClientHello is an error: an origin could read what we
skipped. The name must
be one host by `canonical_host`; two names, an empty one or a malformed one are errors. With Encrypted ClientHello the
outer name is the one that is seen, and `ech` says that there is an inner one.

Nothing is decrypted or changed, and what follows the ClientHello (early data) is not looked at.
"""

from __future__ import annotations

from tidegate.model.host import HostError, canonical_host
from tidegate.model.reason import Reason
from tidegate.model.value import Value
from tidegate.wire.errors import WireError, escaped

MAX_HELLO = 16384 + 5  # bytes looked at: as much as one full record with its header (RFC 8446 section 5.1)
MAX_RECORD = 16384

_RECORD_TYPES = range(20, 25)  # change_cipher_spec, alert, handshake, application_data, heartbeat
_ALERT = 21
_HANDSHAKE = 22
_CLIENT_HELLO = 1
_RECORD_HEADER = 5
_MESSAGE_HEADER = 4
_FIXED = 35  # bytes in front of the session id: version, random, its length
_EXT_SERVER_NAME = 0
_EXT_ALPN = 16
_EXT_ENCRYPTED_CLIENT_HELLO = 0xFE0D  # TLS Encrypted Client Hello

# Names as sent -> canonical text. Only memory of work done: a pure function of its key, emptied when full.
_MAX_KNOWN = 1024
_known: dict[bytes, str] = {}

# Alert descriptions (RFC 8446 section 6.2).
ACCESS_DENIED = 49
DECODE_ERROR = 50
INTERNAL_ERROR = 80
UNRECOGNIZED_NAME = 112

_ALERTS = {
    Reason.BAD_TLS: DECODE_ERROR,
    Reason.SNI_MISMATCH: UNRECOGNIZED_NAME,
    Reason.SNI_REQUIRED: UNRECOGNIZED_NAME,
    Reason.INTERNAL: INTERNAL_ERROR,
    Reason.OUT_OF_RESOURCES: INTERNAL_ERROR,
}


class ClientHello(Value):
    """What a ClientHello says in clear: the canonical host it names, its ALPN offers, whether it carries ECH."""

    sni: str | None
    alpn: tuple[bytes, ...]
    ech: bool


class NotTls(Value):
    """These bytes are not TLS."""


NOT_TLS = NotTls()


class ClientHelloReader:
    """Reads one ClientHello from bytes as they come. It keeps a copy of the handshake bytes only."""

    __slots__ = ("_answer", "_held", "_message", "_seen")

    def __init__(self) -> None:
        self._answer: ClientHello | NotTls | None = None
        self._held = b""  # what came of a record that is not whole yet
        self._message = b""  # the handshake message, as far as whole records brought it
        self._seen = 0

    def feed(self, data: bytes | bytearray | memoryview) -> ClientHello | NotTls | None:
        """Take more bytes; return the answer, or None while more are needed.

        Raises:
            WireError: BAD_TLS as soon as it can be no well-formed ClientHello.
        """
        if self._answer is not None:
            return self._answer
        buf = self._held + bytes(data)
        if not self._seen:
            end = _whole_in_one(buf)
            if end:
                self._answer = _parse(buf, _RECORD_HEADER + _MESSAGE_HEADER, end)
                self._held = b""
                return self._answer
            tls = _begins_tls(buf)
            if not tls:
                self._held = buf
                self._answer = None if tls is None else NOT_TLS
                return self._answer
        at = 0
        while self._answer is None and at < len(buf):
            length = _record_length(buf, at)
            if length is not None and self._seen + 5 + length > MAX_HELLO:
                raise _bad(f"it is larger than {MAX_RECORD} bytes")
            if length is None or at + 5 + length > len(buf):
                break
            self._take(buf[at + 5 : at + 5 + length])
            self._seen += 5 + length
            at += 5 + length
        self._held = buf[at:] if self._answer is None else b""
        return self._answer

    def _take(self, fragment: bytes) -> None:
        message = self._message + fragment
        self._message = message
        if message[0] != _CLIENT_HELLO:
            raise _bad("the first handshake message is not a ClientHello")
        if len(message) < 4:
            return
        length = int.from_bytes(message[1:4], "big")
        if length + 4 > MAX_RECORD:
            raise _bad(f"it is larger than {MAX_RECORD} bytes")
        if len(message) > length + 4:
            raise _bad("something follows it in the same record")
        if len(message) == length + 4:
            self._answer = parse_client_hello(message[4:])
            self._message = b""


def parse_client_hello(body: bytes) -> ClientHello:
    """Return what the body of a ClientHello message, without its four bytes of header, says.

    Raises:
        WireError: BAD_TLS.
    """
    return _parse(body, 0, len(body))


def tls_alert(code: int) -> bytes:
    """Return a fatal alert as a record in clear, as a server answers a ClientHello (RFC 8446 section 6)."""
    return b"\x15\x03\x03\x00\x02\x02%c" % code


def alert_code(reason: Reason) -> int:
    """Return the alert that says `reason` best; access_denied for whatever the policy refuses."""
    return _ALERTS.get(reason, ACCESS_DENIED)


def refusal_alert(reason: Reason) -> bytes:
    """Return the alert record that refuses for `reason`."""
    return tls_alert(alert_code(reason))


def _begins_tls(buf: bytes) -> bool | None:
    # Whether some server would take these bytes for TLS, None while that is open. Go's takes any record version below
    # 0x1000 and skips warnings in front of the ClientHello (crypto/tls, readRecordOrCCS); with another major version
    # than 3 the bytes behind it must fit too, because other protocols begin with a short length.
    size = len(buf)
    if not size:
        return None
    if buf[0] not in _RECORD_TYPES:
        return False
    if size < 2 or buf[1] == 3:
        return None if size < 2 else True
    if buf[1] >= 0x10 or buf[0] not in {_ALERT, _HANDSHAKE}:
        return False
    if buf[0] == _ALERT and not b"\x00\x02".startswith(buf[3:5]):
        return False
    return None if size < 6 else buf[0] == _ALERT or buf[5] == _CLIENT_HELLO


def _record_length(buf: bytes, at: int) -> int | None:
    # The length of the record that begins at `at`, None while its header is not whole; each byte judged as it comes.
    size = len(buf) - at
    if buf[at] != _HANDSHAKE:
        raise _bad("another record stands before or inside the ClientHello")
    if (size > 1 and buf[at + 1] != 3) or (size > 2 and buf[at + 2] > 4):
        raise _bad("a record has an unknown version")
    if size < 4:
        return None
    if size == 4:
        # The high byte alone can already be too much.
        if buf[at + 3] > MAX_RECORD >> 8:
            raise _bad("a record is empty or too long")
        return None
    length = buf[at + 3] << 8 | buf[at + 4]
    if not 0 < length <= MAX_RECORD:
        raise _bad("a record is empty or too long")
    return length


def _whole_in_one(buf: bytes) -> int:
    # Where the first record ends if it holds a ClientHello, and nothing but it; else 0. As nearly all clients send it.
    if len(buf) <= _RECORD_HEADER + _MESSAGE_HEADER or buf[0] != _HANDSHAKE or buf[1] != 3 or buf[2] > 4:
        return 0
    end = _RECORD_HEADER + (buf[3] << 8 | buf[4])
    message = buf[6] << 16 | buf[7] << 8 | buf[8]
    whole = _RECORD_HEADER + _MESSAGE_HEADER + message == end <= min(len(buf), MAX_HELLO)
    return end if whole and buf[5] == _CLIENT_HELLO else 0


def _parse(data: bytes, at: int, size: int) -> ClientHello:
    # The body of a ClientHello is data[at:size]. Hot: one pass over the bytes where they are, `at` goes from field to
    # field, and each length is held against the end of what holds it before anything behind it is looked at.
    if at + _FIXED > size:
        raise _short()
    if data[at] != 3:
        raise _bad("the version is unknown")
    count = data[at + _FIXED - 1]  # of the session id, behind version and random
    if count > 32:
        raise _bad("the session id is longer than 32 bytes")
    at += _FIXED + count
    if at + 2 > size:
        raise _short()
    count = data[at] << 8 | data[at + 1]
    if not count or count & 1:
        raise _bad("the list of cipher suites is malformed")
    at += 2 + count
    if at >= size:
        raise _short()
    count = data[at]
    if not count:
        raise _bad("the list of compression methods is empty")
    at += 1 + count
    if at > size:
        raise _short()
    sni: str | None = None
    alpn: tuple[bytes, ...] = ()
    ech = False
    if at < size:
        if at + 2 > size:
            raise _short()
        end = at + 2 + (data[at] << 8 | data[at + 1])
        at += 2
        if end > size:
            raise _short()
        seen = set()
        while at < end:
            stop = at + 4
            if stop > end:
                raise _short()
            kind = data[at] << 8 | data[at + 1]
            at, stop = stop, stop + (data[at + 2] << 8 | data[at + 3])
            if stop > end:
                raise _short()
            if kind in seen:
                raise _bad(f"extension {kind} comes twice")
            seen.add(kind)
            if kind == _EXT_SERVER_NAME:
                sni = _server_name(data, at, stop)
            elif kind == _EXT_ALPN:
                alpn = _protocols(data, at, stop)
            elif kind == _EXT_ENCRYPTED_CLIENT_HELLO:
                ech = True
            at = stop
        if end != size:
            raise _bad("something follows its extensions")
    return ClientHello(sni, alpn, ech)


def _server_name(data: bytes, at: int, end: int) -> str:
    # A list, with its length, of one entry: a kind, a length and a name.
    if at + 3 > end or at + 2 + (data[at] << 8 | data[at + 1]) != end:
        raise _bad("the server name list is malformed")
    if data[at + 2] != 0:
        raise _bad("the server name is no host name")
    if at + 5 > end:
        raise _short()
    stop = at + 5 + (data[at + 3] << 8 | data[at + 4])
    if stop > end:
        raise _short()
    if stop < end:
        raise _bad("it names more than one server")
    raw = data[at + 5 : end]
    name = _known.get(raw)
    if name is None:
        try:
            name = canonical_host(raw).text
        except HostError as error:
            raise WireError(Reason.BAD_TLS, f"its server name is malformed: {error.what}", raw=escaped(raw)) from None
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[raw] = name  # at most 254 bytes, or it were no name
    return name


def _protocols(data: bytes, at: int, end: int) -> tuple[bytes, ...]:
    if at + 3 > end or at + 2 + (data[at] << 8 | data[at + 1]) != end:
        raise _bad("the list of protocols is malformed")
    at += 2
    found = []
    while at < end:
        stop = at + 1 + data[at]
        if stop > end:
            raise _short()
        if stop == at + 1:
            raise _bad("a protocol name is empty")
        found.append(data[at + 1 : stop])
        at = stop
    return tuple(found)


def _short() -> WireError:
    return _bad("a field is longer than what holds it")


def _bad(detail: str) -> WireError:
    return WireError(Reason.BAD_TLS, detail)
