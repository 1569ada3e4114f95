"""What both transports with relays share, without an engine; with engines in tests/holds/test_relays.py."""

from __future__ import annotations

import os
import socket
import stat
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.holds.container import relay_image, relays
from tidegate.holds.container.engine import Engine
from tidegate.holds.container.relay.ends import connect_unix
from tidegate.holds.container.relay.roles import check
from tidegate.holds.container.relay.words import GATE, LIFE, NAMES
from tidegate.holds.container.transport import Way
from tidegate.holds.inside import CARRIED, OFF, ON, PORTS, PROXY, STREAMS, TOLD
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.holds.inside import TaskSockets


def way(folder: Path, **more: Any) -> Way:
    """What one task wants."""
    return Way(**({"name": "tidegate-t", "labels": {}, "folder": str(folder), "port": 3128, "capture": OFF} | more))


def test_a_task_has_two_sockets_that_any_user_of_its_container_can_open(tmp_path: Path) -> None:
    """HLD-4 (b), GAT-2: behind a folder that is this user's alone; however long its path is."""
    folder = tmp_path / ("x" * 120)
    folder.mkdir(0o700)
    sockets = relays.Sockets(str(folder))
    try:
        assert sorted(os.listdir(folder / "channel")) == ["gate.sock", "life.sock"]
        for name in (NAMES[GATE], NAMES[LIFE]):
            assert stat.S_IMODE(os.stat(folder / "channel" / name).st_mode) == 0o666
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        assert check(str(sockets.folder)) == 1  # the path is too long for connect(2); a container's is not
    finally:
        sockets.close()


def test_where_connections_are_captured_the_gate_has_a_socket_for_each_kind(tmp_path: Path) -> None:
    """HLD-6: each with its role; a next gate gets all of them anew, in the same places."""
    sockets = relays.Sockets(str(tmp_path), captured=True)
    got: list[tuple[str, ...]] = []
    try:
        assert sorted(os.listdir(tmp_path / "channel")) == sorted(NAMES.values())
        sockets.deliver(lambda one: got.append(one.roles))
        with pytest.raises(StartError) as caught:  # who takes them and goes refuses nothing
            sockets.deliver_again(lambda one: got.append(one.roles))
        assert caught.value.code == "self-test"
        assert got == [(PROXY, CARRIED, STREAMS, TOLD)] * 2
    finally:
        sockets.close()


def test_the_gate_gets_its_socket_and_nobody_keeps_it(tmp_path: Path) -> None:
    """HLD-7: when the gate goes nobody listens any more, and who connects is refused at once."""
    sockets = relays.Sockets(str(tmp_path))
    got: list[TaskSockets] = []
    try:
        sockets.deliver(lambda one: got.append(one.replace(descriptors=tuple(map(os.dup, one.descriptors)))))
        assert got[0].roles == (PROXY,)
        path = str(tmp_path / "channel" / "gate.sock")
        connect_unix(path).close()
        with socket.socket(fileno=got[0].descriptors[0]):
            pass
        with pytest.raises(ConnectionRefusedError):
            connect_unix(path)
    finally:
        sockets.close()


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"capture": PORTS}, "transport-capture"),
        ({"published": (80,)}, "transport-publish"),
    ],
)
def test_what_a_relay_does_not_carry_is_refused(tmp_path: Path, more: dict[str, Any], code: str) -> None:
    """HLD-7: by name, with what to write instead; the neighbour wants none of it."""
    relays.check_wishes(way(tmp_path), "relay")
    relays.check_wishes(way(tmp_path, capture=ON), "relay")
    with pytest.raises(StartError) as caught:
        relays.check_wishes(way(tmp_path, **more), "relay")
    assert caught.value.code == code
    assert "--transport enter" in caught.value.fix


def test_a_missing_image_is_built_or_pulled() -> None:
    """HLD-7: ours is built, with no registry; somebody's own is pulled."""
    engine = Engine("podman")
    ours = relays.without_image(engine, relay_image.default_image())
    assert ours.fix == "tidegate relay-image build --engine podman"
    assert relays.without_image(engine, "example.test/r:1").fix == "podman pull example.test/r:1"


class Saying(Engine):
    """An engine that answers as one did."""

    def __init__(self, mode: str) -> None:
        super().__init__("docker")
        self.mode = mode

    def inspect(self, _container: str) -> dict[str, Any]:
        """What is known of the container."""
        return {"HostConfig": {"NetworkMode": self.mode}}


@pytest.mark.parametrize("mode", ["bridge", "host", "container:abc", ""])
def test_a_relay_with_a_network_is_not_joined(mode: str) -> None:
    """HLD-11: what an engine made in place of what was asked for stops the start."""
    with pytest.raises(StartError) as caught:
        relays.check_network(Saying(mode), "c")
    assert caught.value.code == "self-test"
