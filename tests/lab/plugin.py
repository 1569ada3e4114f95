"""The pytest plugin that puts every test process behind its own network, and the `lab` fixture.

At its start each process that runs tests (an xdist worker, or the only one) enters a network and a mount namespace
of its own, with resolv.conf, hosts and nsswitch.conf replaced there and nowhere else. So no test can reach the
outside, and workers cannot clash on ports. An ordinary user gets there through a user namespace that keeps its id.
tests/registries is the exception: it drives package managers against real registries, and runs alone without isolation.

Where the kernel does not let us, tests that use `lab` are skipped and say why; a missing tool fails them under CI=true.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import tempfile
from typing import TYPE_CHECKING

import pytest

from tests.lab import links, namespaces
from tests.lab.api import REPOSITORY, Lab, LabMissingError
from tests.lab.sweep import sweep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_REGISTRIES = os.path.join(REPOSITORY, "tests", "registries")


class _State:
    """What this process found out at its start."""

    folder: str | None = None
    isolated = False
    why_not = "the plugin did not run"
    could_run = False
    ipv6 = False
    lab: Lab | None = None


def _only_registries(config: pytest.Config) -> bool:
    paths = [os.path.abspath(str(arg).split("::")[0]) for arg in config.args]
    return bool(paths) and all(os.path.commonpath([path, _REGISTRIES]) == _REGISTRIES for path in paths)


def _write_etc(folder: str) -> None:
    name = socket.gethostname()
    files = {
        "resolv.conf": f"nameserver {links.INTERNET4}\noptions timeout:1 attempts:2\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
        f"127.0.1.1 {name}\n1.2.3.200 in-hosts.test\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\n",
    }
    for file, text in files.items():
        target = f"/etc/{file}"
        if not os.path.exists(target):
            continue
        source = os.path.join(folder, file)
        with open(source, "w", encoding="ascii") as out:
            out.write(text)
        os.chmod(source, 0o644)
        namespaces.mount(source, os.path.realpath(target), flags=namespaces.MS_BIND)


def _sweep() -> None:
    """Remove the folders of test processes that were killed."""
    for name in os.listdir(tempfile.gettempdir()):
        if name.startswith("tidegate-lab-") and not os.path.exists(f"/proc/{name.split('-')[2]}"):
            shutil.rmtree(os.path.join(tempfile.gettempdir(), name), ignore_errors=True)
    sweep()


def _isolate(config: pytest.Config) -> None:
    """Enter the namespaces; in the process that only starts workers, no further than the user namespace."""
    if not namespaces.may_administer():
        if namespaces.thread_count() != 1:
            raise OSError(errno.EINVAL, "this process has threads, so it cannot enter a user namespace")
        namespaces.try_user_namespace()
        namespaces.enter_user_namespace()
    if getattr(config.option, "dist", "no") != "no" and not hasattr(config, "workerinput"):
        return
    namespaces.unshare(namespaces.CLONE_NEWNET | namespaces.CLONE_NEWNS)
    namespaces.private_mounts()
    _State.isolated = True
    _State.ipv6 = links.enable_ipv6()
    namespaces.loopback_up()
    _sweep()
    _State.folder = tempfile.mkdtemp(prefix=f"tidegate-lab-{os.getpid()}-")
    os.chmod(_State.folder, 0o755)
    _write_etc(_State.folder)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Isolate this process and start the internet."""
    config.addinivalue_line("markers", "network: crosses the machine's real network (tests/registries only)")
    if _only_registries(config):
        _State.why_not = "tests/registries runs on the machine's own network"
        return
    try:
        _isolate(config)
    except OSError as error:
        _State.why_not = f"no namespaces of our own here: {error.strerror}"
        return
    if _State.folder is None:
        return
    try:
        _State.lab = Lab(_State.folder, ipv6=_State.ipv6)
    except LabMissingError as error:
        _State.why_not, _State.could_run = str(error), True
    except (OSError, RuntimeError) as error:
        _State.why_not, _State.could_run = f"the lab could not be laid out: {error}", True
    if os.geteuid() != 0:
        namespaces.drop_ambient()


def pytest_unconfigure() -> None:
    """End the internet and remove what was written."""
    if _State.lab is not None:
        _State.lab.stop()
        _State.lab = None
    if _State.folder is not None:
        shutil.rmtree(_State.folder, ignore_errors=True)
        _State.folder = None


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave tests/registries to its own run: here it would have no network."""
    if _State.isolated and os.path.commonpath([str(collection_path), _REGISTRIES]) == _REGISTRIES:
        return True
    return None


@pytest.fixture
def lab() -> Iterator[Lab]:
    """The toy internet, empty again after each test. See tests/lab/api.py."""
    if _State.lab is None:
        if _State.could_run and os.environ.get("CI") == "true":
            pytest.fail(f"the lab could run here: {_State.why_not}", pytrace=False)
        pytest.skip(f"lab: {_State.why_not}")
    _State.lab.clear()
    yield _State.lab
    _State.lab.clear()


@pytest.fixture
def isolated() -> None:
    """Skip a test that needs no lab, but a network namespace of its own."""
    if not _State.isolated:
        pytest.skip(f"lab: {_State.why_not}")
