"""The pool of pipes."""

from __future__ import annotations

import os

import pytest

from tests.descriptors import descriptors
from tidegate.gate.pipes import PipePool


def test_the_pool_is_bounded_and_lends_again() -> None:
    """DESIGN rule 6: beyond the bound there is none; one that came back is lent again."""
    pool = PipePool(2)
    first, second = pool.take(), pool.take()
    assert first is not None
    assert second is not None
    assert pool.take() is None
    pool.give(first)
    assert pool.take() is first
    pool.give(first)
    pool.give(second)
    pool.close()


def test_a_pipe_with_bytes_inside_is_never_lent_again() -> None:
    """What is left in it belongs to one tunnel."""
    before = descriptors()
    pool = PipePool(2)
    pipe = pool.take()
    assert pipe is not None
    os.write(pipe.write, b"secret")
    pipe.filled = 6
    pool.give(pipe)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(pipe.read)
    assert descriptors() <= before


def test_without_descriptors_there_is_no_pipe_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tunnel that gets none copies."""

    def none_left(_flags: int) -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    pool = PipePool(2)
    monkeypatch.setattr(os, "pipe2", none_left)
    assert pool.take() is None
    monkeypatch.undo()
    pipe = pool.take()
    assert pipe is not None
    assert pipe.size >= 1 << 16
    pool.give(pipe)
    pool.close()
