"""attaching.py: which containers of others can be held (tests/holds/test_attach.py has the containers)."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest

from tidegate.holds.container.attaching import interfaces_of, networks_of


@pytest.mark.parametrize(
    ("found", "networks"),
    [
        ({"HostConfig": {"NetworkMode": "none"}, "NetworkSettings": {"Networks": {"none": {}}}}, {"none"}),
        ({"HostConfig": {"NetworkMode": "none"}, "NetworkSettings": {}}, {"none"}),
        ({"HostConfig": {"NetworkMode": "none"}, "NetworkSettings": {"Networks": {"web": {}}}}, {"none", "web"}),
        ({"HostConfig": {"NetworkMode": "bridge"}}, {"bridge"}),
        ({}, {"default"}),
    ],
)
def test_every_network_is_seen(found: dict[str, Any], networks: set[str]) -> None:
    """The mode it was started with, and those it was joined to since (HLD-4)."""
    assert networks_of(found) == networks


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can enter a network that root made")
def test_the_network_itself_is_looked_at() -> None:
    """From inside: a network of its own has loopback alone, this one may have more (HLD-4, HLD-11)."""
    child = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo up; exec sleep 1000"], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        assert interfaces_of(child.pid, rootless=False) == ["lo"]
        child.stdout.close()
    finally:
        child.kill()
        child.wait()


def test_a_process_that_is_gone_has_none() -> None:
    """What cannot be entered is not taken for empty (HLD-7)."""
    assert interfaces_of(1 << 22, rootless=False) is None
