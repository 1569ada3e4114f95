"""What a task holds in place of a secret: a text of the same shape that is worth nothing (INS-5).

Rules of the file:

* As long as the value, with everything but letters and digits where it was: lengths that were announced stay true when
  one takes the other's place, in percent-encoding, base64 and hex too (scrub.py), and a tool that looks at the shape of
  its key is content.
* A letter stands for a letter, a digit for a digit, hex for hex; only a prefix that many keys share (`ghp_`) is the
  value's own. Every other letter and digit is drawn anew, so nothing of the value is in it but its outline.
* Randomness comes in.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LEAST = 8  # letters and digits to draw: 36 bits for the poorest, enough not to meet one by chance
MOST = 4096  # bytes: no header field of the gate is larger than 64 KiB, and several have to fit

PREFIXES = (
    b"sk-ant-admin01-", b"sk-ant-api03-", b"sk-ant-oat01-", b"sk-ant-", b"sk-proj-", b"sk-svcacct-", b"sk-or-v1-",
    b"sk-", b"github_pat_", b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"glpat-", b"npm_", b"pypi-", b"rubygems_",
    b"xoxb-", b"xoxp-", b"xapp-", b"hf_", b"fk-", b"AIza", b"dop_v1_", b"sk_live_", b"sk_test_", b"rk_live_",
    b"cio", b"rk_test_",
)  # fmt: skip
"""What issuers begin their keys with, in their own documentation; programs look at it. The longest counts."""

_DIGITS = b"0123456789"
_LOWER = b"abcdefghijklmnopqrstuvwxyz"
_UPPER = _LOWER.upper()
_HEX = b"0123456789abcdef"


class UnfitError(ValueError):
    """A value that no placeholder can stand for; says why and what to do."""


def make_placeholder(value: bytes, draw: Callable[[int], int]) -> bytes:
    """Return a placeholder for a value. `draw(n)` gives a number below n, each as likely, that nobody can guess.

    Raises:
        UnfitError: for a value with other than visible ASCII, too short or too long; it does not repeat the value.
    """
    if value.lstrip()[:1] == b"{" or value.lstrip().startswith(b"-----BEGIN "):
        raise UnfitError(
            "the value is a key file, which signs, and a signature cannot be swapped: take a token that such a key"
            " gives, as by --from-command -- gcloud auth print-access-token"
        )
    if not all(0x21 <= byte <= 0x7E for byte in value):
        raise UnfitError("the value has a space, a control character or a letter beyond ASCII: encode it first")
    if len(value) > MOST:
        raise UnfitError(f"the value is longer than {MOST} bytes: it cannot stand in a header or query")
    kept = max((len(prefix) for prefix in PREFIXES if value.startswith(prefix)), default=0)
    rest = value[kept:]
    if sum(byte in _DIGITS or byte in _LOWER or byte in _UPPER for byte in rest) < LEAST:
        raise UnfitError(f"the value has fewer than {LEAST} letters and digits: nothing can safely stand for it")
    while True:
        made = value[:kept] + bytes(_like(rest, draw))
        if made != value:
            return made


def fits(value: bytes, placeholder: bytes) -> bool:
    """Whether a placeholder that was made for another value can stand for this one: they have one outline."""
    plain = _DIGITS + _LOWER + _UPPER
    return (
        len(value) == len(placeholder)
        and value != placeholder
        and all(
            one == other or (one in plain and other in plain) for one, other in zip(value, placeholder, strict=True)
        )
    )


def _like(rest: bytes, draw: Callable[[int], int]) -> list[int]:
    letters = {byte for byte in rest if byte in _DIGITS or byte in _LOWER or byte in _UPPER}
    if letters <= set(_HEX) and letters & set(_DIGITS):
        classes: tuple[bytes, ...] = (_HEX,)
    elif letters <= set(_HEX.upper()) and letters & set(_DIGITS):
        classes = (_HEX.upper(),)
    else:
        classes = (_DIGITS, _LOWER, _UPPER)
    if letters <= set(_DIGITS):
        classes = (_DIGITS,)
    made = []
    for byte in rest:
        alphabet = next((one for one in classes if byte in one), b"")
        made.append(alphabet[draw(len(alphabet))] if alphabet else byte)
    return made
