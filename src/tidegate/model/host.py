"""The one place where a host becomes canonical (POL-3).

CONNECT targets, absolute URLs, SOCKS requests, SNI, Host headers, DNS questions and the ASCII form of rule
texts all pass through `canonical_host`; comparing hosts is comparing its results. Rules of the file:

* A name is ASCII lower case with one final dot dropped. Nothing is percent-decoded, nothing is mapped.
* A name holds only `[A-Za-z0-9._-]`; anything else is malformed before any rule, look-up or question.
* What looks like a number (last label all digits, or 0x and hex) is a canonical dotted quad or malformed:
  `getaddrinfo` would turn `127.1`, `0x7f.1` and `2130706433` into 127.0.0.1 behind the matcher's back.
* An IPv6 literal stands in exactly one pair of brackets, without a zone.

Sources: RFC 1123 section 2.1 (letters, digits, hyphen), RFC 1035 section 2.3.4 (63 and 253 bytes), RFC 3986
section 3.2.2 (IP-literal), RFC 5952 (canonical text of IPv6). Underscores are allowed in requests because
real names carry them.
"""

from __future__ import annotations

from _socket import AF_INET6, inet_ntop, inet_pton

from tidegate.model.value import Value

MAX_NAME = 253  # RFC 1035 section 2.3.4, in the text form without the final dot
MAX_LABEL = 63

_NAME_BYTES = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._-")
_DIGITS = frozenset("0123456789")
_HEX = frozenset("0123456789abcdef")


class HostError(ValueError):
    """The text is no host. `what` is one clause that says why, for people."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def bracketed(host: str) -> str:
    """Return a host as it stands before a port: an IPv6 address in brackets, since its own colons are no port's."""
    return f"[{host}]" if ":" in host else host


class Host(Value):
    """A canonical host.

    `text` is a lower-case name, a dotted quad, or an IPv6 literal in RFC 5952 form *without* brackets.
    `packed` is None for a name, else the 4 or 16 bytes of the literal.
    """

    text: str
    packed: bytes | None = None

    @property
    def is_literal(self) -> bool:
        """Whether this is an address and not a name."""
        return self.packed is not None

    @property
    def bracketed(self) -> str:
        """The text as it stands in a URL or before a port."""
        return f"[{self.text}]" if self.packed is not None and len(self.packed) == 16 else self.text

    @property
    def fits_a_rule(self) -> bool:
        """Whether a rule can name this host: in rules no label begins or ends with '-' (POL-2)."""
        dotted = f".{self.text}."
        return self.packed is not None or not (".-" in dotted or "-." in dotted)


def canonical_host(raw: bytes | str) -> Host:
    """Return the canonical form of a request host: a name, a dotted quad or a bracketed IPv6 literal.

    Raises:
        HostError: for everything else; the message says what is wrong with it.
    """
    if isinstance(raw, str):
        text = raw
        if not text.isascii():
            raise HostError("it has bytes outside ASCII; send the A-label (xn--…) form")
    else:
        try:
            text = raw.decode("ascii")
        except UnicodeDecodeError:
            raise HostError("it has bytes outside ASCII; send the A-label (xn--…) form") from None
    if text[:1] == "[":
        return _bracketed_literal(text)
    text = text.lower()
    if not _NAME_BYTES.issuperset(text):
        raise HostError(_odd_byte(text))
    if text[-1:] == ".":
        text = text[:-1]
    if not text:
        raise HostError("it is empty")
    if len(text) > MAX_NAME:
        raise HostError(f"it is longer than {MAX_NAME} bytes")
    labels = text.split(".")
    for label in labels:
        if not label:
            raise HostError("it has an empty label")
        if len(label) > MAX_LABEL:
            raise HostError(f"it has a label longer than {MAX_LABEL} bytes")
    if looks_numeric(labels[-1]):
        return Host(text, _dotted_quad(text, labels))
    return Host(text)


def looks_numeric(last_label: str) -> bool:
    """Whether a host with this last label would be read as an IPv4 number by a C resolver."""
    return _DIGITS.issuperset(last_label) or (last_label[:2] == "0x" and _HEX.issuperset(last_label[2:]))


def _dotted_quad(text: str, labels: list[str]) -> bytes:
    # Strict: four decimal numbers below 256, no leading zero (inet_aton would read 010 as 8).
    if len(labels) == 4 and all(
        _DIGITS.issuperset(label) and len(label) <= 3 and (label == "0" or label[0] != "0") and int(label) < 256
        for label in labels
    ):
        return bytes(int(label) for label in labels)
    raise HostError(f"{text!r} looks like a number but is no canonical IPv4 address")


def _bracketed_literal(text: str) -> Host:
    inside = text[1:-1]
    if text[-1:] != "]" or "[" in inside or "]" in inside:
        raise HostError("an IPv6 literal stands in exactly one pair of brackets")
    if "%" in inside:
        raise HostError("an IPv6 literal has no zone here")
    try:
        packed = inet_pton(AF_INET6, inside)
    except (OSError, ValueError):
        raise HostError("what stands in the brackets is no IPv6 address") from None
    return Host(inet_ntop(AF_INET6, packed), packed)


def _odd_byte(text: str) -> str:
    odd = next(char for char in text if char not in _NAME_BYTES)
    if odd == ":":
        return "it has a ':'; an IPv6 literal needs brackets"
    return f"it has {odd!a}, and a host holds only letters, digits, '.', '-' and '_'"
