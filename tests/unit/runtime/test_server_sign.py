"""tidegate.runtime.server_sign: a server that was stopped, one that is merely busy, and the next one."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.served import until
from tidegate.runtime.pulse import Pulse
from tidegate.runtime.server_sign import HANGS, STOPPED, ServerSign, is_stopped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def other() -> Iterator[int]:
    """A process that can be stopped; its name is made to mislead who reads its numbers."""
    code = "import sys; open('/proc/self/comm', 'w').write('a) T (b'); print('up', flush=True); sys.stdin.read()"
    child = subprocess.Popen(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    yield child.pid
    child.kill()
    child.communicate()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A folder in which a server's pulse is."""
    (tmp_path / "run").mkdir()
    return tmp_path


def test_a_process_is_stopped_or_it_is_not(other: int) -> None:
    """proc_pid_stat(5): SIGSTOP and SIGCONT; what is unknown is not stopped (HLD-7)."""
    assert not is_stopped(other)
    os.kill(other, signal.SIGSTOP)
    until(lambda: is_stopped(other))
    os.kill(other, signal.SIGCONT)
    until(lambda: not is_stopped(other))
    assert not any(map(is_stopped, (0, -1, 2**22 + 1)))


def test_one_that_was_stopped_is_silent_soon_and_a_busy_one_late(other: int, state: Path) -> None:
    """HLD-7: about a second where the kernel says that it was stopped, some more where it merely does not count."""
    pulse = Pulse(str(state))
    sign = ServerSign(str(state), other, None)
    pulse.beat()
    assert not sign.is_silent(10.0)
    assert not sign.is_silent(10.0 + STOPPED + 0.1)
    assert not sign.is_silent(10.0 + HANGS - 0.1)
    assert sign.is_silent(10.0 + HANGS + 0.1)
    os.kill(other, signal.SIGSTOP)
    until(lambda: is_stopped(other))
    assert sign.is_silent(10.0 + STOPPED + 0.1)
    assert not sign.is_silent(10.0 + STOPPED - 0.1)
    pulse.beat()
    assert not sign.is_silent(30.0)
    sign.close()
    pulse.close()


def test_the_next_server_is_looked_at_and_not_the_one_before(other: int, state: Path) -> None:
    """HLD-8: a pulse of its own, and a process of its own."""
    first = Pulse(str(state))
    sign = ServerSign(str(state), other, None)
    assert not sign.is_silent(1.0)
    first.close()
    second = Pulse(str(state))
    os.kill(other, signal.SIGSTOP)
    until(lambda: is_stopped(other))
    sign.renew(os.getpid())
    assert not sign.is_silent(20.0)
    assert not sign.is_silent(20.0 + STOPPED + 0.1)
    second.beat()
    assert not sign.is_silent(40.0)
    sign.close()
    second.close()


def test_without_a_way_to_shut_it_says_so(state: Path) -> None:
    """HLD-7: whoever asks ends the task then; where there is one, its answer is passed on."""
    assert not ServerSign(str(state), 1, None).shut(shut=True)
    asked: list[bool] = []

    def shut(*, shut: bool) -> bool:
        asked.append(shut)
        return shut

    sign = ServerSign(str(state), 1, shut)
    assert sign.shut(shut=True)
    assert not sign.shut(shut=False)
    assert asked == [True, False]
