"""Real engines for tests: docker with a daemon of the test run's own, and podman with a store of each process's own.

Nothing of this machine's own docker or podman is touched: the daemon has its own folders, socket and network (none at
all, and no iptables), podman its own store and settings (bench/engines.py, which has the image too). The
daemon is shared by the workers of a run: the first that needs it starts it, the last that ends stops it; one that a
killed run left is stopped by the next.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from bench.engines import IMAGE, dockerd, image_tar, missing, podman_store, unmount_below

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLACE = "/var/tmp"
_DAEMON, _STORE = "tidegate-docker-", "tidegate-podman-"


class _Shared:
    """The folder of a test run's daemon; each process that uses it holds a lock on `users`."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.socket = os.path.join(folder, "docker.sock")
        self._list = os.path.join(folder, "users")
        self._open()

    def _open(self) -> None:
        os.makedirs(self.folder, mode=0o711, exist_ok=True)
        self._users = os.open(self._list, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def join(self) -> None:
        """Use it, and start the daemon where nobody has."""
        fcntl.flock(self._users, fcntl.LOCK_SH)
        while not self._is_there():  # the last of those before has removed everything meanwhile
            os.close(self._users)
            self._open()
            fcntl.flock(self._users, fcntl.LOCK_SH)
        door = os.open(os.path.join(self.folder, "door"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(door, fcntl.LOCK_EX)
            if not os.path.exists(os.path.join(self.folder, "ready")):
                self._start()
        finally:
            os.close(door)

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._list), os.fstat(self._users))
        except FileNotFoundError:
            return False

    def leave(self) -> None:
        """Use it no more; the last stops the daemon and removes everything."""
        try:
            fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(self._users, fcntl.LOCK_UN)
        else:
            self._stop()
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._users)

    def is_left(self) -> bool:
        """Whether nobody uses it: what it has is of a run that was killed."""
        try:
            fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _start(self) -> None:
        argv = dockerd(self.folder)
        with open(os.path.join(self.folder, "log"), "wb") as log:
            quiet = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            subprocess.run(["setsid", "--fork", *argv], check=True, **quiet)
        environment = {**os.environ, "DOCKER_HOST": f"unix://{self.socket}"}
        deadline = time.monotonic() + 180
        while subprocess.run(["docker", "version"], env=environment, capture_output=True, check=False).returncode:
            if time.monotonic() > deadline:
                with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as said:
                    pytest.skip(f"docker's daemon does not start here: {said.read()[-600:]}")
            time.sleep(0.2)
        subprocess.run(
            ["docker", "import", "-", IMAGE], env=environment, input=image_tar(), capture_output=True, check=True
        )
        with open(os.path.join(self.folder, "ready"), "w", encoding="ascii"):
            pass

    def _stop(self) -> None:
        try:
            with open(os.path.join(self.folder, "pid"), encoding="ascii") as file:
                pid = int(file.read())
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if self.socket.encode() not in file.read():
                    return  # the number is somebody else's by now
        except (OSError, ValueError):
            return
        environment = {**os.environ, "DOCKER_HOST": f"unix://{self.socket}"}
        ids = subprocess.run(
            ["docker", "ps", "-aq"], env=environment, capture_output=True, text=True, check=False
        ).stdout.split()
        if ids:
            subprocess.run(["docker", "rm", "-f", *ids], env=environment, capture_output=True, check=False)
        os.kill(pid, signal.SIGTERM)
        for _ in range(200):
            if not os.path.exists(f"/proc/{pid}") or _is_dead(pid):
                break
            time.sleep(0.1)
        for name in ("data/overlay2", "exec/netns"):
            unmount_below(os.path.join(self.folder, name))


def _is_dead(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def _run_id() -> str:
    return os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"alone-{os.getpid()}"


@pytest.fixture(scope="session")
def docker() -> Iterator[dict[str, str]]:
    """The variables by which docker's command line finds the daemon of this test run."""
    why = missing("docker")
    if why:
        pytest.skip(why)
    mine = os.path.join(_PLACE, f"{_DAEMON}{_run_id()[:16]}")
    for name in os.listdir(_PLACE):
        path = os.path.join(_PLACE, name)
        if name.startswith(_DAEMON) and path != mine:
            other = _Shared(path)
            if other.is_left():
                other.leave()
    shared = _Shared(mine)
    shared.join()
    yield {"DOCKER_HOST": f"unix://{shared.socket}"}
    shared.leave()


@pytest.fixture(scope="session")
def podman() -> Iterator[dict[str, str]]:
    """The variables by which podman finds the store of this process."""
    why = missing("podman")
    if why:
        pytest.skip(why)
    for name in os.listdir(_PLACE):
        if name.startswith(_STORE) and not os.path.exists(f"/proc/{name.removeprefix(_STORE)}"):
            shutil.rmtree(os.path.join(_PLACE, name), ignore_errors=True)  # of a run that was killed
    folder = os.path.join(_PLACE, f"{_STORE}{os.getpid()}")
    environment = podman_store(folder)
    whole = {**os.environ, **environment}
    try:
        done = subprocess.run(
            ["podman", "import", "-", IMAGE], env=whole, input=image_tar(), capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip(f"podman does not work here: {done.stderr.decode(errors='replace')[-600:]}")
        yield environment
    finally:
        subprocess.run(["podman", "rm", "--time", "0", "--force", "--all"], env=whole, capture_output=True, check=False)
        unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)


def of_one_worker(name: str) -> tuple[pytest.MarkDecorator, ...]:
    """The marks by which all tests with an engine run in one worker, whatever module they are of.

    The daemon has the network of the worker that started it: the way of a virtual machine leads to no other's.
    """
    return pytest.mark.xdist_group(name), pytest.mark.xdist_group("engines")


BOTH = [pytest.param(name, marks=of_one_worker(name)) for name in ("docker", "podman")]
"""For `parametrize`: what is tried with one engine runs beside what is tried with the other, and not beside itself."""


@pytest.fixture(params=BOTH)
def engine(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """Each engine in turn: its name, and the variables that it is found by."""
    return request.param, request.getfixturevalue(request.param)
