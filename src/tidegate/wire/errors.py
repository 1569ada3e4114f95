"""The one error of this room: what was wrong with the bytes, without ever repeating a secret.

`detail` and `raw` end up in answers, in the journal and on terminals. So both are printable ASCII, bounded,
and free of user names, passwords, header values and query strings (JRN-5); `escaped` is how raw bytes get there.
"""

from __future__ import annotations

from tidegate.model.destination import Destination
from tidegate.model.reason import Reason

MAX_SHOWN = 256  # bytes of a raw host in the journal (CASES, conventions)
MAX_LINE = 2048  # characters of a line for people

# Code points 0-255 as they may be shown; str.translate of the latin-1 text is one call for any length.
_SHOWN = {code: chr(code) if 0x20 <= code < 0x7F and code != 0x5C else f"\\x{code:02x}" for code in range(256)}

_ENDS = frozenset(b"/?#\\")  # of an authority; to some parsers the backslash too


class WireError(Exception):
    """The bytes are not what they must be.

    Attributes:
        reason: what the client is told and the journal records; its status is the answer's.
        detail: one clause for people that says what exactly is wrong.
        raw: the escaped host, with its port, as it was sent, where it never became a destination; else ''.
        destination: what the request line names, where that much was clear.
        reply: what to send before closing where the protocol has an answer of its own (SOCKS); else empty.
    """

    def __init__(
        self, reason: Reason, detail: str, *, raw: str = "", destination: Destination | None = None, reply: bytes = b""
    ) -> None:
        detail = printable(detail)
        super().__init__(f"{reason.word}: {detail}")
        self.reason = reason
        self.detail = detail
        self.raw = raw
        self.destination = destination
        self.reply = reply

    def sentence(self) -> str:
        """One line for people."""
        shown = str(self.destination) if self.destination is not None else self.raw
        line = f"{self.reason.sentence}: {self.detail} [{self.reason.word}]"
        return f"{shown}: {line}" if shown else line


class MethodFieldError(WireError):
    """A body asks for another method, or may."""

    def __init__(self, what: str) -> None:
        super().__init__(
            Reason.METHOD_NOT_ALLOWED,
            f"{what}; the rule lets POST pass here, and not all of PUT, PATCH and DELETE",
        )


def printable(text: str, limit: int = MAX_LINE) -> str:
    """Return a sentence of ours as one line of printable ASCII; most are, so this mostly returns `text` itself."""
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    return "".join(char if " " <= char <= "~" else "..." if char == "…" else "?" for char in text)[:limit]


def escaped(raw: bytes | str, limit: int = MAX_SHOWN) -> str:
    r"""Return `raw` as printable ASCII of at most `limit` characters; other bytes, and '\', become `\xNN`."""
    data = raw[:limit].encode("utf-8", "surrogateescape") if isinstance(raw, str) else bytes(raw[:limit])
    text = data.decode("latin-1").translate(_SHOWN)
    if len(text) <= limit:
        return text
    text = text[:limit]
    # Never end in the middle of an escape.
    cut = text.rfind("\\", limit - 3)
    return text[:cut] if cut >= 0 else text


def shown_host(raw: bytes) -> str:
    """Return what of a malformed URL or authority may be shown: the host and port, escaped.

    Never a user name with a password, a path or a query, also where it is unclear which is which.
    """
    scheme, separator, behind = raw.partition(b"://")
    text = behind if separator and not _ENDS.intersection(scheme) else raw
    end = next((at for at, byte in enumerate(text) if byte in _ENDS), len(text))
    host, rest = text[:end], text[end:]
    if b"@" in host:
        host = host.rpartition(b"@")[2]
    elif b"@" in rest and host[:1] != b"[":
        host = host.partition(b":")[0]  # `name:part-of-a-password/…@host`, perhaps
    return escaped(host)
