"""A program that prints a value, and those that go astray: bounded in time and size, alone in its session."""

from __future__ import annotations

import os
import socket
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.served import until
from tidegate.runtime.printed import PrintedError, printed

if TYPE_CHECKING:
    from pathlib import Path

VALUE = "ghp_RealRealRealReal0001"


def is_over(pid: str) -> bool:
    """Whether a process has ended; that somebody waits for it is another matter."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def said(*argv: str, seconds: float = 50.0, most: int = 100) -> bytes:
    """What a program prints."""
    return printed(argv, os.environ, seconds=seconds, most=most)


def test_what_a_program_prints_is_the_value() -> None:
    """INS-5: as many bytes as may be, of a program along PATH or by its path; what it complains about is not shown."""
    assert said("sh", "-c", f"echo oh >&2; echo {VALUE}") == f"{VALUE}\n".encode()
    assert said(sys.executable, "-c", "print('a' * 99)") == b"a" * 99 + b"\n"
    assert said("true") == b""


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (f"echo {VALUE}; exit 3", "it ended with status 3"),
        (f"echo {VALUE}; kill -9 $$", "it ended with status -9"),
        ("while :; do echo aaaaaaaaaaaaaaaaaaaaaaaa; done", "it prints more than 100 bytes"),
        ("sleep 1000 & echo $! >pid; wait", "it does not end within 1 s"),
        ("exec >&-; sleep 1000 & echo $! >pid; wait", "it does not end within 1 s"),
    ],
)
def test_one_that_goes_astray_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str) -> None:
    """INS-5, B119: in time, with all that it started, before it fills the memory of a gate; nothing is repeated."""
    monkeypatch.chdir(tmp_path)
    begun = time.monotonic()
    with pytest.raises(PrintedError, match=why) as caught:
        said("sh", "-c", script, seconds=1.0 if "1 s" in why else 50.0)
    assert VALUE not in str(caught.value)
    assert time.monotonic() - begun < 45
    pids = [file.read_text().strip() for file in tmp_path.iterdir()]
    until(lambda: all(map(is_over, pids)))


def test_what_it_leaves_behind_is_not_waited_for() -> None:
    """INS-5: a program that has ended has said what it had to say, whoever has its output by then."""
    begun = time.monotonic()
    assert said("sh", "-c", f"sleep 100 & echo {VALUE}") == f"{VALUE}\n".encode()
    assert time.monotonic() - begun < 45


def test_it_has_no_terminal() -> None:
    """INS-5: neither as its input nor as that of its session, whatever started it has."""
    assert said("sh", "-c", "cat; (: </dev/tty) 2>/dev/null || echo none") == b"none\n"


@pytest.mark.parametrize("argv", [("/nonexistent/program",), ("no\0program",)])
def test_what_cannot_be_run_is_said(argv: tuple[str, ...]) -> None:
    """INS-5: in one clause."""
    with pytest.raises(PrintedError, match=r"no such file|cannot be run"):
        said(*argv)


def test_it_ends_when_nobody_waits_for_it_any_more(tmp_path: Path) -> None:
    """INS-5, HLD-9: whoever asked has closed the socket; while it is open, what it sends is nobody's concern."""
    ours, theirs = socket.socketpair()
    ours.send(b"something")
    assert printed(("echo", VALUE), os.environ, seconds=50, most=100, asker=theirs.fileno()) == f"{VALUE}\n".encode()
    ours.close()
    file = tmp_path / "pid"
    with pytest.raises(PrintedError, match="nobody waits for it any more"):
        printed(("sh", "-c", f"echo $$ >{file}; sleep 1000"), os.environ, seconds=900, most=100, asker=theirs.fileno())
    theirs.close()
    assert not file.exists() or is_over(file.read_text().strip() or "0")
