"""The door to the kernel."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from tests import kernel_headers
from tidegate.holds import linux

HEADERS = ("sched", "mount", "prctl", "seccomp", "fcntl")


def test_constants_are_those_of_the_headers() -> None:
    """Each constant that the kernel's headers define as a number has that number here (HLD-13)."""
    known = kernel_headers.numbers(*(f"linux/{name}" for name in HEADERS))
    mine: dict[str, Any] = {name: value for name, value in vars(linux).items() if name.isupper()}
    both = known.keys() & mine.keys()
    assert {name: mine[name] for name in both} == {name: known[name] for name in both}
    assert len(both) >= 20


def test_a_failure_is_an_oserror_with_the_name_of_the_call() -> None:
    """What the kernel refuses is told by its errno and the call that it refused."""
    with pytest.raises(OSError, match="fsmount") as caught:
        linux.call("fsmount", -1, 0, 0)
    assert (caught.value.errno, caught.value.filename) == (errno.EBADF, "fsmount")


def test_a_call_that_this_machine_does_not_have() -> None:
    """A name without a number is a call the kernel does not know."""
    with pytest.raises(OSError, match="no_such_call") as caught:
        linux.call("no_such_call")
    assert caught.value.errno == errno.ENOSYS


def test_numbers_and_bytes_arrive() -> None:
    """Arguments are passed as words and as addresses of bytes, and what the call returns comes back."""
    assert linux.prctl(linux.PR_CAPBSET_READ, 0) in (0, 1)
    with open("/proc/self/comm", encoding="ascii") as file:
        before = file.read().strip()
    try:
        linux.prctl(linux.PR_SET_NAME, linux.path("renamed"))
        with open("/proc/self/comm", encoding="ascii") as file:
            assert file.read() == "renamed\n"
    finally:
        linux.prctl(linux.PR_SET_NAME, linux.path(before))


def test_paths_end_in_a_zero_byte() -> None:
    """Names that are not UTF-8 survive."""
    assert linux.path("/a\udcff") == b"/a\xff\0"


def test_this_machine_is_known() -> None:
    """The machine that runs the tests is one of the two."""
    assert linux.supported() == (os.uname().machine in ("x86_64", "aarch64"))
