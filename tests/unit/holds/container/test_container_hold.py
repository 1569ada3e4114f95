"""container_hold.py: what is refused before an engine is asked (tests/holds/test_containers.py has the rest)."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.holds.container.container_hold import ContainerHold
from tidegate.holds.hold import Container, LaunchSpec, find_hold
from tidegate.model.errors import StartError


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_it_is_found_by_name(name: str) -> None:
    """Both engines are holds with a gate (HLD-4)."""
    found = find_hold(name)
    assert (found.name, found.has_gate) == (name, True)


@pytest.mark.parametrize(
    ("more", "code"), [({"container": None}, "container-image"), ({"ssh_agent": True}, "container-agent")]
)
def test_what_it_cannot_do_is_refused(more: dict[str, Any], code: str) -> None:
    """No image, and an agent's socket, which is outside: one error each before anything is made (HLD-7)."""
    spec = LaunchSpec(argv=("x",), env={}, cwd="/", container=Container("image:1")).replace(**more)
    with pytest.raises(StartError) as caught:
        ContainerHold("docker").launch(spec, lambda _sockets: None)
    assert caught.value.code == code
