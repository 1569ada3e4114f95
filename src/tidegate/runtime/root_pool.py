"""Root certificates, each once: a start has the same ones from a dozen variables, a folder and Java's own store.

Rules of the file:

* What a certificate is, is its DER: one that stands in two files with lines of different widths is one.
* Its text stays as it stood, but for white space around its lines. A block that is no certificate stays as well: what
  it was worth to whom read it before, it is worth now.
* All of it is bytes, and each text is gone through once: every start waits for this.
"""

from __future__ import annotations

from binascii import a2b_base64

from tidegate.inspect import der

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n"


class RootPool:
    """Certificates in the order in which they came. `files` are those that were read, by device and inode."""

    __slots__ = ("_found", "_texts", "files")

    def __init__(self, text: str = "") -> None:
        self._found: dict[bytes, bytes] = {}  # DER to what stands between the lines of a PEM block
        self._texts: set[bytes] = set()  # what stood so before: a folder of roots has those of a bundle, to the letter
        self.files: set[tuple[int, int]] = set()
        if text:
            self.add(text.encode("latin-1", "replace"))

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, data: bytes) -> None:
        """Take the certificates of a text, whatever is written around them (RFC 7468)."""
        clean = not any(sign in data for sign in (b" ", b"\r", b"\t"))  # as nearly every bundle is
        found = self._found
        for part in data.split(_BEGIN)[1:]:
            body, end, _ = part.partition(_END)
            if not end or body in self._texts:
                continue
            self._texts.add(body)
            if not clean and body.translate(None, _PLAIN):
                body = b"\n%b\n" % b"\n".join([line.strip() for line in body.splitlines()]).strip()
            try:
                found.setdefault(a2b_base64(body), body)
            except ValueError:
                found.setdefault(body, body)

    def add_der(self, certificates: Iterable[bytes]) -> None:
        """Take certificates that are DER."""
        for one in certificates:
            if one not in self._found:
                self._found[one] = der.pem(one)[len(_BEGIN) : -len(_END) - 1].encode()

    def copy(self) -> RootPool:
        """Return the same certificates, to be added to."""
        made = RootPool()
        made._found = self._found.copy()
        made._texts = self._texts.copy()
        made.files = self.files.copy()
        return made

    def certificates(self) -> list[bytes]:
        """Return what is a certificate, as DER."""
        return [one for one in self._found if der.is_whole(one)]

    @property
    def pem(self) -> str:
        """All of them as PEM."""
        return b"".join([b"%b%b%b\n" % (_BEGIN, text, _END) for text in self._found.values()]).decode("latin-1")
