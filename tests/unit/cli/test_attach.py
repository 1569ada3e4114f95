"""`tidegate attach`: what is refused before anything is asked (tests/holds/test_attach.py has the containers)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.cli.main import main
from tidegate.holds.container.engine import Engine
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    import pytest


def test_it_needs_a_container_and_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    """Both are named; one without the other is a mistake of usage (HLD-16)."""
    assert main(["attach", "--task", "t"]) == 2
    assert "--container" in capsys.readouterr().err


def test_a_container_that_no_engine_has_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that cannot be asked is not said to have none; the one that was asked is (HLD-7)."""
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["attach", "--task", "t", "--container", "c"]) == 2
    said = capsys.readouterr().err
    assert "nobody can be asked for 'c': docker is not installed; podman is not installed" in said

    def none(_self: Engine, container: str) -> dict[str, Any]:
        raise StartError(f"no {container}", code="no-container")

    monkeypatch.setattr(Engine, "inspect", none)
    assert main(["attach", "--task", "t", "--container", "c"]) == 2
    assert "neither docker nor podman has a container 'c'" in capsys.readouterr().err

    def podman_only(self: Engine, container: str) -> dict[str, Any]:
        if self.name == "docker":
            raise StartError("docker cannot be reached: x", code="engine-down")
        return none(self, container)

    monkeypatch.setattr(Engine, "inspect", podman_only)
    assert main(["attach", "--task", "t", "--container", "c"]) == 2
    assert "podman has no container 'c', and docker cannot be reached: x" in capsys.readouterr().err
