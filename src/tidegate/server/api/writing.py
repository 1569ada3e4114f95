r"""Values to bytes of an answer.

JSON is UTF-8 (RFC 8259), but names of folders and arguments of commands are bytes: what is none of it in Python's texts
(PEP 383) is shown as `\xff`, so that one odd name does not keep a whole list, or the stream of events, from everybody.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def to_json(value: object) -> bytes:
    """Return a value as JSON."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_shown(msgspec.to_builtins(value)))


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub(_escaped, value)
    if isinstance(value, dict):
        return {_shown(key): _shown(one) for key, one in value.items()}
    return [_shown(one) for one in value] if isinstance(value, list | tuple) else value


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number - 0xDC00:02x}" if 0xDC80 <= number <= 0xDCFF else f"\\u{number:04x}"  # PEP 383
