"""A trial from beginning to end leaves what it found."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from tidegate.doctor.escapes.attempt import PLACE, PREFIX, attempt, sweep
from tidegate.doctor.escapes.machine import MARK
from tidegate.model.errors import StartError


def left() -> list[str]:
    """Folders of this process's trials."""
    return [name for name in os.listdir(PLACE) if name.startswith(f"{PREFIX}{os.getpid()}-")]


def test_a_trial_answers_for_the_rows_asked_for() -> None:
    """The hold is built, the rows run in it, and the folder is gone afterwards."""
    answer = attempt("offline", rows=["io_uring", "own_folders"])
    assert answer["status"] == 0, answer
    assert answer["answers"] == {"io_uring": "ENOSYS", "own_folders": "passed"}
    assert (answer["heard"], answer["asked"]) == ([], [])
    assert not left()


def test_a_trial_that_cannot_be_made_is_an_error() -> None:
    """A keeper that dies is a StartError with its words, never an empty table."""
    with pytest.raises(StartError, match="the trial failed: nothing to say"):
        attempt("offline", prefix=[sys.executable, "-c", "import sys; sys.exit('nothing to say')"])
    assert not left()


def test_a_front_that_says_nothing_is_told() -> None:
    """A front that ends without a word is an error, not a hold in which nothing escaped."""
    answer = attempt("offline", rows=["io_uring"], front=[sys.executable, "-c", "pass"])
    assert "without a word" in answer["error"]
    assert answer["answers"] == {}


def test_what_a_killed_trial_left_is_removed() -> None:
    """Folders and canaries of processes that are gone go; those of living ones stay."""
    canaries = [f"/tmp/{MARK}{pid}.sock" for pid in (1 << 30, os.getpid())]
    for path in canaries:
        os.mknod(path)
    gone, alive = (os.path.join(PLACE, f"{PREFIX}{pid}-test") for pid in (1 << 30, os.getpid()))
    for folder in (gone, alive):
        os.mkdir(folder)
    try:
        sweep()
        assert (os.path.exists(gone), os.path.exists(alive)) == (False, True)
        assert [os.path.exists(path) for path in canaries] == [False, True]
    finally:
        os.unlink(canaries[1])
        shutil.rmtree(alive)
