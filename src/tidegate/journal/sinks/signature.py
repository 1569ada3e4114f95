"""The signature of what tidegate posts, and the key files of what it reaches.

`Tidegate-Signature` is `v1=` and the hex HMAC-SHA256, under the operator's key, of the value of `Tidegate-Timestamp`
(Unix seconds), a full stop and the body: the same for questions (docs/webhook.md) and for the log (docs/sinks.md).
"""

from __future__ import annotations

import hmac
import os
import stat
from hashlib import sha256
from typing import Final

from tidegate.model.errors import StartError

SHORTEST_KEY: Final = 16  # bytes of a key that signs
LONGEST_KEY: Final = 4096


def signed(key: bytes, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of a message."""
    digest = hmac.new(key, b"%d." % timestamp + body, sha256).hexdigest()
    return {
        "Content-Type": "application/json",
        "User-Agent": "tidegate",
        "Tidegate-Timestamp": str(timestamp),
        "Tidegate-Signature": f"v1={digest}",
    }


def read_key(
    path: str, name: str = "--webhook-key-file", shortest: int = SHORTEST_KEY, longest: int = LONGEST_KEY
) -> bytes:
    """Return the key in a file; `name` is how a person named it.

    Raises:
        StartError: when it cannot be read, can be read by others, or is too short or too long.
    """
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            key = file.read(longest + 1).strip()
    except OSError as error:
        raise StartError(f"{name} {path!r} cannot be read: {os.strerror(error.errno or 0)}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise StartError(f"{name} {path!r} can be read by others", fix=f"chmod 600 {path!r}")
    if not shortest <= len(key) <= longest:
        raise StartError(
            f"{name} {path!r} does not hold {shortest} to {longest} bytes",
            fix="openssl rand -hex 32 >FILE",
        )
    return key
