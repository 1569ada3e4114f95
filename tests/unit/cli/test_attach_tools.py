"""tidegate.cli.attach_tools: the keeper beside `attach`; tests/holds/test_attach.py has it with real containers."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.cli.attach_tools import AttachedTools
from tidegate.model.errors import StartError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A person with one tool, and what a server says of a task."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
        (tmp_path / name.lower()).mkdir(mode=0o700)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    folder = tmp_path / "xdg_config_home" / "tidegate"
    folder.mkdir(mode=0o700)
    (folder / "tools.yaml").write_text("tools: {shout: {command: [/bin/true], description: Shout.}}\n")
    (folder / "tools.yaml").chmod(0o600)
    return {"task": "t1", "folder": str(tmp_path / "work"), "tools": ["shout"]}


def container(*writable: str) -> Any:
    """What was looked at, as far as it counts here."""
    return SimpleNamespace(writable=lambda: writable)


def test_a_server_is_led_to_them_as_long_as_the_container_lives(told: dict[str, Any]) -> None:
    """SRV-6, HLD-8: the same end of the channel for each server; what was called is told at the end, and again."""
    tools = AttachedTools(told, container("/srv/elsewhere"))
    first, second = (SimpleNamespace(tools=-1, authority=()) for _ in range(2))
    tools.join(first)  # type: ignore[arg-type]
    tools.join(second)  # type: ignore[arg-type]
    assert first.tools == second.tools
    assert os.fstat(first.tools)
    assert tools.finish() == []
    assert tools.finish() == []
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(first.tools)


def test_what_the_container_can_write_is_run_for_nobody(told: dict[str, Any]) -> None:
    """SRV-6, HLD-15: nor a tool that is not declared; nothing is begun then."""
    with pytest.raises(StartError, match="which a task can write"):
        AttachedTools(told, container("/srv/elsewhere", "/bin"))
    with pytest.raises(UsageError, match="there is no tool 'other'"):
        AttachedTools(told | {"tools": ["shout", "other"]}, container())


def test_what_declares_tools_is_none_that_the_container_can_write(told: dict[str, Any]) -> None:
    """SRV-6, POL-9: whoever writes it says what runs outside of every hold; what lies beside it is nobody's matter."""
    folder = f"{os.environ['XDG_CONFIG_HOME']}/tidegate"
    for place in (os.environ["XDG_CONFIG_HOME"], folder, f"{folder}/tools.yaml"):
        with pytest.raises(StartError, match=r"the container can write '.*tools\.yaml', which says") as caught:
            AttachedTools(told, container("/srv/elsewhere", place))
        assert caught.value.exit_status == 78
    AttachedTools(told, container(f"{folder}/other")).finish()
