"""JSON that two readers could read differently is no JSON here."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.inspect.strict_json import DEEPEST, MOST_PARTS, UnclearError, plain, read

KEYS = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | KEYS
)


def clear(value: object) -> bool:
    """Whether no object has keys that a loose reader takes for one."""
    if isinstance(value, dict):
        return len({plain(key) for key in value}) == len(value) and all(map(clear, value.values()))
    return not isinstance(value, list) or all(map(clear, value))


VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))


@given(VALUES.filter(clear))
def test_what_is_clear_is_read_as_it_was_written(value: object) -> None:
    """INS-8: the invariant, with escapes and without."""
    assert read(json.dumps(value).encode()) == value
    assert read(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:\\ua1e+-.0 ', max_size=30).map(str.encode))
def test_anything_is_a_value_or_unclear(data: bytes) -> None:
    """INS-8: and what is read, the standard reader reads alike."""
    try:
        value = read(data)
    except UnclearError:
        return
    assert json.loads(data) == value


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1,"a":2}',
        b'{"tools":[],"Tools":[1]}',
        b'{"file_data":1,"fileData":2}',
        b'{"a":{"b":[{"c":1,"C":2}]}}',
        b"\xef\xbb\xbf{}",
        b'{"a":NaN}',
        b"[Infinity]",
        b"[-Infinity]",
        b'["\\ud800"]',
        b'{"\\udc00":1}',
        b'{"a":1} {"b":2}',
        b'{"a":1}x',
        b"[1e999]",
        b"[" + b"9" * 401 + b"]",
        b"{'a':1}",
        b'{"a":1,}',
        b'["\xff"]',
        b"",
        b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1),
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
)
def test_what_readers_differ_on_is_refused(data: bytes) -> None:
    """INS-8: a reader that takes the first, the last, or either spelling finds another request in it."""
    with pytest.raises(UnclearError):
        read(data)


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1,"b":2}',
        b'[{"a":1},{"a":2}]',
        b'["\\ud83d\\ude00", "\xf0\x9f\x98\x80"]',
        b"[1e308, -0.0, 12345678901234567890]",
        b" \n{}\t",
        b"[" * DEEPEST + b"]" * DEEPEST,
    ],
)
def test_its_neighbours_are_read(data: bytes) -> None:
    """INS-8: the same key in two objects, whole pairs, large numbers, the deepest that is allowed."""
    assert read(data) == json.loads(data)


@pytest.mark.parametrize("one", ["[]", "{}", "0", '""', "[[]]"])
def test_more_parts_than_are_looked_at_are_unclear(one: str) -> None:
    """INS-8: a body of 32 MiB in the smallest of parts would cost a hundred times that; long texts pass."""
    with pytest.raises(UnclearError, match="more than"):
        read(f"[{','.join([one] * (MOST_PARTS + 1))}]".encode())
    text = "a[{,:\\" * MOST_PARTS
    assert read(json.dumps([text, text]).encode()) == [text, text]


@pytest.mark.parametrize("text", ['",' * MOST_PARTS, '\\",' * MOST_PARTS, "\\," * MOST_PARTS, '\\\\"[' * MOST_PARTS])
def test_only_what_stands_outside_of_strings_is_a_part(text: str) -> None:
    """INS-8: quotes and backslashes in a string end it nowhere, and what stands behind a string is counted."""
    assert read(json.dumps([text, text]).encode()) == [text, text]
    with pytest.raises(UnclearError, match="more than"):
        read(json.dumps([text, *range(MOST_PARTS)]).encode())


def test_a_text_of_strings_alone_has_too_many_parts() -> None:
    """INS-8: as a list and as an object; strings of as many parts as may be are read."""
    few = ["a"] * (MOST_PARTS - 1)
    assert read(json.dumps(few).encode()) == few
    for text in (json.dumps([""] * (3 * MOST_PARTS)), '""' * (3 * MOST_PARTS), '{"a":"b",' * (2 * MOST_PARTS)):
        with pytest.raises(UnclearError, match=r"more than|no JSON"):
            read(text.encode())


@pytest.mark.parametrize("data", [b'"' + b'\\"' * 2_000_000, b'["' + b"\\\\" * 1_000_000, b'"' * 2_000_001])
def test_a_text_without_an_end_costs_no_more_than_its_length(data: bytes) -> None:
    """INS-8: whoever sends it waits as long as for any other; a search that begins anew at each quote takes hours."""
    with pytest.raises(UnclearError):
        read(data)
