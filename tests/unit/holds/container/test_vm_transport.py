"""The transport `vm`: networks by name, keys on the disk, and what two relays must not share."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.holds.container import vm_transport
from tidegate.holds.container.certificates import TaskKeys
from tidegate.holds.container.engine import Engine, Facts
from tidegate.holds.container.transport import Way
from tidegate.holds.container.vm_transport import VARIABLE, VmTransport, check_apart
from tidegate.holds.inside import OFF
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path


class Known(Engine):
    """An engine of which everything is known."""

    def __init__(self, name: str, containers: dict[str, Any] | None = None, *, in_vm: bool = True, **env: str) -> None:
        super().__init__(name, env)
        self.containers = containers or {}
        self.in_vm = in_vm

    def facts(self) -> Facts:
        """What it is."""
        return Facts("1", rootless=False, in_vm=self.in_vm, system="")

    def inspect(self, container: str) -> dict[str, Any]:
        """What is known of a container."""
        found: dict[str, Any] = self.containers[container]
        return found


@pytest.mark.parametrize(
    ("engine", "options", "host"),
    [
        (Known("docker"), [], "host.docker.internal"),
        (Known("podman"), [], "host.containers.internal"),
        (
            Known("docker", in_vm=False),
            ["--add-host", "host.docker.internal:host-gateway"],
            "host.docker.internal",
        ),
        (Known("podman", in_vm=False), [], "host.containers.internal"),
        (Known("podman", **{VARIABLE: "host,127.0.0.1"}), ["--network", "host"], "127.0.0.1"),
        (Known("podman", **{VARIABLE: "mine"}), ["--network", "mine"], "host.containers.internal"),
        (
            Known("podman", **{VARIABLE: "slirp4netns:a=b,c=d,10.0.2.2"}),
            ["--network", "slirp4netns:a=b,c=d"],
            "10.0.2.2",
        ),
    ],
)
def test_the_carrier_gets_the_engines_network_and_this_machines_name_there(
    engine: Engine, options: list[str], host: str
) -> None:
    """HLD-4 (c): the names that the engines gave it; another network only by name."""
    assert vm_transport._network(engine) == (options, host)


def test_keys_are_behind_a_folder_of_this_user(tmp_path: Path) -> None:
    """HLD-4 (c): a container of whatever user reads them where they are mounted; nobody else gets there."""
    made, folder = str(tmp_path / "keys"), tmp_path / "run" / "relays" / "t"
    vm_transport._write_keys(made, TaskKeys(b"key", b"ca", "f", 1.0), "me")
    vm_transport._move(made, str(folder))
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert sorted(os.listdir(folder)) == ["ca.pem", "owner", "task.pem"]
    assert (folder / "task.pem").read_bytes() == b"key"
    vm_transport._write_keys(made, TaskKeys(b"other", b"ca", "f", 1.0), "me")
    with pytest.raises(StartError):
        vm_transport._move(made, str(folder))
    assert (folder / "task.pem").read_bytes() == b"key"


def container(mode: str, *mounts: tuple[str, str], networks: tuple[str, ...] = ()) -> dict[str, Any]:
    """What an engine says of one."""
    return {
        "HostConfig": {"NetworkMode": mode},
        "NetworkSettings": {"Networks": dict.fromkeys(networks)},
        "Mounts": [{"Source": source, "Destination": target} for source, target in mounts],
    }


NEAR = container("none", ("vol", "/run/tidegate"), networks=("none",))
FAR = container("bridge", ("vol", "/run/tidegate"), ("/state/keys", "/run/keys"), networks=("bridge",))


@pytest.mark.parametrize(
    ("near", "far", "apart"),
    [
        (NEAR, FAR, True),
        (container("bridge", ("vol", "/run/tidegate"), networks=("bridge",)), FAR, False),
        (NEAR, container("container:near", ("vol", "/run/tidegate")), False),
        (container("none", ("vol", "/run/tidegate"), ("/home", "/home")), FAR, True),
        (container("none", ("/state/keys", "/else")), FAR, False),
        (container("none", ("/other", "/run/keys")), FAR, False),
    ],
)
def test_the_relays_share_one_volume_and_nothing_else(near: dict[str, Any], far: dict[str, Any], apart: bool) -> None:
    """HLD-4 (c): no network, no other mount, no certificate; what an engine made otherwise stops the start."""
    engine = Known("docker", {"near": near, "far": far})
    if apart:
        check_apart(engine, "near", "far", "vol")
        return
    with pytest.raises(StartError) as caught:
        check_apart(engine, "near", "far", "vol")
    assert caught.value.code == "self-test"


def test_without_a_state_folder_there_is_no_authority(tmp_path: Path) -> None:
    """HLD-7: exit 78, and nothing is left."""
    way = Way(name="t", labels={}, folder=str(tmp_path), port=3128, capture=OFF)
    with pytest.raises(StartError) as caught:
        VmTransport().open(Known("docker"), way, lambda _sockets: None)
    assert caught.value.code == "authority"
    assert (VmTransport().name, VmTransport().captures) == ("vm", True)
