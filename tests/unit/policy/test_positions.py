"""Problems and how they are printed (policy/positions.py)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.errors import EXIT_USAGE
from tidegate.policy.positions import (
    MAX_COUNTED,
    MAX_PRINTED,
    PolicyErrors,
    Problem,
    Problems,
    TooManyProblemsError,
    on_screen,
    place_of,
)


@given(st.text())
def test_no_control_or_direction_character_reaches_a_screen(text: str) -> None:
    """ASK-6: whatever stood in the file, what is shown is printable, bounded and one line."""
    shown = on_screen(text)
    assert len(shown) <= 60
    assert all(unicodedata.category(char)[0] not in "CZ" or char == " " for char in shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("api.example.com", "api.example.com"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u200bb", "a\\u200bb"),
        ("a\\b", "a\\\\b"),
        ("a\ud800b", "a\\ud800b"),
        ("bücher.example", "bücher.example"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
    ],
)
def test_escapes_say_what_stood_there(text: str, shown: str) -> None:
    """Letters of any script stay readable, all else is written out, and long texts are cut."""
    assert on_screen(text) == shown


def test_a_problem_is_one_line_with_its_place() -> None:
    """POL-2: FILE:LINE:COL, what is wrong, the text at fault and what to write instead."""
    problem = Problem("p.yaml", 3, 9, "a CIDR is no host", "10.0.0.0/8", "list the hosts")
    assert str(problem) == "p.yaml:3:9: a CIDR is no host: '10.0.0.0/8': list the hosts"
    assert str(Problem("p.yaml", 0, 0, "the policy is over 8 MiB")) == "p.yaml: the policy is over 8 MiB"
    assert str(Problem("a\nb\x1b", 1, 1, "x")) == "a\\nb\\x1b:1:1: x"


def test_fifty_are_printed_in_order_and_the_rest_counted() -> None:
    """POL-0: at most 50 errors are printed, sorted by place, then how many more there are."""
    problems = Problems("f")
    for line in range(60, 0, -1):
        problems.add(line, 1, "bad")
    problems.add(60, 1, "bad")  # the same again counts once
    error = problems.error()
    lines = str(error).split("\n")
    assert len(lines) == MAX_PRINTED + 1
    assert lines[-1] == "10 more errors are not shown"
    assert error.errors == sorted(error.errors, key=lambda problem: problem.line)
    assert error.exit_status == EXIT_USAGE


def test_a_hopeless_file_ends_the_collection() -> None:
    """Bounded everything: after MAX_COUNTED problems no more is looked for."""
    problems = Problems("f")
    for line in range(1, MAX_COUNTED):
        problems.add(line, 1, "bad")
    with pytest.raises(TooManyProblemsError):
        problems.add(MAX_COUNTED, 1, "bad")
    assert str(problems.error(more=True)).endswith(f"at least {MAX_COUNTED - MAX_PRINTED} more errors are not shown")


def read(lines: range, error: Exception | None = None) -> None:
    """Read a file that is bad in these lines, and where something else than a problem may happen."""
    with Problems("f") as problems:
        for line in lines:
            problems.add(line, 1, "bad")
        if error is not None:
            raise error


def test_a_file_is_read_whole_and_then_refused() -> None:
    """POL-2: all problems at once, also where the file is hopeless; the neighbours: none, and what is no problem."""
    read(range(0))
    with pytest.raises(PolicyErrors) as two:
        read(range(2, 0, -1))
    assert str(two.value).split("\n") == ["f:1:1: bad", "f:2:1: bad"]
    with pytest.raises(PolicyErrors, match="at least"):
        read(range(1, MAX_COUNTED + 1))
    with pytest.raises(KeyError):
        read(range(1, 3), KeyError())


@pytest.mark.parametrize(("index", "place"), [(0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (5, (2, 3)), (6, (3, 1))])
def test_places_count_from_one_in_characters(index: int, place: tuple[int, int]) -> None:
    """A column counts characters, not bytes, and the first line is line 1."""
    assert place_of("ab\nü€\nx", index) == place
