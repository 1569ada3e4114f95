"""Where attempts around a gate are told of: found out by opening (JRN-3, HLD-7)."""

from __future__ import annotations

import errno
import os
import sys

import pytest

from tests.first_network import in_first_network
from tests.lab.api import REPOSITORY
from tidegate.holds import attempt_log, netfilter

GROUP = 4021


@pytest.mark.usefixtures("isolated")
def test_nflog_is_taken_where_it_is() -> None:
    """JRN-3: the socket is bound to the group: another does not get it, and the next one does when it is closed."""
    kind, fd = attempt_log.open_attempts(GROUP)
    assert kind == attempt_log.NFLOG
    with pytest.raises(OSError, match="log") as caught:
        attempt_log.open_attempts(GROUP)
    assert caught.value.errno == errno.EBUSY
    assert attempt_log.kind(GROUP) == attempt_log.NFLOG, "who comes second does not take the rules for others"
    os.close(fd)
    os.close(attempt_log.open_attempts(GROUP)[1])


def test_the_kernels_log_is_next_and_then_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """HLD-7, JRN-3: where the kernel has no nflog, its own log; where that says nothing of us, neither."""

    def missing(_group: int) -> None:
        raise OSError(errno.EPROTONOSUPPORT, os.strerror(errno.EPROTONOSUPPORT))

    monkeypatch.setattr(netfilter, "open_log", missing)
    monkeypatch.setattr(attempt_log, "KMSG", os.devnull)
    monkeypatch.setattr(attempt_log, "_is_told_there", lambda: True)
    kind, fd = attempt_log.open_attempts(GROUP)
    with open(os.devnull, "rb") as null:
        assert (kind, os.fstat(fd).st_rdev) == (attempt_log.KERNEL, os.fstat(null.fileno()).st_rdev)
    os.close(fd)
    monkeypatch.setattr(attempt_log, "KMSG", "/nowhere/kmsg")
    assert attempt_log.open_attempts(GROUP) == (attempt_log.NEITHER, -1)
    monkeypatch.setattr(attempt_log, "KMSG", os.devnull)
    monkeypatch.setattr(attempt_log, "_is_told_there", lambda: False)
    assert attempt_log.open_attempts(GROUP) == (attempt_log.NEITHER, -1)


@pytest.mark.usefixtures("isolated")
def test_another_network_is_not_told_of_in_the_kernels_log() -> None:
    """JRN-3: rules of another namespace do not write there; that is not taken for silence."""
    assert not attempt_log._is_told_there(), "these tests have a network of their own"
    code = "from tidegate.holds import attempt_log as log; print(log._is_told_there())"
    told = in_first_network("env", f"PYTHONPATH={REPOSITORY}/src", sys.executable, "-c", code)
    if told != "True":
        pytest.skip("the network that these tests were started in is not the machine's first, or cannot be seen to be")
