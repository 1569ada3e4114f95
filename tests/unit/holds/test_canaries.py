"""Canaries hear what must not come, and only that."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.holds import canaries, selftest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def open_canaries(tmp_path: Path) -> Iterator[canaries.Canaries]:
    """Canaries with a path in a folder of their own."""
    listening = canaries.Canaries([os.path.join(tmp_path, "missing"), str(tmp_path)])
    yield listening
    listening.close()


def heard(listening: canaries.Canaries) -> list[str]:
    """What was heard, once what was sent had time to arrive."""
    for _ in range(50):
        if listening.heard():
            break
        time.sleep(0.01)
    return listening.heard()


def test_there_are_canaries_of_every_kind(open_canaries: canaries.Canaries) -> None:
    """TCP and UDP on loopback, a path and an abstract name, at least (HLD-11)."""
    kinds = {(family, kind) for family, kind, _address in open_canaries.targets}
    assert {(2, 1), (2, 2), (1, 1)} <= kinds
    names = [address for family, _kind, address in open_canaries.targets if family == 1]
    assert len(names) == 2


def test_the_word_is_heard_by_each(open_canaries: canaries.Canaries) -> None:
    """A probe that gets through is heard, whichever way it came: the self-test is not blind (HLD-11)."""
    for target in open_canaries.targets:
        before = len(open_canaries.heard())
        selftest.knock([target], open_canaries.word)
        deadline = 100
        while len(open_canaries.heard()) == before and deadline:
            time.sleep(0.01)
            deadline -= 1
        assert len(open_canaries.heard()) > before, target


def test_silence_and_strangers_are_no_alarm(open_canaries: canaries.Canaries) -> None:
    """No word, another word, a connection that says nothing: nothing was heard (HLD-11)."""
    assert open_canaries.heard() == []
    selftest.knock(open_canaries.targets, b"something else")
    wire = socket.socket(socket.AF_INET)
    target: Any = next(address for family, kind, address in open_canaries.targets if (family, kind) == (2, 1))
    wire.connect(target)
    time.sleep(0.05)
    assert open_canaries.heard() == []
    wire.close()


def test_a_word_behind_a_stranger_is_heard(open_canaries: canaries.Canaries) -> None:
    """A scan that came first does not hide the probe behind it (HLD-11)."""
    for target in [one for one in open_canaries.targets if one[:2] == (2, 1)]:
        selftest.knock([target], b"something else")
        selftest.knock([target], open_canaries.word)
    assert heard(open_canaries)


def test_a_datagram_behind_a_stranger_is_heard(open_canaries: canaries.Canaries) -> None:
    """The same for datagrams (HLD-11)."""
    for target in [one for one in open_canaries.targets if one[:2] == (2, 2)]:
        selftest.knock([target], b"something else")
        selftest.knock([target], open_canaries.word)
    assert heard(open_canaries)


def test_files_of_killed_runs_are_swept_and_own_ones_removed(tmp_path: Path) -> None:
    """A file that a killed front left goes with the next start; one of a living front stays (HLD-8)."""
    dead = tmp_path / "tidegate-canary.4194999"
    alive = tmp_path / f"tidegate-canary.{os.getppid()}"
    for path in (dead, alive):
        path.write_text("")
    listening = canaries.Canaries([str(tmp_path)])
    assert sorted(os.listdir(tmp_path)) == sorted([alive.name, f"tidegate-canary.{os.getpid()}"])
    listening.close()
    assert os.listdir(tmp_path) == [alive.name]


def test_descriptors_are_closed(tmp_path: Path) -> None:
    """Nothing stays open (HLD-13)."""
    before = len(os.listdir("/proc/self/fd"))
    listening = canaries.Canaries([str(tmp_path)])
    selftest.knock(listening.targets, listening.word)
    heard(listening)
    listening.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_canary_never_stands_where_the_task_may_go(tmp_path: Path) -> None:
    """HLD-11: a port that a rule names could be drawn by chance; the self-test would then take a service for a leak."""
    known = frozenset(range(1, 65536)) - frozenset(range(40000, 44000))
    listening = canaries.Canaries([str(tmp_path)], known)
    ports = [name[1] for family, _, name in listening.targets if family in (socket.AF_INET, socket.AF_INET6)]  # type: ignore[index]
    listening.close()
    assert ports
    assert known.isdisjoint(ports)
