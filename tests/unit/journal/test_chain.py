"""tidegate.journal.chain."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.journal.chain import GENESIS, MAX_TEXT, Head, head_text, line_hash, make_line, read_head, read_line

KEY = bytes(range(32))
OTHER = bytes(32)


def make(head: Head = Head(), **fields: Any) -> tuple[bytes, Head]:  # noqa: B008  a frozen value
    """Return one line and the head behind it."""
    return make_line(head, KEY, 1795910400.125, "net.blocked", "t1", fields)


def test_a_line_has_the_form_that_is_promised() -> None:
    """JRN-2: seq, at (ISO, milliseconds, Z), type and task first, then what it says, then the hash before."""
    line, _ = make(host="attacker.test:443")
    read = json.loads(line)
    assert list(read) == ["seq", "at", "type", "task", "host", "prev", "seal"]
    assert read["at"] == "2026-11-29T00:00:00.125Z"
    assert (read["seq"], read["prev"], read["host"]) == (1, GENESIS, "attacker.test:443")
    assert line.endswith(b"\n")


def test_each_line_names_the_one_before() -> None:
    """JRN-2: prev is the hash of the whole line before, newline left out."""
    first, head = make(host="a.test:443")
    second, _ = make(head, host="b.test:443")
    assert json.loads(second)["prev"] == line_hash(first[:-1]) == head.hash
    assert json.loads(second)["seq"] == 2


@given(st.dictionaries(st.sampled_from(["host", "port", "why", "count"]), st.text() | st.integers() | st.booleans()))
def test_what_is_written_is_read(fields: dict[str, Any]) -> None:
    """JRN-2, JRN-5: any text becomes one line of ASCII, and reads as what it was."""
    line, head = make(**fields)
    assert line.isascii()
    assert line.count(b"\n") == 1
    read = read_line(line[:-1], KEY)
    assert read.hash == head.hash
    assert read.fields is not None
    for name, value in fields.items():
        assert read.fields[name] == value


@given(st.data())
def test_any_changed_byte_shows(data: st.DataObject) -> None:
    """JRN-2: the seal covers every byte, of text and of seal."""
    line = bytearray(make(host="a.test:443", count=7)[0][:-1])
    at = data.draw(st.integers(0, len(line) - 1))
    line[at] ^= data.draw(st.integers(1, 255))
    assert read_line(bytes(line), KEY).fields is None


@pytest.mark.parametrize("line", [b"", b"{}", b"x" * 300, b'{"seq":1}', b'{"seq":1,"seal":"' + b"0" * 32 + b'"}'])
def test_what_is_no_line_has_no_fields(line: bytes) -> None:
    """JRN-2: whatever stands there is read without an error."""
    assert read_line(line, KEY).fields is None
    assert read_line(line, KEY).seq == 0


def test_another_key_makes_another_log() -> None:
    """JRN-2: a whole chain forged without the key is no line of it."""
    line, _ = make_line(Head(), OTHER, 0.0, "net.blocked", "t1", {})
    assert read_line(line[:-1], OTHER).fields is not None
    assert read_line(line[:-1], KEY).fields is None


def test_a_field_cannot_take_the_chains_own_name() -> None:
    """A caller's mistake is not a line with two numbers."""
    with pytest.raises(ValueError, match="'prev'"):
        make(prev="x")


def test_long_text_is_cut() -> None:
    """JRN-5: a line is bounded, whatever a task named itself."""
    line, _ = make(host="a" * 100_000)
    assert len(json.loads(line)["host"]) == MAX_TEXT
    assert json.loads(make(host="a" * MAX_TEXT)[0])["host"] == "a" * MAX_TEXT


def test_a_long_command_is_cut() -> None:
    """JRN-2, JRN-5: the last line of a log is found again after a crash, whatever arguments a command had."""
    for words in (["x" * 100_000] * 20, ["x"] * 100_000, ["x" * 2000] * 1000):
        line, _ = make(command=["cc", *words])
        assert len(line) < 1 << 20
        assert json.loads(line)["command"][0] == "cc"
        assert json.loads(line)["command"][-1] == "…"
    for words in ([], ["cc", "-c", "a.c"], ["x" * MAX_TEXT] * 3, ["x"] * 255):
        assert json.loads(make(command=words)[0])["command"] == words


def test_a_head_is_read_as_written_and_by_its_key_only() -> None:
    """JRN-2: heads are sealed."""
    head = Head(9, "a" * 64, 3, "b" * 64)
    text = head_text(head, KEY)
    assert read_head(text, KEY) == head
    assert read_head(text, OTHER) is None
    assert read_head(text.replace(b":9,", b":8,"), KEY) is None


def test_a_line_is_never_taken_for_a_head_nor_a_head_for_a_line() -> None:
    """Both are sealed with one key: a line of the log, which others cause, must not move the head."""
    fields = {"head": 7, "hash": "a" * 64, "first": 1, "first_prev": GENESIS}
    line, head = make_line(Head(), KEY, 0.0, "x", "", fields)
    assert read_head(line[:-1], KEY) is None
    assert read_line(head_text(head, KEY), KEY).seq == 0
