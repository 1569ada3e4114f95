"""Numbers as the kernel's headers have them, to hold ours against; a test that finds no headers is skipped."""

from __future__ import annotations

import re

import pytest

_NUMBER = re.compile(r"(?:#\s*define\s+|^\s*)(\w+)[\s=]+(0x[0-9a-fA-F]+|\d+)\b", re.MULTILINE)


def text_of(*names: str) -> str:
    """The text of headers below /usr/include, without `.h`."""
    found = []
    for name in names:
        try:
            with open(f"/usr/include/{name}.h", encoding="ascii", errors="replace") as file:
                found.append(file.read())
        except OSError:
            pytest.skip("no kernel headers here")
    return "".join(found)


def numbers(*names: str) -> dict[str, int]:
    """Every word that they define as a plain number."""
    return {word: int(number, 0) for word, number in _NUMBER.findall(text_of(*names))}


def enumerated(first: str, *names: str) -> dict[str, int]:
    """The members of the enumeration that begins with `first`, which has a number or is 0."""
    found = re.search(rf"\b{first}\b(?:\s*=\s*(\d+))?\s*,(.*?)}}", text_of(*names), re.DOTALL)
    assert found is not None, f"{first} is not in {names}"
    bare = re.sub(r"/\*.*?\*/|#[^\n]*", "", found[2], flags=re.DOTALL)
    words = [first, *(word.split("=")[0].strip() for word in bare.split(",") if word.strip())]
    return {word: int(found[1] or 0) + at for at, word in enumerate(words)}
