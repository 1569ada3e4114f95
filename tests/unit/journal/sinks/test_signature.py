"""tidegate.journal.sinks.signature: what is signed, and which key files are taken."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

import pytest

from tidegate.journal.sinks.signature import read_key, signed
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path

KEY = b"0123456789abcdef"


def test_the_signature_is_of_timestamp_and_body() -> None:
    """JRN-6, ASK-5: an HMAC-SHA256 of the timestamp, a full stop and the body."""
    headers = signed(KEY, 1795910400, b"{}\n")
    wanted = hmac.new(KEY, b"1795910400.{}\n", hashlib.sha256).hexdigest()
    assert headers["Tidegate-Signature"] == f"v1={wanted}"
    assert headers["Tidegate-Timestamp"] == "1795910400"


def test_a_key_file_is_its_owners(tmp_path: Path) -> None:
    """JRN-6: a key that others can read, and one that is too short, is refused; its newline is not part of it."""
    path = tmp_path / "key"
    path.write_bytes(KEY + b"\n")
    path.chmod(0o600)
    assert read_key(str(path)) == KEY
    path.chmod(0o640)
    with pytest.raises(StartError, match="read by others"):
        read_key(str(path))
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(StartError, match="16 to"):
        read_key(str(path))
    assert read_key(str(path), "--key-file", 1) == b"short"
