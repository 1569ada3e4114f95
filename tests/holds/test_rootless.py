"""The hold `podman` for an ordinary user: rootless, with users and groups of its own (HLD-4)."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engines import image_tar, missing
from tests.holds import held, late
from tests.product import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engines")]
USER = 12345
RUN = [sys.executable, "-I", f"{REPOSITORY}/scripts/launcher/boot.py", str(REPOSITORY), sys.prefix, "run"]
# In a mount namespace of its own this machine has that user, with numbers to give to others (subuid(5)).
AS_THAT_USER = """\
set -eu
base=$1; shift
for file in passwd group subuid subgid; do
  touch /etc/$file; cp /etc/$file $base/$file
done
echo "tidegate-test:x:12345:12345::$base/home:/bin/sh" >> $base/passwd
echo "tidegate-test:x:12345:" >> $base/group
echo "tidegate-test:200000:65536" > $base/subuid
echo "tidegate-test:200000:65536" > $base/subgid
for file in passwd group subuid subgid; do mount --bind $base/$file /etc/$file; done
cd $base/home/project
exec $AS_USER $base/home env -i HOME=$base/home XDG_RUNTIME_DIR=$base/run LANG=C.UTF-8 \\
  PATH=/usr/bin:/bin:/usr/sbin:/sbin CONTAINERS_CONF=$base/containers.conf \\
  CONTAINERS_STORAGE_CONF=$base/storage.conf "$@"
"""
SETTINGS = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
"""


class Rootless:
    """A folder of that user's, and podman there."""

    def __init__(self, base: str) -> None:
        self.base = base
        for name in ("home", "home/project", "run"):
            os.mkdir(f"{base}/{name}", 0o700)
            os.chown(f"{base}/{name}", USER, USER)
        os.chmod(base, 0o755)
        for name, text in (("containers.conf", SETTINGS), ("storage.conf", '[storage]\ndriver = "vfs"\n')):
            with open(f"{base}/{name}", "w", encoding="ascii") as file:
                file.write(text)

    def do(self, *argv: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a command as that user."""
        whole = ["unshare", "--mount", "sh", "-c", AS_THAT_USER, "sh", self.base, *argv]
        environment = {**os.environ, "AS_USER": f"{sys.executable} {held.AS_USER}"}
        return subprocess.run(whole, env=environment, input=data, capture_output=True, check=False, timeout=120)

    def run(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """Run `tidegate run --hold podman` as that user."""
        return self.do(*RUN, "--hold", "podman", "--image", "tidegate-test:2", *words)


@pytest.fixture
def rootless() -> Iterator[Rootless]:
    """That user, with the image of the tests."""
    why = missing("podman") or ("" if shutil.which("newuidmap") else "newuidmap is not installed")
    if why:
        pytest.skip(why)
    base = tempfile.mkdtemp(prefix="tidegate-rootless-", dir="/var/tmp")
    made = Rootless(base)
    try:
        done = made.do("podman", "import", "-", "tidegate-test:2", data=image_tar())
        if done.returncode:
            pytest.skip(f"rootless podman does not work here: {done.stderr.decode(errors='replace')[-600:]}")
        yield made
        assert made.do("podman", "ps", "-aq").stdout == b""
    finally:
        made.do("podman", "rm", "--time", "0", "--force", "--all")
        made.do("podman", "unshare", "rm", "-rf", f"{base}/home/.local/share/containers")
        with contextlib.suppress(OSError, ValueError):  # podman's own, which outlives all of its user's containers
            os.kill(int(Path(base, "run", "libpod", "tmp", "pause.pid").read_text()), signal.SIGKILL)
        shutil.rmtree(base, ignore_errors=True)


def test_an_ordinary_user_has_the_same_hold(rootless: Rootless) -> None:
    """Its own number inside, files that are its own outside, no right, and the gate in front (HLD-4, HLD-6, HLD-13)."""
    done = rootless.run(
        *("--", "sh", "-c"),
        "id -u; touch made; grep -c 0000000000000000 /proc/self/status; unset http_proxy;"
        " nc -w 2 203.0.113.9 81 </dev/null; ip link | grep -c mtu; exit 7",
    )
    assert done.returncode == 7, done.stderr
    assert done.stdout.split()[0] == b"12345"
    assert done.stdout.split()[-1] == b"1"
    assert b"203.0.113.9:81" in done.stderr
    assert os.stat(f"{rootless.base}/home/project/made").st_uid == USER


def test_a_container_that_cannot_start_is_tidegates_own_end(rootless: Rootless) -> None:
    """What the engine cannot start is 78, not an exit of the command (HLD-7, HLD-16)."""
    done = rootless.run("--container-option", "runtime=no-such-runtime", "--", "true")
    assert done.returncode == 78, done.stderr


def test_a_late_socket_is_refused(rootless: Rootless) -> None:
    """What another program makes in the workspace meanwhile is out of reach, the task's own is not (HLD-14)."""
    folder = Path(rootless.base) / "home" / "project"
    shares = [part for path in late.NEEDS for part in ("--share", f"{path}:ro")]
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(rootless.run, *shares, "--", *late.PYTHON, late.CLIENT)
        late.wait_for(folder / "own.sock")
        with late.serve(folder) as outside:
            (folder / "go").touch()
            done = running.result()
            assert (done.returncode, done.stdout) == (0, b"up\nECONNREFUSED done\n"), done.stderr
            assert not late.reached(outside)
    assert b"can be reached" not in done.stderr


def test_a_relay_captures_as_well(rootless: Rootless) -> None:
    """HLD-4, HLD-6: who makes the rules is in the user namespace that the relay's network belongs to."""
    built = rootless.do(*RUN[:-1], "relay-image", "build", "--engine", "podman")
    assert built.returncode == 0, built.stderr
    script = (
        "unset http_proxy HTTP_PROXY; nc -w 2 203.0.113.9 81 </dev/null; nslookup a.test; ip link | grep -c mtu; exit 7"
    )
    done = rootless.run("--transport", "relay", "--", "sh", "-c", script)
    assert done.returncode == 7, done.stderr
    assert done.stdout.split()[-1] == b"1"
    assert b"203.0.113.9:81" in done.stderr
