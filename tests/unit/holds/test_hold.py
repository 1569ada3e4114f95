"""The values of this room, and a running task."""

from __future__ import annotations

import os
import signal

import pytest

from tidegate.holds import control
from tidegate.holds.hold import LaunchSpec, RunningTask, find_hold


def sleeper() -> tuple[RunningTask, int]:
    """A task whose init is a process that reads one message and ends with it as its status."""
    here, there = control.pair()
    pid = os.fork()
    if pid == 0:
        os.close(here)
        received = control.receive(there)
        os._exit(int(received[0].split()[1]) if received and received[0] != "start" else 9)
    return RunningTask(pid, here, None), there


@pytest.mark.parametrize("name", ["netns", "offline", "open"])
def test_holds_are_found_by_name(name: str) -> None:
    """Each knows its name; only netns has a gate (HLD-1, HLD-5)."""
    hold = find_hold(name)
    assert (hold.name, hold.has_gate) == (name, name == "netns")


def test_there_is_no_other_hold() -> None:
    """An unknown name is an error, never a weaker hold (HLD-7)."""
    with pytest.raises(KeyError):
        find_hold("none")


def test_messages_reach_init_and_its_end_is_seen_once() -> None:
    """Both send and start speak to init; wait reaps it once and closes the wire (HLD-9)."""
    task, there = sleeper()
    os.close(there)
    task.send("signal 5")
    assert os.waitstatus_to_exitcode(task.wait()) == 5
    assert task.wait() == task.wait()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(task.control)
    task, there = sleeper()
    os.close(there)
    task.start()
    assert os.waitstatus_to_exitcode(task.wait()) == 9


def test_killing_twice_is_fine() -> None:
    """A kill ends init; again, and after the end, it does nothing (HLD-9)."""
    task, there = sleeper()
    os.close(there)
    task.kill()
    task.kill()
    assert os.waitstatus_to_exitcode(task.wait()) == -signal.SIGKILL
    task.kill()


def test_a_spec_needs_the_command_and_has_safe_defaults() -> None:
    """Nothing is shared and the self-test is on unless somebody says otherwise (HLD-11, HLD-14)."""
    spec = LaunchSpec(argv=("true",), env={}, cwd="/")
    assert (spec.shares, spec.selftest, spec.port, spec.workspace) == ((), True, 3128, None)
