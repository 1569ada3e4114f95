"""`tidegate attach`: what is refused before anything is asked (tests/holds/test_attach.py has the containers)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.cli.main import main

if TYPE_CHECKING:
    import pytest


def test_it_needs_a_container_and_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    """Both are named; one without the other is a mistake of usage (HLD-16)."""
    assert main(["attach", "--task", "t"]) == 2
    assert "--container" in capsys.readouterr().err


def test_a_container_that_no_engine_has_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any engine nobody has it, and the way to find out is named (HLD-7)."""
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["attach", "--task", "t", "--container", "c"]) == 2
    assert "neither docker nor podman has a container 'c'" in capsys.readouterr().err
