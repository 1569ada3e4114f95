"""`tidegate tools`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tidegate.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where tools are declared."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "tidegate").mkdir(mode=0o700)
    return tmp_path / "tidegate" / "tools.yaml"


def test_tools_are_shown_with_their_hosts(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SRV-6: name, hosts, whether the task's hosts count, and what is missing; for machines too."""
    file.write_text(
        'tools:\n  charge: {command: [/bin/true], description: "Charge\\e[2J it.", hosts: [api.pay.test:443]}\n'
        "  gone: {command: [/nowhere/x], description: Gone., apply_task_hosts: true}\n"
    )
    file.chmod(0o600)
    assert main(["tools"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "charge · api.pay.test:443 · not limited by the task's hosts",
        "  Charge\\x1b[2J it.",
        "gone · no host that it names · only the task's hosts · cannot run: '/nowhere/x' is no file",
        "  Gone.",
    ]
    assert main(["tools", "--json"]) == 0
    charge, gone = json.loads(capsys.readouterr().out)
    assert (charge["hosts"], charge["why_not"]) == (["api.pay.test:443"], "")
    assert gone["why_not"] == "'/nowhere/x' is no file"


def test_where_there_are_none_it_says_how(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SRV-6, HLD-16: no file is no error; a wrong one is 2, with its place."""
    assert main(["tools"]) == 0
    assert f"declare one in {file}" in capsys.readouterr().err
    file.write_text("tools: {A: {}}\n")
    file.chmod(0o600)
    assert main(["tools"]) == 2
    assert f"{file}:1:9" in capsys.readouterr().err
