"""attaching.py: which containers of others can be held (tests/holds/test_attach.py has the containers)."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from tidegate.holds.container.attaching import interfaces_of, is_filtered, networks_of, writable_of


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


@pytest.mark.parametrize(
    ("found", "writable"),
    [
        ({}, ()),
        ({"Mounts": [{"Source": "/a", "RW": True}, {"Source": "/b", "RW": False}, {"Source": ""}]}, ("/a",)),
        ({"Mounts": [{"Source": "/a"}]}, ("/a",)),  # what is not said to be read-only is not
        (
            {"Mounts": None, "GraphDriver": {"Data": {"UpperDir": "/u", "MergedDir": "/m", "LowerDir": "/l"}}},
            ("/u", "/m"),
        ),
        ({"Rootfs": "/root", "GraphDriver": {"Data": None}}, ("/root",)),
    ],
)
def test_what_it_can_write_is_known(found: dict[str, Any], writable: tuple[str, ...]) -> None:
    """SRV-6, HLD-15: mounts and its own layer, of docker and podman; no tool is run from there."""
    assert writable_of(found) == writable


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


@pytest.mark.parametrize(("mode", "is_one"), [("0", False), ("2", True)])
def test_a_process_with_a_filter_is_told_from_one_without(mode: str, is_one: bool) -> None:
    """By what the kernel says of it; who is gone has none (HLD-4, HLD-13)."""
    child = subprocess.Popen([sys.executable, "-c", FILTERED, mode], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        child.stdout.close()
        assert is_filtered(child.pid) is is_one
    finally:
        child.kill()
        child.wait()
    assert not is_filtered(1 << 22)


FILTERED = """
import ctypes, sys, time
call = ctypes.CDLL(None).prctl
code = ctypes.create_string_buffer(bytes((6, 0, 0, 0, 0, 0, 0xFF, 0x7F)))  # BPF_RET, SECCOMP_RET_ALLOW
program = ctypes.create_string_buffer(bytes((1, 0, 0, 0, 0, 0, 0, 0)) + ctypes.addressof(code).to_bytes(8, "little"))
if sys.argv[1] == "2":
    assert call(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert call(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0) == 0  # PR_SET_SECCOMP, filter
print("up", flush=True)
time.sleep(1000)
"""


def test_a_process_that_is_gone_has_none() -> None:
    """What cannot be entered is not taken for empty (HLD-7)."""
    assert interfaces_of(1 << 22, rootless=False) is None
