"""weakness.py: what leads out of a container."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.holds.container.weakness import (
    added_mounts,
    folders_with_sockets,
    is_engines_socket,
    other_proxies,
    weaknesses,
)

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


@pytest.mark.parametrize(
    ("mount", "says"),
    [
        ({"Type": "bind", "Source": "/home/person/.ssh", "Destination": "/keys"}, "/home/person/.ssh"),
        ({"Type": "bind", "Source": "/home/person/project", "Destination": "/else"}, "/else"),
        ({"Type": "volume", "Name": "shared", "Source": "/v/shared/_data", "Destination": "/v"}, "shared"),
    ],
)
def test_what_an_engine_mounts_by_itself_is_named(mount: dict[str, Any], says: str) -> None:
    """A folder, or a volume that other containers may have, which the engine's own settings added (HLD-4, HLD-14)."""
    (one,) = added_mounts({"Mounts": [mount]}, ["--mount", "type=bind,src=/home/person/project,dst=/work,readonly"])
    assert says in one


def test_what_was_asked_for_and_what_is_the_images_own_pass() -> None:
    """The neighbour: our mounts, a folder in memory, and a volume without a name."""
    asked = ["--mount", "type=bind,src=/a=b,dst=/a=b", "--mount", "type=tmpfs,dst=/t,tmpfs-mode=0000"]
    mounts = [
        {"Type": "bind", "Source": "/a=b", "Destination": "/a=b"},
        {"Type": "tmpfs", "Source": "", "Destination": "/t"},
        {"Type": "volume", "Name": "0" * 63 + "f", "Source": "/v/_data", "Destination": "/image"},
    ]
    assert added_mounts({"Mounts": mounts}, asked) == []


def test_a_proxy_that_leads_elsewhere_is_named_without_its_password() -> None:
    """The task's own pass, as do empty ones (GAT-10, B100)."""
    env = {"HTTP_PROXY": "http://127.0.0.1:3128"}
    found = ["HTTP_PROXY=http://127.0.0.1:3128", "ftp_proxy=", "RSYNC_PROXY=http://me:secret@proxy:1", "PATH=/bin"]
    (one,) = other_proxies({"Config": {"Env": found}}, env)
    assert "RSYNC_PROXY" in one
    assert "secret" not in one
    assert other_proxies({"Config": {"Env": ["HTTP_PROXY=http://127.0.0.1:3128", "no_proxy="]}}, env) == []


def test_a_link_to_a_socket_is_that_socket(tmp_path: Path) -> None:
    """By whatever name: a link that leads to the engine's socket counts (B79)."""
    os.symlink("/run/docker.sock", tmp_path / "harmless")
    assert is_engines_socket(str(tmp_path / "harmless"))
    assert not is_engines_socket(str(tmp_path / "other.sock"))


def test_a_folder_in_which_an_engine_listens_is_named(tmp_path: Path) -> None:
    """Of one who started it otherwise (`attach`): by its usual name, or the one that a variable gives it (HLD-4, B79).

    The neighbours: a folder beside it, and one with a socket of somebody else's.
    """
    for name in ("docker", "own", "other"):
        (tmp_path / name).mkdir()

    def weak(name: str) -> list[str]:
        mounts = [{"Type": "bind", "Source": str(tmp_path / name), "Destination": "/x"}]
        return folders_with_sockets({"Mounts": mounts}, {"DOCKER_HOST": f"unix://{tmp_path}/own/mine"})

    with socket.socket(socket.AF_UNIX) as engine, socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "other" / "a.sock"))
        engine.bind(str(tmp_path / "docker" / "docker.sock"))
        (one,) = weak("docker")
        assert f"{tmp_path}/docker/docker.sock" in one
        assert len(weak("own")) == 1
        assert weak("other") == []
