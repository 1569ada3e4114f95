"""A bundle of roots that is a pipe: what it says is waited for, but not longer than somebody wants (INS-2, HLD-16)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.product import Product

if TYPE_CHECKING:
    from pathlib import Path


def _at_the_pipe(path: str, process: subprocess.Popen[str]) -> int:
    """Wait until it has been opened to be read; return its other end."""
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # ENXIO: nobody reads it yet
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, 0])
def test_a_start_that_waits_for_a_pipe_can_be_ended(tmp_path: Path, number: int) -> None:
    """HLD-16, HLD-7: a signal that asks for the end is heeded, and nothing has run; without one the pipe is read."""
    product = Product(tmp_path, user=False)
    pipe = str(product.home / "roots")
    os.mkfifo(pipe)
    environment = product.environment | {"SSL_CERT_FILE": pipe}
    with product.start("--status-file", "status", "--", "touch", "ran", env=environment) as process:
        end = _at_the_pipe(pipe, process)
        try:
            if number:
                process.send_signal(number)
                out, err = process.communicate(timeout=120)
        finally:
            os.close(end)
        if not number:
            out, err = process.communicate(timeout=120)
    assert out == "", err
    assert (product.folder / "ran").exists() == (not number)
    if number:
        assert process.returncode in (128 + number, -number), err
        assert json.loads((product.folder / "status").read_text())["source"] == "tidegate"
    else:
        assert process.returncode == 0, err
