"""tidegate.model.errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tidegate.model import errors
from tidegate.model.errors import GateLostError, StartError, TidegateError, UsageError, told_of_bug


@pytest.mark.parametrize(
    ("kind", "status"), [(TidegateError, 1), (UsageError, 2), (GateLostError, 70), (StartError, 78)]
)
def test_each_kind_ends_with_its_own_status(kind: type[TidegateError], status: int) -> None:
    """HLD-16: 2 usage, 70 gate lost, 78 cannot start, 1 otherwise."""
    assert kind("x").exit_status == status


def test_the_text_is_what_and_how_to_mend_it() -> None:
    """One clear line: what is wrong, and what to write instead."""
    assert str(UsageError("what", fix="do this")) == "what: do this"
    assert str(UsageError("what")) == "what"


def test_quoted_text_cannot_steer_a_terminal() -> None:
    """ASK-6, B07: control and direction characters are escaped wherever an error is shown."""
    text = str(UsageError("bad 'a\x1b[2J\u202e\r'", fix="ok\nsecond line ü"))
    assert text == "bad 'a\\x1b[2J\\u202e\\r': ok\nsecond line ü"


def test_a_bug_is_told_by_kind_and_place_and_never_by_what_it_quotes() -> None:
    """INS-5, B119: what an exception of somebody else's quotes may be a secret's value."""
    value = b"ghp_s3cret\xff"
    for fails in (lambda: {}[value], lambda: value.decode("ascii"), lambda: int(value), lambda: [][value]):
        with pytest.raises(Exception, match=r".") as raised:
            fails()
        told = told_of_bug(raised.value)
        assert told.startswith(f"{type(raised.value).__name__} at model/test_errors.py:")
        assert "s3cret" not in told


def test_the_systems_own_words_are_told() -> None:
    """HLD-16: which limit of the machine was met."""
    assert told_of_bug(OSError(24, "Too many open files")) == "OSError: Too many open files"


def test_no_place_prints_what_a_foreign_exception_says() -> None:
    """INS-5, B119: whoever tells of a bug does it by `told_of_bug`."""
    source = Path(errors.__file__).parents[1]
    shown = re.compile(r"type\((\w+)\)\.__name__\}: \{\1|\{(error|exc|exception)!r\}")
    found = [f"{path.relative_to(source)}: {line.strip()}" for path in source.rglob("*.py") for line in
             path.read_text().splitlines() if shown.search(line)]  # fmt: skip
    assert [one for one in found if not one.startswith("doctor/")] == []
