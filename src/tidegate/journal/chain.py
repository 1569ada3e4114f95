"""The lines of the action log as a chain, each sealed (JRN-2). Pure: bytes in, bytes out.

    {"seq":7,"at":"2026-11-29T00:00:00.125Z","type":"task.created","task":"...",...,"prev":"<64 hex>","seal":"<32 hex>"}

Rules of the file:

* `prev` is the SHA-256 of the whole line before, its newline left out; the first line's is `GENESIS`.
* `seal` is an HMAC-SHA-256 (RFC 2104, its first 128 bits) of everything before it, with a key that no task can read.
  So a line that was changed or made by anyone else is known by itself, and the order of lines by `seq` and `prev`.
* The bytes are what is hashed, not the JSON they stand for: any changed byte shows.
* A `Head` says how far the log reaches. It is kept beside the key, sealed as well, so that a cut tail shows.

What a chain cannot show: what someone did who has the key, and lines younger than the last head that were cut.
"""

from __future__ import annotations

import hashlib
import hmac
import json

from tidegate.journal.line import timestamp
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

GENESIS = "0" * 64
KEY_BYTES = 32
MAX_LIST = 8192  # characters of all values of a list
MAX_ITEMS = 256
MAX_TEXT = 2048  # characters of one value; what is longer is cut, so that a line stays a line
_SEAL_DIGITS = 32
_SEAL_OPENS = b',"seal":"'
_SEAL_SIZE = len(_SEAL_OPENS) + _SEAL_DIGITS + len(b'"}')
_OWN_KEYS = frozenset(("seq", "at", "type", "task", "prev", "seal"))


class Head(Value):
    """How far a log reaches: its last line's number and hash, and what its first kept line must be.

    An empty log has `seq` 0 and `GENESIS`.
    """

    seq: int = 0
    hash: str = GENESIS
    first: int = 1
    first_prev: str = GENESIS


class SealedLine(Value):
    """One line as it was read. `fields` is None where it is no sealed line of this key; `hash` is its own."""

    hash: str
    fields: dict[str, Any] | None

    @property
    def seq(self) -> int:
        """Return its number, 0 where it has none."""
        seq = self.fields.get("seq") if self.fields is not None else None
        return seq if isinstance(seq, int) else 0


def line_hash(line: bytes) -> str:
    """Return the hash by which the next line names this one; `line` is without its newline."""
    return hashlib.sha256(line).hexdigest()


def make_line(head: Head, key: bytes, at: float, kind: str, task: str, fields: dict[str, Any]) -> tuple[bytes, Head]:
    """Return the next line of a log, its newline included, and the head after it. `at` is Unix time in seconds.

    Raises:
        ValueError: when a field has the name of one of the chain's own, or a value that JSON has no form for.
        TypeError: when a value is no plain data.
    """
    if not _OWN_KEYS.isdisjoint(fields):
        raise ValueError(f"a field is named {min(_OWN_KEYS & fields.keys())!r}, which is the chain's own")
    seq = head.seq + 1
    whole = {"seq": seq, "at": timestamp(at), "type": kind, "task": task}
    whole |= {name: _bounded(value) for name, value in fields.items()}
    whole["prev"] = head.hash
    body = json.dumps(whole, separators=(",", ":"), allow_nan=False).encode("ascii")[:-1]
    line = body + _SEAL_OPENS + _seal(key, body) + b'"}'
    return line + b"\n", head.replace(seq=seq, hash=line_hash(line))


def read_line(line: bytes, key: bytes) -> SealedLine:
    """Read one line, without its newline. Never raises: what is no line of this key has no fields."""
    own = line_hash(line)
    body, tail = line[:-_SEAL_SIZE], line[-_SEAL_SIZE:]
    if not hmac.compare_digest(tail, _SEAL_OPENS + _seal(key, body) + b'"}'):
        return SealedLine(own, None)
    try:
        fields = json.loads(line)
    except ValueError:
        return SealedLine(own, None)
    return SealedLine(own, fields if isinstance(fields, dict) else None)


def head_text(head: Head, key: bytes) -> bytes:
    """Return a head as one sealed line, without a newline."""
    body = json.dumps(_plain(head), separators=(",", ":")).encode("ascii")[:-1]
    return body + _SEAL_OPENS + _seal(key, body) + b'"}'


def read_head(text: bytes, key: bytes) -> Head | None:
    """Return the head that `head_text` wrote with this key, None for anything else."""
    fields = read_line(text, key).fields
    if fields is None or set(fields) != {"head", "hash", "first", "first_prev", "seal"}:
        return None
    return Head(fields["head"], fields["hash"], fields["first"], fields["first_prev"])


def _plain(head: Head) -> dict[str, Any]:
    # `head` and not `seq`: a head is never taken for a line of the log, sealed as both are.
    return {"head": head.seq, "hash": head.hash, "first": head.first, "first_prev": head.first_prev}


def _seal(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, body, "sha256").hex()[:_SEAL_DIGITS].encode("ascii")


def _bounded(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return value[: MAX_TEXT - 1] + "…"
    if isinstance(value, list | tuple):
        return _bounded_list(value)
    return value


def _bounded_list(values: Sequence[Any]) -> list[Any]:
    # A command can have two megabytes of arguments, and the end of a log is looked for in its last one.
    kept: list[Any] = []
    left = MAX_LIST
    for value in values:
        part = _bounded(value)
        left -= len(part) if isinstance(part, str) else 1
        if left < 0 or len(kept) == MAX_ITEMS:
            return [*kept, "…"]
        kept.append(part)
    return kept
