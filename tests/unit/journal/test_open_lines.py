"""tidegate.journal.open_lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.journal.events import event
from tidegate.journal.line import line_of
from tidegate.journal.open_lines import SLOT, SLOTS, fits, left_lines, put_line, write_left


@pytest.fixture
def memory() -> Iterator[int]:
    """Memory that outlives who writes it."""
    fd = os.memfd_create("tests")
    yield fd
    os.close(fd)


def test_what_is_put_is_left_until_it_is_cleared(memory: int) -> None:
    """JRN-1: lines of any length that fits, by slot; a shorter one in the place of a longer one is whole."""
    assert left_lines(memory) == ()
    longest = b"x" * (SLOT - 2)
    assert fits(longest)
    assert not fits(longest + b"x")
    for slot, line in ((0, b"first"), (SLOTS - 1, b"last"), (3, longest), (2, b"two")):
        put_line(memory, slot, line)
    assert left_lines(memory) == (b"first", b"two", longest, b"last")
    put_line(memory, 3, b"short")
    put_line(memory, 0, b"")
    assert left_lines(memory) == (b"two", b"short", b"last")
    for slot in range(SLOTS):
        put_line(memory, slot, b"")
    assert left_lines(memory) == ()


def test_lines_that_were_left_are_whole_lines_of_the_log(tmp_path: Path) -> None:
    """JRN-1: behind what is there, with how long each was open; what is no line is passed over."""
    path = tmp_path / "log"
    path.write_bytes(line_of(event()))
    began = event(at=100.0, host="open.test", bytes_up=7)
    left = (line_of(began).rstrip(b"\n"), b"no line", b"[]", b'{"at":"never"}')
    assert write_left(str(path), left, 130.5) == 1
    first, last = map(json.loads, path.read_bytes().splitlines())
    assert first["host"] != "open.test"
    assert last == json.loads(line_of(began)) | {"duration": 30.5}
    assert list(last) == list(json.loads(line_of(began)))  # the keys in their order
    assert write_left(str(path), (), 1.0) == 0
    assert write_left(str(path), (b"no line",), 1.0) == 0


def test_a_log_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    """JRN-5: nobody is held up by it."""
    path = tmp_path / "log"
    path.symlink_to(tmp_path / "other")
    assert write_left(str(path), (line_of(event()),), 1.0) == 0
    assert not (tmp_path / "other").exists()
