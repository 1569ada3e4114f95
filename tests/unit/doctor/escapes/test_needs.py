"""What this kernel lacks is asked by doing, and a missing right is nothing missing."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from tidegate.doctor.escapes import needs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_sockets_that_there_are_and_are_not() -> None:
    """TCP is there; a family that no kernel has is not, and is named. A raw socket may be forbidden: it is there."""
    assert needs.sockets(socket.AF_INET, socket.SOCK_STREAM, 6)() == ""
    assert needs.sockets(socket.AF_INET, socket.SOCK_RAW, 1)() == ""
    assert "family 99" in needs.sockets(99, socket.SOCK_STREAM, 0)()


def test_calls_that_there_are_and_are_not() -> None:
    """One with wrong arguments is there; a number without a call is not."""
    assert needs.calls(3 if os.uname().machine == "x86_64" else 57, -1)() == ""
    assert needs.calls(5000)() == "this kernel has no such system call"


def test_one_of_some_paths_is_enough(tmp_path: Path) -> None:
    """The first is named where none is there."""
    missing, there = str(tmp_path / "missing"), str(tmp_path)
    assert needs.paths(missing, there)() == ""
    assert needs.paths(missing)() == f"there is no {missing} here"


@pytest.mark.parametrize(
    ("act", "answer"),
    [(lambda: None, ""), (lambda: os.close(-1), "no"), (lambda: os.kill(os.getpid(), 11), "no"), (os.abort, "no")],
)
def test_what_may_end_a_process_is_tried_in_another(act: Callable[[], object], answer: str) -> None:
    """A signal or an error there is an answer here."""
    assert needs.in_a_child(act, "no")() == answer
