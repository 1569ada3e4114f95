"""engine_says.py: what an engine says of itself and of its failures (more of the latter in test_engine)."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.holds.container.engine_says import DOCKER, PODMAN, facts_of, failure, not_here, without_image
from tidegate.model.errors import StartError


@pytest.mark.parametrize(
    ("name", "info", "wanted"),
    [
        (DOCKER, {"ServerVersion": "28.2", "OperatingSystem": "Debian"}, ("28.2", False, False)),
        (DOCKER, {"OperatingSystem": "Docker Desktop"}, ("", False, True)),
        (DOCKER, {"SecurityOptions": ["name=rootless"]}, ("", True, False)),
        (PODMAN, {"version": {"Version": "4.3"}, "host": {"security": {"rootless": True}}}, ("4.3", True, False)),
        (PODMAN, {"host": {"serviceIsRemote": True}}, ("", False, True)),
        (PODMAN, [], ("", False, False)),
    ],
)
def test_what_an_engine_is(name: str, info: Any, wanted: tuple[str, bool, bool]) -> None:
    """HLD-4: version, rootless or not, on another kernel or not; what is not understood is neither."""
    facts = facts_of(name, info)
    assert (facts.version, facts.rootless, facts.in_vm) == wanted


def test_a_daemon_that_dockers_program_did_not_reach_is_an_error() -> None:
    """HLD-7: `docker info` ends well then, and says so in its answer."""
    with pytest.raises(StartError) as caught:
        facts_of(DOCKER, {"ServerErrors": ["Cannot connect to the Docker daemon at unix:///x"]})
    assert caught.value.code == "engine-down"


@pytest.mark.parametrize("name", [DOCKER, PODMAN])
def test_every_error_names_the_engine_and_a_fix(name: str) -> None:
    """HLD-7: one line with what to type."""
    for error in (not_here(name), without_image(name, "x:1"), failure(name, "info", "cannot connect to podman")):
        assert name in error.what
        assert error.fix
