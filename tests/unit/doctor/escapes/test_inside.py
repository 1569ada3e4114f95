"""Whatever a row ends with, it is told, and the next one runs."""

from __future__ import annotations

import errno
import os
import signal
from typing import TYPE_CHECKING

import pytest

from tidegate.doctor.escapes.inside import report
from tidegate.doctor.escapes.table import ALL, Row, named

if TYPE_CHECKING:
    from tidegate.doctor.escapes.table import Attempt


def fail(code: int) -> Attempt:
    """An attempt that ends with this errno."""

    def attempt() -> None:
        raise OSError(code, "x")

    return attempt


def see() -> None:
    """See what must not be seen."""
    raise AssertionError("seen")


@pytest.mark.parametrize(
    ("attempt", "answer"),
    [
        (lambda: None, "passed"),
        (fail(errno.ECONNREFUSED), "ECONNREFUSED"),
        (fail(errno.ENOTSUP), "EOPNOTSUPP"),
        (see, "false: AssertionError('seen')"),
        (lambda: os.kill(os.getpid(), signal.SIGSYS), "SIGSYS"),
        (lambda: os._exit(0), "nothing"),
    ],
)
def test_what_came_of_a_row(attempt: Attempt, answer: str) -> None:
    """The errno by name, what was seen, the signal; a row that leaves without a word has said nothing."""
    assert report(Row(named(attempt, "one", ""), ALL, {}, "both", None)) == answer
