"""Fields of a request's body by which frameworks take a POST for another method, found as it streams (INS-6).

Rails, Laravel, Symfony, Spring, ASP.NET and Express take `_method` of a form for the method where they are told to,
some `X-HTTP-Method-Override` or, as graph APIs do, `method=delete`. So under a rule that lets a POST pass and not what
it may be taken for, a form or JSON with such a field stops, before the first byte of the field is passed on: what the
server has is the beginning of a form without it, which is a POST.

Rules of the file:

* Names are met as servers read them: percent-encoded, in either case, with the escapes of JSON and of quoted strings,
  and with the spellings that PHP makes one (blanks in front, `.`, blank, `[` and `-` for `_`).
* No byte is passed on before so many have come behind it that a field which begins there would have shown. Whole or in
  pieces of any size, the same is found.
* What readers may decode in another way is not looked through but refused: compressed, in another charset, two types.

A value is not judged, so `_method=put` stops where PUT is allowed and DELETE is not: who sends it can send PUT. A file
in a form, with such a field written in it (`name="_method"`), stops too.
"""

from __future__ import annotations

import re

from tidegate.wire.errors import MethodFieldError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST = 256  # bytes from the sign before a field to where it is known: 23 letters at six bytes, and what stands between
_BLANKS = 8  # in front of a name; more have no use
_NAMES = ("_method", "x_http_method", "x_method_override")  # the middle one begins two
_VALUES = ("delete", "patch", "put")  # of a parameter `method`, which is a usual name
_GAP = r"(?:[_.+ \[-]|%(?:5f|2e|2b|20|5b|2d))"
_TO_UPPER = 0x20
_WORTH = re.compile(rb"method|[%\\]|[&;][+ \t\r\n]")  # where none of it is, nothing more has to be looked for
_CHARSETS = frozenset((b"utf-8", b"us-ascii", b"iso-8859-1"))  # in which names are the bytes that they are in ASCII


def _escaped(word: str, template: str, gap: str = _GAP) -> str:
    return "".join(
        gap
        if letter == "_"
        else f"(?:{letter}|{template.format(ord(letter))}|{template.format(ord(letter) - _TO_UPPER)})"
        for letter in word
    )


def _quoted(word: str) -> str:
    return "".join(r"\\?[_. \[-]" if letter == "_" else rf"\\?{letter}" for letter in word)


def _any(words: Iterable[str]) -> str:
    return f"(?:{'|'.join(words)})"


def _found(*parts: str) -> re.Pattern[bytes]:
    return re.compile("".join(parts).encode("ascii"))


_PERCENT = [_escaped(name, "%{:02x}") for name in _NAMES]
_BLANK = r"(?:[+ \t\r\n]|%(?:20|09|0a|0b|0c|0d))"
_METHOD_IS = f"{_escaped('method', '%{:02x}')}={_any(_escaped(value, '%{:02x}') for value in _VALUES)}"
_FORM = _found("[&;]", _any((f"{_BLANK}{{{_BLANKS + 1}}}", f"{_BLANK}{{0,{_BLANKS}}}{_any((*_PERCENT, _METHOD_IS))}")))
_JSON = _found(r'(?<!\\)"', _any(_escaped(name, r"\\u{:04x}", r"(?:[_-]|\\u005f|\\u002d)") for name in _NAMES))
# A part that is called `method`, the rest of its headers, and what it says.
_METHOD_SAYS = rf"{_quoted('method')}[\"']?[^\r\n]{{0,40}}\r?\n(?:[^\r\n]{{1,60}}\r?\n)?\r?\n{_any(_VALUES)}"
_PART = _found(
    r"(?<![a-z])name\*?\s{0,8}=\s{0,8}(?:[a-z0-9-]{1,20}'[a-z-]{0,20}')?[\"']?\s{0,8}",
    _any((r"\s", *_PERCENT, *map(_quoted, _NAMES), _METHOD_SAYS)),
)


_KINDS = ((b"x-www-form-urlencoded", _FORM), (b"multipart/", _PART), (b"json", _JSON))


class MethodFields:
    """One body on its way up. Where it meets a field it raises, and passes on nothing more."""

    __slots__ = ("_begun", "_carry", "_pattern", "resized")

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self._carry = b"&" if pattern is _FORM else b""  # a form begins as behind a sign between its fields
        self._begun = bool(self._carry)
        self.resized = False

    @property
    def pending(self) -> bool:
        """Whether `more` may have something: never."""
        return False

    def feed(self, data: bytes) -> bytes:
        """Take bytes; return what can be passed on.

        Raises:
            MethodFieldError: METHOD_NOT_ALLOWED where a field asks for another method.
        """
        whole = self._carry + data
        lower = whole.lower()  # in which all is looked for
        if _WORTH.search(lower) and self._pattern.search(lower):
            raise MethodFieldError("a field of its body asks for another method")
        cut = max(0, len(whole) - _MOST)
        if whole[cut - 1 : cut] == b"\\":
            cut -= 1  # it belongs to what stands behind it
        self._carry = whole[cut:]
        return self._without_sign(whole[:cut])

    put = feed

    def more(self) -> bytes:
        """Return nothing."""
        return b""

    def end(self) -> bytes:
        """Return what is left."""
        carry, self._carry = self._carry, b""
        return self._without_sign(carry)

    def _without_sign(self, data: bytes) -> bytes:
        if self._begun and data:
            self._begun = False
            return data[1:]
        return data


def method_fields(fields: Iterable[tuple[bytes, bytes]]) -> MethodFields | None:
    """Return what looks through the body of a POST with these header fields; None where nobody reads fields in it.

    Raises:
        MethodFieldError: nobody can say what a server would read.
    """
    named: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        named.setdefault(name.lower().replace(b"_", b"-"), []).append(value.strip().lower())
    types = named.get(b"content-type", [])
    whole = types[0] if types else b""
    # As the most lenient of servers: PHP ends a type at a blank, Laravel takes for JSON what has the word in it.
    kind = re.split(rb"[;, \t]", whole, maxsplit=1)[0]
    patterns = {pattern for word, pattern in _KINDS if word in whole}
    if not kind:
        patterns.add(_FORM)  # Rack reads a POST without a type as one
    if not patterns:
        return None
    if len(types) > 1 or len(patterns) > 1 or b"," in whole.partition(b";")[0]:
        raise MethodFieldError("its body has two types, and may ask for another method")
    (pattern,) = patterns
    codings = [value for value in named.get(b"content-encoding", []) if value not in {b"", b"identity"}]
    if codings:
        raise MethodFieldError("its body is compressed, and may ask for another method: send it plain")
    charset = re.search(rb"charset\s*=\s*[\"']?([^\"';\s]*)", whole)
    if charset is not None and charset[1] not in _CHARSETS:
        raise MethodFieldError("its body is in another charset than UTF-8, and may ask for another method")
    return MethodFields(pattern)
