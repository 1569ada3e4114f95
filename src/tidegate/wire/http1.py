"""HTTP/1 heads: where one ends in a buffer, and what it says (RFC 9112 sections 2 to 5).

Invariant: a head is a value or a WireError, and the same one whether its bytes come whole or one at a time.
`head_end` answers while bytes still come and fails as soon as they can no longer become a head: at a first byte of
no method, at the first bare CR or LF, or where a bound is passed, whichever stands first. `parse_*_head` reads a
complete one.

Strict on purpose (GAT-4): exactly one space in a request line, CRLF only, no folding, no space before a colon, no
empty or non-token name, no control byte, no empty line in front. What two parsers could read differently is
refused, not repaired. Bytes 0x80-0xff in a field value are allowed by RFC 9110 and pass unchanged.

What it does not do: it judges no target (authority.py) and no length of a body (framing.py).
"""

from __future__ import annotations

from tidegate.model.limits import DEFAULT_LIMITS, Limits
from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError, escaped, shown_host
from tidegate.wire.first_bytes import why_no_request
from tidegate.wire.grammar import FIELD, HEAD, OWS, TOKEN, VCHAR, is_token

Version = tuple[int, int]
Fields = tuple[tuple[bytes, bytes], ...]

CONNECT_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

MAX_METHOD = 32  # the longest registered one is UPDATEREDIRECTREF, 17 bytes
_LINE_REST = MAX_METHOD + len("  HTTP/1.1")  # what a request line holds besides its target

_BLANK = b"\r\n\r\n"
_VERSIONS: dict[bytes, Version] = {b"HTTP/1.1": (1, 1), b"HTTP/1.0": (1, 0)}
_METHODS = {
    name.encode(): name for name in ("CONNECT", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE")
}

# '-' and '_' are one to servers that hand fields on as variables (RFC 3875 section 4.1.18): in a request these would be
# a second framing, which only some of them read.
ODD_FRAMING = frozenset((b"content_length", b"transfer_encoding"))

# Names as sent -> lower case, for names that passed the grammar. Bounded: a client cannot make it grow.
_MAX_NAMES = 1024
_names: dict[bytes, bytes] = {}


class _Head:
    """What requests and responses share: fields in the order and spelling they came in. Treat as frozen."""

    __slots__ = ("headers", "names", "options", "version")

    version: Version
    options: frozenset[bytes] | None  # what Connection names, once somebody asked (headers.connection_options)
    headers: Fields
    names: tuple[bytes, ...]  # of `headers`, in lower case

    def get(self, name: bytes) -> bytes | None:
        """Return the first value of the field with this lower-case name, None where there is none."""
        return self.headers[self.names.index(name)][1] if name in self.names else None

    def values(self, name: bytes) -> list[bytes]:
        """Return all values of the field with this lower-case name."""
        return [pair[1] for lower, pair in zip(self.names, self.headers, strict=True) if lower == name]


class RequestHead(_Head):
    """A request line and its fields. `target` is as it was sent."""

    __slots__ = ("method", "target")

    def __init__(self, method: str, target: bytes, version: Version, headers: Fields, names: tuple[bytes, ...]) -> None:
        self.method = method
        self.target = target
        self.version = version
        self.headers = headers
        self.names = names
        self.options = None

    def __eq__(self, other: object) -> bool:
        return type(other) is RequestHead and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.method, self.target, self.version, self.headers)

    def __repr__(self) -> str:
        return f"RequestHead({self.method} {escaped(self.target)} {self.version}, {len(self.headers)} fields)"


class ResponseHead(_Head):
    """A status line and its fields. `reason` is the phrase as it was sent, often empty."""

    __slots__ = ("reason", "status")

    def __init__(self, status: int, reason: bytes, version: Version, headers: Fields, names: tuple[bytes, ...]) -> None:
        self.status = status
        self.reason = reason
        self.version = version
        self.headers = headers
        self.names = names
        self.options = None

    def __eq__(self, other: object) -> bool:
        return type(other) is ResponseHead and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.status, self.reason, self.version, self.headers)

    def __repr__(self) -> str:
        return f"ResponseHead({self.status}, {self.version}, {len(self.headers)} fields)"


def head_end(buf: bytes | bytearray, start: int = 0, limits: Limits = DEFAULT_LIMITS) -> int:
    """Return the index behind the blank line that ends the request head in `buf`, or -1 while it is not there.

    `start` is how much of `buf` an earlier call has seen, so that bytes that trickle in cost no more.

    Raises:
        WireError: when no further byte can make it a head (BAD_REQUEST, TARGET_TOO_LONG, HEADERS_TOO_LARGE).
    """
    end = buf.find(_BLANK, start - 3 if start > 3 else 0, limits.header_bytes)
    if end >= 0:
        return end + 4  # faults before it are found by the parser, which looks at each byte anyway
    fault = _first_fault(buf, start, limits)
    if fault is not None:
        raise fault
    return -1


def response_head_end(buf: bytes | bytearray, start: int = 0, limits: Limits = DEFAULT_LIMITS) -> int:
    """Do what `head_end` does for a response: every fault is UPSTREAM_RESPONSE.

    Raises:
        WireError: as `head_end`.
    """
    end = buf.find(_BLANK, start - 3 if start > 3 else 0, limits.header_bytes)
    if end >= 0:
        return end + 4
    fault = _first_fault(buf, start, limits, first_line=False)
    if fault is not None:
        raise _of_upstream(fault.detail)
    return -1


def parse_request_head(data: bytes | bytearray | memoryview, limits: Limits = DEFAULT_LIMITS) -> RequestHead:
    """Return the request head that `data`, exactly the bytes up to and with the blank line, holds.

    Raises:
        WireError: BAD_REQUEST, BAD_HOST, BAD_VERSION, TARGET_TOO_LONG or HEADERS_TOO_LARGE.
    """
    lines = _lines(data, limits, first_line=True)
    parts = lines[0].split(b" ")
    if len(parts) != 3:
        raise _bad_request_line(lines[0])
    word, target, version_text = parts
    method = _METHODS.get(word) or _other_method(word)
    version = _VERSIONS.get(version_text)
    if version is None or not target or target.translate(None, VCHAR):
        raise _bad_request_line(lines[0])
    if len(target) > limits.target_bytes:
        raise WireError(Reason.TARGET_TOO_LONG, f"the target is longer than {limits.target_bytes} bytes")
    headers, names = _fields(lines, limits, request=True)
    return RequestHead(method, target, version, headers, names)


def parse_response_head(data: bytes | bytearray | memoryview, limits: Limits = DEFAULT_LIMITS) -> ResponseHead:
    """Return the response head that `data`, exactly the bytes up to and with the blank line, holds.

    A missing reason phrase, with or without the space before it, is common and accepted.

    Raises:
        WireError: UPSTREAM_RESPONSE.
    """
    try:
        lines = _lines(data, limits, first_line=False)
        headers, names = _fields(lines, limits)
    except WireError as error:
        raise _of_upstream(error.detail) from None
    line = lines[0]
    version = _VERSIONS.get(line[:8])
    digits = line[9:12]
    if version is None or line[8:9] != b" ":
        raise _of_upstream("the status line does not begin with HTTP/1.0 or HTTP/1.1")
    if len(digits) != 3 or not digits.isdigit() or digits < b"100" or line[12:13] not in {b"", b" "}:
        raise _of_upstream("the status code is not three digits from 100 up")
    return ResponseHead(int(digits), line[13:], version, headers, names)


def parse_fields(lines: list[bytes], limits: Limits) -> tuple[Fields, tuple[bytes, ...]]:
    """Return the fields in `lines`, without their CRLFs, and their names in lower case; for trailers.

    Raises:
        WireError: BAD_REQUEST or HEADERS_TOO_LARGE.
    """
    if b"".join(lines).translate(None, HEAD):
        raise WireError(Reason.BAD_REQUEST, "a field has a control byte")
    return _fields([b"", *lines], limits)


def _lines(data: bytes | bytearray | memoryview, limits: Limits, *, first_line: bool) -> list[bytes]:
    # The lines of a complete head, after the checks that concern every byte of it.
    raw = data if type(data) is bytes else bytes(data)
    lines = raw[:-4].split(b"\r\n")
    ends = len(lines) + 1
    # What remains without all field bytes must be one CRLF for each line and the blank one: then every CR and LF is
    # in a pair, and no other byte is there.
    odd = raw.translate(None, FIELD)
    if odd != b"\r\n" * ends or raw[-4:] != _BLANK or len(raw) > limits.header_bytes:
        raise _bad_lines(raw, lines[0], limits, first_line=first_line)
    if first_line and len(lines[0]) > limits.target_bytes + _LINE_REST:
        raise _bad_lines(raw, lines[0], limits, first_line=True)
    return lines


def _bad_lines(raw: bytes, line: bytes, limits: Limits, *, first_line: bool) -> WireError:
    fault = _first_fault(raw, 0, limits, first_line=first_line)
    if fault is not None:
        return fault
    if first_line and line.translate(None, VCHAR + b" "):
        return _bad_request_line(line)
    if raw.translate(None, HEAD):
        return WireError(Reason.BAD_REQUEST, "a header line has a control byte")
    return WireError(Reason.BAD_REQUEST, "the head does not end with one empty line")


def _fields(lines: list[bytes], limits: Limits, *, request: bool = False) -> tuple[Fields, tuple[bytes, ...]]:
    # All lines but the first. One loop, hot: a dictionary look-up replaces grammar check and lower() of each name.
    if len(lines) - 1 > limits.header_fields:
        raise WireError(Reason.HEADERS_TOO_LARGE, f"there are more than {limits.header_fields} header fields")
    known = _names.get
    headers = []
    names = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        lower = known(name)
        if lower is None or not colon:
            lower = _new_name(name, colon, line, request=request)
        names.append(lower)
        headers.append((name, value.strip(OWS)))
    return tuple(headers), tuple(names)


def _new_name(name: bytes, colon: bytes, line: bytes, *, request: bool) -> bytes:
    if line[:1] in {b" ", b"\t"}:
        raise WireError(Reason.BAD_REQUEST, "a header line begins with a space (obsolete line folding)")
    if not line:
        raise WireError(Reason.BAD_REQUEST, "there is an empty line inside the head")
    if not colon:
        raise WireError(Reason.BAD_REQUEST, "a header line has no colon")
    if not name:
        raise WireError(Reason.BAD_REQUEST, "a header has an empty name")
    if name[-1:] in {b" ", b"\t"}:
        raise WireError(Reason.BAD_REQUEST, "a header has a space before its colon")
    if name.translate(None, TOKEN):
        raise WireError(Reason.BAD_REQUEST, "a header name has a byte that no name may have")
    lower = name.lower()
    if lower in ODD_FRAMING:  # never remembered, so this is met each time
        if request:
            raise WireError(Reason.BAD_FRAMING, "a field says a length or coding with '_' in its name")
        return lower
    if len(_names) < _MAX_NAMES and len(name) <= 64:
        _names[name] = lower
    return lower


def _other_method(word: bytes) -> str:
    fault = why_no_request(word)
    if fault is not None:
        raise fault
    if not is_token(word) or len(word) > MAX_METHOD:
        raise WireError(Reason.BAD_REQUEST, "the request does not begin with a method")
    return word.decode("ascii")


def _bad_request_line(line: bytes) -> WireError:
    # Only on the way to a refusal, so it can afford to say what exactly is wrong, and where the host was.
    fault = why_no_request(line or b"\r\n")
    if fault is not None:
        return fault
    method, _, rest = line.partition(b" ")
    target, space, version = rest.rpartition(b" ")
    if not space or not is_token(method):
        return WireError(Reason.BAD_REQUEST, "a request line is METHOD TARGET HTTP/1.1 with single spaces")
    if version not in _VERSIONS:
        if version[:5] == b"HTTP/":
            return WireError(Reason.BAD_VERSION, "the request line names another version")
        return WireError(Reason.BAD_REQUEST, "the request line does not end with HTTP/1.1 or HTTP/1.0")
    if method == b"CONNECT":
        authority = target
    else:
        scheme, separator, behind = target.partition(b"://")
        authority = behind.split(b"/", 1)[0] if separator and is_token(scheme) else b""
    if authority.translate(None, VCHAR):
        shown = shown_host(target)
        return WireError(Reason.BAD_HOST, "it has a space, a control byte or a byte outside ASCII", raw=shown)
    return WireError(Reason.BAD_REQUEST, "the target is empty, or has a space or a byte outside visible ASCII")


def _first_fault(buf: bytes | bytearray, start: int, limits: Limits, *, first_line: bool = True) -> WireError | None:
    # What makes `buf` no beginning of a head, judged at the first byte at which it shows; None while nothing does.
    # A bare LF shows at itself, a bare CR at the byte behind it, a bound at the first byte beyond it.
    fault = why_no_request(buf) if first_line else None
    if fault is not None:
        return fault
    stop = min(len(buf), limits.header_bytes)
    line_room = limits.target_bytes + _LINE_REST
    begin = max(start - 1, 0)
    bare = _bare_line_end(buf, begin, stop)
    passed = first_line and begin <= line_room + 1 < stop and not 0 <= bare <= line_room + 1
    if passed and buf.find(b"\r\n", 0, line_room + 2) < 0:
        return WireError(Reason.TARGET_TOO_LONG, f"the target is longer than {limits.target_bytes} bytes")
    if bare >= 0:
        what = "a line ends with LF alone" if buf[bare : bare + 1] == b"\n" else "there is a CR without LF"
        return WireError(Reason.BAD_REQUEST, what)
    if len(buf) >= limits.header_bytes and buf.find(_BLANK, 0, limits.header_bytes) < 0:
        return WireError(Reason.HEADERS_TOO_LARGE, f"the head is larger than {limits.header_bytes} bytes")
    return None


def _bare_line_end(buf: bytes | bytearray, begin: int, stop: int) -> int:
    # Index of the first LF without CR, or of the byte that follows a bare CR, in buf[begin:stop]; -1 for none.
    # `begin` is one byte before what is new, so that a pair split over two reads is seen whole.
    pairs = buf.count(b"\r\n", begin, stop)
    if buf.count(b"\n", begin, stop) == pairs and buf.count(b"\r", begin, stop) == pairs:
        return -1
    position = begin
    while position < stop:
        cr = buf.find(b"\r", position, stop)
        lf = buf.find(b"\n", position, stop)
        if lf >= 0 and (cr < 0 or lf < cr):
            if lf == 0 or buf[lf - 1] != 0x0D:
                return lf
            position = lf + 1
        elif cr >= 0:
            if cr + 1 >= stop:
                return -1  # what follows it is not here yet
            if buf[cr + 1] != 0x0A:
                return cr + 1
            position = cr + 2
        else:
            return -1
    return -1


def _of_upstream(detail: str) -> WireError:
    return WireError(Reason.UPSTREAM_RESPONSE, detail)


for _common in (
    b"Host User-Agent Accept Accept-Encoding Accept-Language Connection Proxy-Connection Content-Length Content-Type "
    b"Transfer-Encoding Authorization Cookie Date Server Cache-Control ETag Last-Modified Location Range Vary"
).split():
    _names[_common] = _names[_common.lower()] = _common.lower()
