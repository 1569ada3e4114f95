"""Puts placeholders in place of values in what flows back to a task (INS-5; CASES B118, B119).

Invariant: whole or in pieces of any size, the same bytes come out; no byte is held back that cannot be the beginning
of a value, so an event stream is as prompt as without.

Forms that are found, all as long as what takes their place: the value itself, percent-encoded, with the escapes of JSON
and HTML, twice by the same writer (JSON in a string of JSON, a URL in a URL), as a string of JSON in any of them, in
UTF-16, in hex, and within base64 of either alphabet at each of the three places it can have there, as it is and once
escaped. Of characters that writers are not agreed on (a base64 key's `+`, `/` and `=`, a query's `&`) each usual choice
is a form.
In base64 the first and last character may share bits with their neighbours and stay: they tell at most six bits of the
value's first and last byte. Where a stand-in's base64 has other escapes than the value's, `x` stand in its place.

What it does not find: a value in pieces (in lines too), reversed, in another case, encrypted, escaped three times or
by two writers. A server that is trusted with a secret can hand it on in a form nobody recognises; this keeps honest
echoes from a task, nothing more.
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

_WORD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._")
_PERCENT = tuple(
    frozenset(range(0x100)) - kept
    for kept in (
        _WORD | set(b"~"),  # RFC 3986: Go, Python, Rust
        _WORD | set(b"~/"),  # Python's quote
        _WORD | set(b"*"),  # a form's, by the URL standard, and Java
        _WORD | set(b"~!'()*"),  # encodeURIComponent
        _WORD | set(b"~!'()*;/?:@&=+$,#"),  # encodeURI
        set(range(0x20, 0x7F)) - set(b"%"),  # grpc-message
    )
)
"""What writers of percent-encoding escape."""
_JSON = (
    b"<>&",  # Go, Rails
    b"<>&'",  # Jinja, Django
    b"<>&'=",  # Gson
    b"<>&'\"+`",  # System.Text.Json
    b"<>&'\"",  # PHP's JSON_HEX_*
    b"<>&'=+\"\\",
)
"""What writers of JSON escape so that it can stand in HTML."""
_BACKSLASHED = {ord('"'): b'\\"', ord("\\"): b"\\\\"}
_AMP = {ord("&"): b"&amp;", ord("<"): b"&lt;", ord(">"): b"&gt;"}
_HTML: tuple[dict[int, bytes], ...] = (
    _AMP,
    _AMP | {ord('"'): b"&quot;"},
    _AMP | {ord('"'): b"&quot;", ord("'"): b"&#39;"},  # Ruby, Node's
    _AMP | {ord('"'): b"&quot;", ord("'"): b"&#x27;"},  # Python
    _AMP | {ord('"'): b"&quot;", ord("'"): b"&#039;"},  # PHP
    _AMP | {ord('"'): b"&#34;", ord("'"): b"&#39;"},  # Go, Jinja
    _AMP | {ord('"'): b"&#34;", ord("'"): b"&#39;", ord("+"): b"&#43;"},  # Go's templates
    _AMP | {ord('"'): b"&quot;", ord("'"): b"&#x27;", ord("+"): b"&#x2B;"},  # ASP.NET
)
_HEAD = 16  # bytes
_SAME = 4


class Scrubber:
    """What is looked for, prepared once for a task's secrets. `pairs` are values with what takes their place."""

    __slots__ = ("_by_first", "_longest", "_search", "_table")

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        table: dict[bytes, bytes] = {}
        for value, placeholder in pairs:
            if len(value) != len(placeholder):
                raise ValueError("a placeholder has the outline of its value")
            for found, put in zip(forms(value), forms(placeholder), strict=True):
                table.setdefault(found, put if len(found) == len(put) else b"x" * len(found))
        longest_first = sorted(table, key=len, reverse=True)
        self._table = table
        self._search = _any_of(longest_first).search
        self._longest = len(longest_first[0]) if longest_first else 0
        self._by_first: dict[int, list[bytes]] = {}
        for form in longest_first:
            self._by_first.setdefault(form[0], []).append(form)

    def stream(self) -> Scrub:
        """Begin one body."""
        return Scrub(self)

    def all(self, data: bytes) -> bytes:
        """Return what is whole, a header field say, without values."""
        done, at = self.replace(data, ())
        return done + data[at:]

    def undecided(self, data: bytes) -> list[int]:
        """Return where in the data something begins that could become longer than it is."""
        found = []
        for at in range(max(0, len(data) - self._longest + 1), len(data)):
            forms = self._by_first.get(data[at])
            if forms:
                head = data[at : at + _HEAD]  # nearly all that begin alike differ here, and a tail is long to copy
                if any(
                    form.startswith(head) and len(form) > len(data) - at and form.startswith(data[at:])
                    for form in forms
                ):
                    found.append(at)
        return found

    def replace(self, data: bytes, undecided: Iterable[int]) -> tuple[bytes, int]:
        """Return what can be passed on, and where in the data it ends."""
        done: list[bytes] = []
        at = 0
        waiting = iter(undecided)
        hold = next(waiting, len(data))
        while match := self._search(data, at):
            while hold < at:
                hold = next(waiting, len(data))
            if match.start() >= hold:
                break  # it may be the beginning of a longer one
            done += (data[at : match.start()], self._table[match[0]])
            at = match.end()
        while hold < at:
            hold = next(waiting, len(data))
        done.append(data[at:hold])
        return b"".join(done), hold


class Scrub:
    """One body on its way back."""

    __slots__ = ("_carry", "_scrubber")

    def __init__(self, scrubber: Scrubber) -> None:
        self._scrubber = scrubber
        self._carry = b""

    def feed(self, data: bytes) -> bytes:
        """Take bytes; return what can be passed on."""
        whole = self._carry + data
        done, at = self._scrubber.replace(whole, self._scrubber.undecided(whole))
        self._carry = whole[at:]
        return done

    def end(self) -> bytes:
        """Return what is left."""
        carry, self._carry = self._carry, b""
        return self._scrubber.all(carry)


def _any_of(longest_first: list[bytes]) -> re.Pattern[bytes]:
    """Return a pattern of any of these. Most begin alike: what a text begins with is compared once for all of them."""
    behind: dict[bytes, list[bytes]] = {}
    for form in longest_first:
        behind.setdefault(form[:_SAME], []).append(re.escape(form[_SAME:]))
    groups = (re.escape(begin) + b"(?:" + b"|".join(ends) + b")" for begin, ends in behind.items())
    return re.compile(b"|".join(groups) or b"(?!)")


def forms(value: bytes) -> list[bytes]:
    """Return the forms of a value, in the same order for each value of the same outline; many are often the same."""
    once = _written(value)
    found = [value, *once]
    if _needs_escapes(value):
        found += [write(one) for write, one in zip(_WRITERS, once, strict=True)]
        found += _written(_json(value, b"", ""))
    found += [value.hex().encode(), value.hex().upper().encode()]
    found += [value.decode("latin-1").encode(wide) for wide in ("utf-16-le", "utf-16-be")]
    for offset in range(3):
        for encode in (b64encode, urlsafe_b64encode):
            encoded = _within(encode(bytes(offset) + value), offset, len(value))
            found += [encoded, *_written(encoded)]
    return found


def _written(text: bytes) -> list[bytes]:
    """Return what each writer makes of a text."""
    if not _needs_escapes(text):
        return [text] * len(_WRITERS)
    return [write(text) for write in _WRITERS]


def _needs_escapes(text: bytes) -> bool:
    return bool(text.translate(None, bytes(_WORD)))


def _percent(text: bytes, taken: Container[int], template: str) -> bytes:
    return _escaped(text, taken, template, {})


def _json(text: bytes, taken: Container[int], template: str) -> bytes:
    return _escaped(text, taken, template, _BACKSLASHED)


def _json_with_slashes(text: bytes, taken: Container[int], template: str) -> bytes:
    return _json(text, taken, template).replace(b"/", b"\\/")


def _html(text: bytes, named: Mapping[int, bytes]) -> bytes:
    return b"".join(named.get(byte) or bytes((byte,)) for byte in text)


def _escaped(text: bytes, taken: Container[int], template: str, others: Mapping[int, bytes]) -> bytes:
    written = {
        byte: template.format(byte).encode() if byte in taken else others.get(byte) or bytes((byte,))
        for byte in set(text)
    }
    return b"".join(map(written.__getitem__, text))


_WRITERS: list[Callable[[bytes], bytes]] = [
    *(partial(_percent, taken=taken, template=one) for one in ("%{:02X}", "%{:02x}") for taken in _PERCENT),
    *(
        partial(write, taken=taken, template=one)
        for one in ("\\u{:04x}", "\\u{:04X}")
        for taken in (b"", *_JSON)
        for write in (_json, _json_with_slashes)
    ),
    *(partial(_html, named=named) for named in _HTML),
]


def _within(encoded: bytes, offset: int, length: int) -> bytes:
    """Return the characters that depend on the value alone."""
    return encoded[-(-offset * 8 // 6) : (offset + length) * 8 // 6]
