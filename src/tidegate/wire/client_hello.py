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
_EXT_SERVER_NAME = 0
_EXT_ALPN = 16
_EXT_ENCRYPTED_CLIENT_HELLO = 0xFE0D  # TLS Encrypted Client Hello

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
    cut = _Cutter(body)
    if cut.take(2)[0] != 3:
        raise _bad("the version is unknown")
    cut.take(32)  # random
    if len(cut.vector(1)) > 32:
        raise _bad("the session id is longer than 32 bytes")
    suites = cut.vector(2)
    if not suites or len(suites) % 2:
        raise _bad("the list of cipher suites is malformed")
    if not cut.vector(1):
        raise _bad("the list of compression methods is empty")
    sni: str | None = None
    alpn: tuple[bytes, ...] = ()
    ech = False
    if not cut.ended():
        extensions = _Cutter(cut.vector(2))
        seen = set()
        while not extensions.ended():
            kind = extensions.number(2)
            data = extensions.vector(2)
            if kind in seen:
                raise _bad(f"extension {kind} comes twice")
            seen.add(kind)
            if kind == _EXT_SERVER_NAME:
                sni = _server_name(data)
            elif kind == _EXT_ALPN:
                alpn = _protocols(data)
            elif kind == _EXT_ENCRYPTED_CLIENT_HELLO:
                ech = True
    if not cut.ended():
        raise _bad("something follows its extensions")
    return ClientHello(sni, alpn, ech)


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


def _server_name(data: bytes) -> str:
    cut = _Cutter(data)
    names = _Cutter(cut.vector(2))
    if not cut.ended() or names.ended():
        raise _bad("the server name list is malformed")
    if names.number(1) != 0:
        raise _bad("the server name is no host name")
    raw = names.vector(2)
    if not names.ended():
        raise _bad("it names more than one server")
    try:
        return canonical_host(raw).text
    except HostError as error:
        raise WireError(Reason.BAD_TLS, f"its server name is malformed: {error.what}", raw=escaped(raw)) from None


def _protocols(data: bytes) -> tuple[bytes, ...]:
    cut = _Cutter(data)
    entries = _Cutter(cut.vector(2))
    if not cut.ended() or entries.ended():
        raise _bad("the list of protocols is malformed")
    found = []
    while not entries.ended():
        name = entries.vector(1)
        if not name:
            raise _bad("a protocol name is empty")
        found.append(name)
    return tuple(found)


class _Cutter:
    """Cuts fixed and length-prefixed fields from bytes; whatever is too short is an error."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def ended(self) -> bool:
        return self._at == len(self._data)

    def take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise _bad("a field is longer than what holds it")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> bytes:
        return self.take(self.number(size))


def _bad(detail: str) -> WireError:
    return WireError(Reason.BAD_TLS, detail)
