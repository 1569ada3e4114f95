"""Parts that are stopped and not ended (SIGSTOP): the engine, the relay, the server. Nothing hangs for it (HLD-7)."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from tests import engines
from tests.engines import IMAGE
from tests.product import Product
from tests.served import Served

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engines")]


def test_an_engine_that_is_stopped_is_an_error_soon_and_the_server_goes_on() -> None:
    """A daemon of its own under SIGSTOP: 78 with one line, from `run` and `exec`; the server answers all the while.

    With SIGCONT the same command runs (HLD-4, HLD-7).
    """
    why = engines.missing("docker")
    if why:
        pytest.skip(why)
    with tempfile.TemporaryDirectory(prefix="tidegate-frozen-", dir="/var/tmp") as folder:
        # Beside the other daemons: who looks for those that killed runs left sees by its lock that it is in use.
        shared = engines._Shared(f"/var/tmp/tidegate-docker-frozen-{os.getpid()}")
        shared.join()
        daemon = int(Path(shared.folder, "pid").read_text())
        product = Product(Path(folder) / "person", user=False)
        product.environment["DOCKER_HOST"] = f"unix://{shared.socket}"
        words = ("--hold", "docker", "--image", IMAGE, "--", "echo", "ran")
        try:
            with Served(product) as server:
                task = product.tidegate("task", "create").stdout.strip()
                os.kill(daemon, signal.SIGSTOP)
                began = time.monotonic()
                waiting = [server.start(*command, *words) for command in (("run",), ("exec", task))]
                asked = 0
                while any(one.poll() is None for one in waiting):
                    assert len(server.json("task", "list")) >= 1
                    asked += 1
                took = time.monotonic() - began
                for one in waiting:
                    out, err = one.communicate()
                    assert (one.returncode, out, err.count("\n")) == (78, "", 1), err
                    assert "docker did not answer within 20 seconds" in err
                assert asked > 3
                assert took < 60, took
                os.kill(daemon, signal.SIGCONT)
                # It looks after its own parts first, which it did not hear from for a while.
                late = time.monotonic() + 120
                while (done := product.tidegate("exec", task, *words)).returncode and time.monotonic() < late:
                    assert done.returncode == 78, done.stderr
                assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
        finally:
            os.kill(daemon, signal.SIGCONT)
            shared.leave()
            subprocess.run(["umount", "-l", f"{shared.folder}/data"], capture_output=True, check=False)
