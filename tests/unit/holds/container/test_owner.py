"""owner.py: whose a container is."""

from __future__ import annotations

import os
import subprocess

from tidegate.holds.container import owner


def test_what_lives_is_not_gone() -> None:
    """This process is alive, and its label is the same each time (HLD-8)."""
    assert owner.me() == owner.me()
    assert not owner.is_gone(owner.me())


def test_a_process_that_ended_is_gone() -> None:
    """A number without a process, and one that another process has by now, are gone (HLD-8)."""
    child = subprocess.Popen(["sleep", "0"])
    place = owner.me().rpartition("/")[0].rpartition("/")[0]
    child.wait()
    assert owner.is_gone(f"{place}/{child.pid}/1")
    assert owner.is_gone(f"{place}/{os.getpid()}/1")


def test_before_this_start_of_the_machine_everything_is_gone() -> None:
    """The same machine, started before: none of its processes is left (HLD-8)."""
    space, machine, pid, started = owner.me().split("/")
    assert space.count(".") == 1
    assert owner.is_gone(f"000000000000.1/{machine}/{pid}/{started}")


def test_of_other_machines_nothing_is_known() -> None:
    """What another machine, another PID namespace or something else made is left alone (HLD-8)."""
    space, machine, pid, started = owner.me().split("/")
    booted = space.split(".")[0]
    for label in (
        f"0.1/other/{pid}/1",
        f"{booted}.1/{machine}/{pid}/1",
        "server/0123456789abcdef",
        "",
        "nonsense",
        "a/b",
    ):
        assert not owner.is_gone(label), label
    assert started.isdigit()
