"""Loads the lab, so that every test runs in a network of its own (tests/lab/plugin.py)."""

from __future__ import annotations

import os
import resource
import signal
import stat
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tidegate.holds import linux

if TYPE_CHECKING:
    from collections.abc import Iterator

os.umask(0o022)  # whatever the caller's: other users read what tests write
# What shells and pagers of the tests are told is not to be found in the history of whoever runs them.
os.environ.update(HISTFILE="", LESSHISTFILE="-")
pytest_plugins = [
    "tests.leftovers",
    "tests.lab.plugin",
    "tests.client_programs",
    "tests.engines",
    "tests.holds.launcher",
]

# A deadline would measure the machine: the suite runs in parallel, on whatever CI has.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A clone of somebody else may be tested too: then what was found is not kept.
settings.register_profile("house-unwritable", settings.get_profile("house"), database=None)
writable = os.access(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), os.W_OK)
settings.load_profile("house" if writable else "house-unwritable")

# A run in the background of a script, or under nohup, inherits signals that are ignored, and so would what tests start.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, None), (signal.SIGHUP, None)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual or signal.SIG_DFL)


@pytest.fixture(autouse=True)
def _cores_as_before() -> Iterator[None]:
    """What makes an inspector lets no core of its process be written: of the test run's own it may again after a test.

    Whoever inherits the limit would look like a gate (tests/holds/test_secrets_held.py).
    """
    before = resource.getrlimit(resource.RLIMIT_CORE)
    yield
    if resource.getrlimit(resource.RLIMIT_CORE) != before:
        resource.setrlimit(resource.RLIMIT_CORE, before)
        linux.prctl(linux.PR_SET_DUMPABLE, 1)


@pytest.fixture(autouse=True)
def _shared_folder_stays_closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The folder that all tests of a run have in common stays closed to others, as pytest makes it.

    One test that opens it decides for the others where their ordinary user can come in: and then the next pytest of
    this user closes pytest's topmost folder again, in the midst of them.
    """
    yield
    base = tmp_path_factory.getbasetemp()
    assert not stat.S_IMODE(base.stat().st_mode) & 0o077, f"{base} is open to others"
