"""attaching.py: which containers of others can be held (tests/holds/test_attach.py has the containers)."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.holds.container.attaching import interfaces_of, is_filtered, mounted_writable, networks_of, writable_of
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path


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


IN_A_NAMESPACE = """
set -e
mount --bind -o ro "$0" "$0"
mount -o remount,bind,ro "$0"
[ -z "$1" ] || mount --bind "$1" "$0/below"
echo up
exec sleep 1000
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
@pytest.mark.parametrize("below", [False, True])
def test_the_kernel_says_what_is_mounted_to_be_written(tmp_path: Path, *, below: bool) -> None:
    """SRV-6, HLD-15: a folder below a read-only one is named as it is called outside; the read-only one is not."""
    top, other = tmp_path / "top", tmp_path / "other"
    (top / "below").mkdir(parents=True)
    other.mkdir()
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", IN_A_NAMESPACE, str(top)]
    child = subprocess.Popen([*argv, str(other) if below else ""], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        child.stdout.close()
        found = mounted_writable(child.pid)
        assert (str(other) in found, str(top) in found) == (below, False)
    finally:
        child.kill()
        child.wait()


def test_mounts_that_cannot_be_read_are_not_taken_for_none() -> None:
    """HLD-7: who is gone has no mounts to look at."""
    with pytest.raises(StartError, match="what is mounted in the container cannot be read"):
        mounted_writable(1 << 22)


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
