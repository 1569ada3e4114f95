"""The normal form of a request's path, and the headers that say another one (INS-6).

Rules of the file:

* A path is judged in its normal form: percent-encodings of letters, digits, `-`, `_` and `~` count as these (RFC 3986
  section 6.2.2.2). What two servers could read differently matches no pattern: dot segments, also with parameters,
  blanks or encoded, empty segments, fragments, backslashes, bytes beyond ASCII, and encodings of slash, backslash,
  percent, controls, what only an overlong UTF-8 sequence begins with, or a sign that looks like a dot or slash. It is
  refused, never repaired.
* A parameter of the query by which frameworks take another method counts as that one too: Jersey, Symfony, WordPress
  and ASP.NET read such. `method` is a usual name, and counts only where it names one. The rest of a query is not looked
  at.
* A header by which some servers take another method or target than the request line's counts as that one. Servers
  that hand headers on as variables (RFC 3875 section 4.1.18) see no difference between '-' and '_' in its name.

What passes is alternatives.py.
"""

from __future__ import annotations

# No encoded dot, slash, backslash, percent or control; nothing that begins an overlong sequence (RFC 3629 section 3);
# no sign that compatibility (NFKC) or a code page makes a dot, slash or backslash: U+FF0E, FF0F, FF3C, FE52,
# FE68, 2024 to 2026, 2044, 2215, 2216.
_AMBIGUOUS = (
    *(b"//", b"#", b"\\", b"%2e", b"%2f", b"%5c", b"%25", b"%0", b"%1", b"%7f"),
    *(b"%c0", b"%c1", b"%e0%8", b"%e0%9", b"%f0%8", b"%f8%8", b"%fc%8"),
    *(b"%ef%bc%8e", b"%ef%bc%8f", b"%ef%bc%bc", b"%ef%b9%92", b"%ef%b9%a8"),
    *(b"%e2%80%a4", b"%e2%80%a5", b"%e2%80%a6", b"%e2%81%84", b"%e2%88%95", b"%e2%88%96"),
)
_DOTS = frozenset((b".", b".."))
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~")
_HEX = frozenset(b"0123456789abcdefABCDEF")


def _spellings(name: bytes) -> list[bytes]:
    first, *rest = name.split(b"-")
    found = [first]
    for part in rest:
        found = [begun + sign + part for begun in found for sign in (b"-", b"_")]
    return found


TARGETS = frozenset((*_spellings(b"x-original-url"), *_spellings(b"x-rewrite-url")))
OVERRIDES = TARGETS.union(
    _spellings(b"x-http-method-override"), _spellings(b"x-method-override"), _spellings(b"x-http-method")
)
"""Headers by which frameworks let a request say another method or target; of the latter kind are TARGETS."""


_SAYS_METHOD = frozenset(one.replace(b"_", b"-") for one in OVERRIDES - TARGETS) | {b"-method"}
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_ONE_TO_PHP = bytes.maketrans(b" .[_", b"----")  # in names of parameters


def methods_in_query(target: bytes) -> list[str]:
    """Return the methods that parameters of a target's query say, in capitals."""
    query = target.partition(b"?")[2]
    if not query or (b"%" not in query and b"ethod" not in query.lower()):
        return []
    found = []
    for one in query.replace(b";", b"&").split(b"&"):
        name, _, value = one.partition(b"=")
        called = _unquoted(name).partition(b"\0")[0].lstrip().lower().translate(_ONE_TO_PHP)
        if called in _SAYS_METHOD or called == b"method":
            said = _unquoted(value).strip().upper().decode("latin-1")
            if said and (called != b"method" or said in _METHODS):
                found.append(said)
    return found


def _unquoted(text: bytes) -> bytes:
    first, *rest = text.replace(b"+", b" ").split(b"%")
    parts = [first]
    for part in rest:
        digits = part[:2]
        if len(digits) == 2 and _HEX.issuperset(digits):
            parts.append(bytes((int(digits, 16),)) + part[2:])
        else:
            parts.append(b"%" + part)
    return b"".join(parts)


def normal_path(target: bytes) -> list[str] | None:
    """Return the segments of a target's path in normal form, the first one empty; None where it is ambiguous."""
    path = target.partition(b"?")[0]
    lower = path.lower()
    if path[:1] != b"/" or not path.isascii() or any(sign in lower for sign in _AMBIGUOUS):
        return None
    if b"%" in path:
        decoded = _decoded(path)
        if decoded is None:
            return None
        path = decoded
    segments = path.split(b"/")
    for segment in segments:
        # `..;x` is a dot segment to servers that cut parameters off first, `..%20` to those that cut blanks off.
        if b"%3B" in segment or segment.partition(b";")[0].replace(b"%20", b"") in _DOTS:
            return None
    return [segment.decode("latin-1") for segment in segments]


def _decoded(path: bytes) -> bytes | None:
    # Encodings of unreserved bytes as these bytes, the others with capital digits; None where one is malformed.
    first, *rest = path.split(b"%")
    parts = [first]
    for part in rest:
        digits = part[:2]
        if len(digits) < 2 or not _HEX.issuperset(digits):
            return None
        byte = int(digits, 16)
        parts.append((bytes((byte,)) if byte in _PLAIN else b"%" + digits.upper()) + part[2:])
    return b"".join(parts)
