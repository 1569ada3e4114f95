"""Processes of the bench: started with a leash, counted by tree, ended by id.

Every process started here dies with the bench (PR_SET_PDEATHSIG) and is the leader of its own group, so that a
proxy which forks helpers is ended whole. Memory is read from smaps_rollup (proc(5)): PSS shares common pages among
their users, RSS counts them fully. CPU is user plus system time of the tree, reaped children included.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PR_SET_PDEATHSIG = 1
_TICKS = os.sysconf("SC_CLK_TCK")
_libc = ctypes.CDLL(None, use_errno=True)


class BenchError(Exception):
    """Something the bench needs did not come up; the text says what and where its log is."""


def _leash() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def start(
    command: Sequence[str],
    *,
    log: str | None = None,
    env: dict[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int | None = None,
    cwd: str | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command in its own group that ends when we do; both outputs go to `log` unless `stdout` says else."""
    with open(log or os.devnull, "ab") as sink:
        return subprocess.Popen(
            list(command),
            stdin=stdin,
            stdout=sink if stdout is None else stdout,
            stderr=sink,
            env=env,
            cwd=cwd,
            process_group=0,
            preexec_fn=_leash,  # noqa: PLW1509 - the bench has no threads when it starts something
        )


def stop(process: subprocess.Popen[bytes], *, patience: float = 3.0) -> None:
    """End a process and its group: asked first, killed after `patience` seconds."""
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            _signal_group(process.pid, signal.SIGKILL)
            process.wait()
    _signal_group(process.pid, signal.SIGKILL)
    for stream in (process.stdin, process.stdout):
        if stream:
            stream.close()


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return
    except PermissionError:
        os.kill(pid, number)


def children_of(pid: int) -> list[int]:
    """Return the direct children of all threads of `pid`."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as listing:
                found += [int(word) for word in listing.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def tree_of(pid: int) -> list[int]:
    """Return `pid` and all that descend from it."""
    found = [pid]
    for each in found:
        found += children_of(each)
    return found


def _fields_of(pid: int) -> list[str]:
    # The command's name may hold blanks and brackets; the numbers begin behind the last one.
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()


def cpu_seconds(pids: Sequence[int]) -> float:
    """Return user plus system time of these processes and of their reaped children."""
    ticks = 0
    for pid in pids:
        try:
            ticks += sum(int(field) for field in _fields_of(pid)[11:15])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return ticks / _TICKS


@dataclass(frozen=True)
class Footprint:
    """What a tree of processes holds: memory in bytes, descriptors, processes, threads."""

    rss: int
    pss: int
    private: int
    descriptors: int
    processes: int
    threads: int


def footprint(pids: Sequence[int]) -> Footprint:
    """Add up what these processes hold now."""
    rss = pss = private = descriptors = threads = processes = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
                sizes = {
                    line.split(":")[0]: int(line.split()[1]) * 1024 for line in rollup if line.rstrip().endswith("kB")
                }
            descriptors += len(os.listdir(f"/proc/{pid}/fd"))
            threads += len(os.listdir(f"/proc/{pid}/task"))
        except (FileNotFoundError, ProcessLookupError):
            continue
        processes += 1
        rss += sizes.get("Rss", 0)
        pss += sizes.get("Pss", 0)
        private += sizes.get("Private_Clean", 0) + sizes.get("Private_Dirty", 0)
    return Footprint(rss, pss, private, descriptors, processes, threads)


def wait_until(
    ready: Callable[[], bool], what: str, *, seconds: float = 15.0, process: subprocess.Popen[bytes] | None = None
) -> None:
    """Wait until the callable `ready` says true.

    Raises:
        BenchError: when `seconds` have passed, or `process` has ended, before that.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process is not None and process.poll() is not None:
            raise BenchError(f"{what}: it ended at once with status {process.returncode}")
        if ready():
            return
        time.sleep(0.02)
    raise BenchError(f"{what}: not ready after {seconds:g} s")
