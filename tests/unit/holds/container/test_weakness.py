"""weakness.py: what leads out of a container."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.holds.container.weakness import is_engines_socket, weaknesses

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({"HostConfig": {"Privileged": True}}, "privileged"),
        ({"HostConfig": {"PidMode": "host"}}, "processes"),
        ({"HostConfig": {"NetworkMode": "host"}}, "network"),
        ({"HostConfig": {"IpcMode": "host"}}, "IPC"),
        ({"HostConfig": {"UTSMode": "host"}}, "name"),
        ({"HostConfig": {"UsernsMode": "host"}}, "users"),
        ({"HostConfig": {"CapAdd": ["SYS_ADMIN"]}}, "SYS_ADMIN"),
        ({"HostConfig": {"Devices": [{"PathOnHost": "/dev/sda"}]}}, "/dev/sda"),
        ({"Mounts": [{"Type": "bind", "Source": "/var/run/docker.sock"}]}, "engine's socket"),
        ({"Mounts": [{"Type": "bind", "Source": "/run"}]}, "/run of this machine"),
        ({"Mounts": [{"Source": "/"}]}, "/ of this machine"),
    ],
)
def test_each_way_out_is_named(found: dict[str, Any], says: str) -> None:
    """What shares this machine's rights, namespaces, devices or sockets is told by name (HLD-4, B79)."""
    (one,) = weaknesses(found)
    assert says in one


def test_an_ordinary_container_has_none() -> None:
    """The neighbour: own namespaces, dropped rights, and a folder of the person's."""
    host = {"Privileged": False, "CapAdd": None, "PidMode": "", "IpcMode": "private", "NetworkMode": "container:abc"}
    mounts = [{"Type": "bind", "Source": "/home/person/project"}, {"Type": "volume", "Source": "/var/lib/x/_data"}]
    assert weaknesses({"HostConfig": {**host, "Devices": []}, "Mounts": mounts}) == []


def test_a_link_to_a_socket_is_that_socket(tmp_path: Path) -> None:
    """By whatever name: a link that leads to the engine's socket counts (B79)."""
    os.symlink("/run/docker.sock", tmp_path / "harmless")
    assert is_engines_socket(str(tmp_path / "harmless"))
    assert not is_engines_socket(str(tmp_path / "other.sock"))
